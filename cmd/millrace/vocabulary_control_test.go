package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/internal/shared"
)

// serveNodes runs a node for each list of files, with a drive that holds them, until the test ends, and waits until
// the control plane knows some partitions.
func serveNodes(t *testing.T, control string, partitions int, files ...[]string) {
	t.Helper()
	for i, list := range files {
		drive := "file:" + filepath.Join(t.TempDir(), "d.flash")
		must(t, "drive", "create", drive+"?size=16MiB&slm=64MiB")
		must(t, append([]string{"drive", "put", drive, "--progress", "none"}, list...)...)
		c := node.DefaultConfig()
		c.Name, c.Listen, c.Control = fmt.Sprint("n", i), []string{"127.0.0.1:0"}, []string{control}
		c.Measure, c.Drives = node.Duration(time.Millisecond), []node.DriveConfig{{Name: "d0", URI: drive}}
		a, err := node.Start(t.Context(), c, node.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, a.Close()) })
	}
	awaitJSON(t, func(list []nodeView) bool {
		held := 0
		for _, n := range list {
			if n.State == "ready" {
				held += n.Partitions
			}
		}
		return held == partitions && len(list) == len(files)
	}, "nodes", "list", "--control", control)
}

// TestVocabulariesOfRealRowsInACluster builds the vocabularies of DLRM and Piper at five moduli, of TorchRec and of
// NVTabular over Criteo's rows, which two nodes hold, and compares the ids with checksums that a reference program
// made.
func TestVocabulariesOfRealRowsInACluster(t *testing.T) {
	t.Parallel()
	const name = "td_day_11_first_3k_rows_original.tsv"
	document, err := os.ReadFile(shared.Path(t, "golden/criteo_real_checksums.json"))
	require.NoError(t, err)
	var golden struct {
		Cases []map[string]json.RawMessage `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(document, &golden))
	var fields map[string]json.RawMessage
	for _, c := range golden.Cases {
		if strings.Contains(string(c["file"]), name) {
			fields = c
		}
	}
	require.NotNil(t, fields)
	dir := t.TempDir()
	must(t, "dataset", "import", "--progress", "none", "--partition-rows", "1100", "--out", dir,
		shared.Path(t, "data/criteo/"+name))
	parts, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	require.NoError(t, err)
	require.Len(t, parts, 3)
	at := controlRun(t)
	serveNodes(t, at, 4, []string{parts[0], parts[1]}, []string{parts[1], parts[2]})

	type work struct{ ops, rules, sum, cast string }
	list := []work{}
	for _, m := range []int{5000, 8192, 524288, 1000000, 40000000} {
		var of struct {
			Sum string `json:"sha256_ids_i32_rowmajor"`
		}
		require.NoError(t, json.Unmarshal(fields[fmt.Sprintf("vocab_mod_%d", m)], &of))
		list = append(list, work{fmt.Sprintf("fill_null: 0, positive_modulus: %d, ", m), "", of.Sum, "i32"})
	}
	torchrec := work{"fill_null: 0, ", "base: 2, rare_id: 1, min_count: 3", "", "i32"}
	require.NoError(t, json.Unmarshal(fields["sha256_torchrec_contiguous_thr3_i32_rowmajor"], &torchrec.sum))
	nvtabular := work{"", "order: count, base: 3, null_id: 1, rare_id: 2", "", "i64"}
	require.NoError(t, json.Unmarshal(
		fields["sha256_nvt_categorify_i64_rowmajor (null->1, ties by uint32 value asc)"], &nvtabular.sum))
	for i, w := range append(list, torchrec, nvtabular) {
		pipe := file(t, "p.yaml", fmt.Sprintf("batch: %d\n"+
			"sparse: [{columns: [cat_0..cat_25], ops: [%svocabulary: v]}]\nvocabularies: {v: {%s}}\n",
			[]int{64, 200, 8192}[i%3], w.ops, w.rules))
		there, here := filepath.Join(t.TempDir(), "there.vocab"), filepath.Join(t.TempDir(), "here.vocab")
		var built struct {
			Rows     int64 `json:"rows"`
			Received int64 `json:"received_bytes"`
		}
		require.NoError(t, json.Unmarshal([]byte(must(t, "vocabulary", "build", "--control", at, "--pipeline", pipe,
			"--out", there, "--output", "json", "--progress", "none")), &built))
		require.EqualValues(t, 3000, built.Rows)
		require.Positive(t, built.Received)
		require.LessOrEqual(t, built.Received, int64(3000*26*(8+4)))
		must(t, append([]string{"vocabulary", "build", "--pipeline", pipe, "--out", here, "--progress", "none", "--in"},
			parts...)...)
		for _, suffix := range []string{"", ".counts"} {
			a, err := os.ReadFile(there + suffix)
			require.NoError(t, err)
			b, err := os.ReadFile(here + suffix)
			require.NoError(t, err)
			require.Equal(t, b, a, "%s%s", w.ops, suffix)
		}
		out := filepath.Join(t.TempDir(), "out")
		must(t, append([]string{"preprocess", "--progress", "none", "--pipeline", pipe, "--vocabulary", "v=" + there,
			"--out", out, "--in"}, parts...)...)
		assert.Equal(t, w.sum, packed(t, out, "sparse.npy", w.cast), w.ops+w.rules)
	}
}

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
