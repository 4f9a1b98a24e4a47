package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAVocabularyOfAClusterFromTheCommandLine: what is printed, a job that finds the file that was put, flags that
// contradict each other, and a folder of another pass.
func TestAVocabularyOfAClusterFromTheCommandLine(t *testing.T) {
	// A context, or a control plane of the environment, would decide what fails.
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("MILLRACE_CONTROL", "")
	drive, _ := filledDrive(t, "2000")
	at := controlRun(t)
	serveDrive(t, at, drive)
	dir := t.TempDir()
	rules := "vocabularies: {v: {min_count: %d, rare_id: -1}}\n"
	document := "batch: 100\nsparse: [{columns: [cat_0, cat_1], ops: [fill_null: 0, vocabulary: v]}]\n"
	pipe := file(t, "p.yaml", document+fmt.Sprintf(rules, 1))
	out := filepath.Join(dir, "v.vocab")
	build := []string{"vocabulary", "build", "--control", at, "--pipeline", pipe, "--out", out}
	table := must(t, append(build, "--partitions", "part-00000*", "--put", "--progress", "plain")...)
	for _, says := range []string{"1000", "job", "vocabulary-", "taken", "10 mini-batches", "put", "cat_1"} {
		assert.Contains(t, table, says)
	}
	assert.NoDirExists(t, out+".work")
	must(t, "jobs", "submit", "--control", at, "--pipeline", pipe, "--vocabulary", "v="+out)

	extended := filepath.Join(dir, "more.vocab")
	must(t, "vocabulary", "extend", out, "--control", at, "--pipeline", pipe, "--out", extended, "--partitions",
		"part-00001*", "--work", filepath.Join(dir, "work"), "--disk", "1GiB", "--progress", "none")
	var info vocabularyInfo
	require.NoError(t, json.Unmarshal([]byte(must(t, "vocabulary", "info", extended, "--output", "json")), &info))
	assert.EqualValues(t, 2000, info.Counts.Rows)

	for says, args := range map[string][]string{
		"--partitions":        append(build, "--in", "x.parquet"),
		"--drive is for":      append(build, "--drive", drive),
		"--temporary is for":  append(build, "--temporary", dir),
		"--placement":         append(build, "--placement", "moon"),
		"--disk":              append(build, "--disk", "much"),
		"--work is for a con": {"vocabulary", "build", "--pipeline", pipe, "--in", "x", "--out", out, "--work", dir},
		"--put is for a cont": {"vocabulary", "build", "--pipeline", pipe, "--drive", drive, "--out", out, "--put"},
		"or data of a cluste": {"vocabulary", "build", "--pipeline", pipe, "--out", out},
	} {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, exitUsage, code, "%s: %s", says, errs)
		assert.Contains(t, errs, says)
	}
	code, _, errs := millrace(t, build...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "v.vocab: file already exists")

	// A pass that ended early is refused to another one, and goes on.
	again := append(build, "--overwrite", "--progress", "none")
	code, _, errs = millrace(t, append(again, "--disk", "1KiB")...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "--disk SIZE")
	other := file(t, "other.yaml", document+fmt.Sprintf(rules, 2))
	code, _, errs = millrace(t, "vocabulary", "build", "--control", at, "--pipeline", other, "--out", out,
		"--overwrite")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "another set of rules")
	assert.Contains(t, errs, "--work OTHER")
	must(t, again...)
	code, _, _ = millrace(t, "vocabulary", "build", "--control", "http://127.0.0.1:1", "--pipeline", pipe, "--out",
		filepath.Join(dir, "never.vocab"))
	assert.Equal(t, exitFailed, code)
}
