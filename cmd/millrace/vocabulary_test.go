package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// criteoRows writes rows of Criteo's text, whose 26 ids are all the same.
func criteoRows(t *testing.T, path string, ids ...string) {
	t.Helper()
	var text strings.Builder
	for _, id := range ids {
		text.WriteString("1" + strings.Repeat("\t7", 13) + strings.Repeat("\t"+id, 26) + "\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

// vocabularyPipeline writes a pipeline with the vocabulary piper.
func vocabularyPipeline(t *testing.T, dir, rules string) string {
	t.Helper()
	path := filepath.Join(dir, "p.yaml")
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf("label: {column: label}\nids: int32\nsparse:\n"+
		"  - {columns: [cat_0..cat_25], ops: [fill_null: 0, positive_modulus: 5000, vocabulary: piper]}\n"+
		"vocabularies: {piper: {%s}}\n", rules)), 0o600))
	return path
}

// firstKey reads the ids of the first key of npy tensors.
func firstKey(t *testing.T, folder string, rows int) []int32 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "values.npy"))
	require.NoError(t, err)
	b = b[len(b)-26*rows*4:]
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return ids
}

// TestBothLoops builds, applies, extends and compares a vocabulary from the command line.
func TestBothLoops(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	criteoRows(t, in("day_0.tsv"), "2a", "7", "2a", "", "1388", "ffffffff", "7")
	criteoRows(t, in("day_1.tsv"), "9", "7", "8")
	pipe := vocabularyPipeline(t, dir, "")
	none := []string{"--progress", "none", "--pipeline", pipe}

	built := decode[builtVocabulary](t, must(t, append([]string{"vocabulary", "build", "--in", in("day_0.tsv"), "--out",
		in("a.vocab"), "--output", "json", "--memory", "1MiB", "--temporary", dir}, none...)...))
	assert.Equal(t, [4]int64{7, 4 * 26, 4 * 26, 4 * 26}, [4]int64{built.Rows, built.Keys, built.Seen, built.Appended})
	assert.Len(t, built.Columns, 26)

	// One command for both loops makes the same vocabulary and the same tensors, on every engine.
	must(t, append([]string{"preprocess", "--in", in("day_0.tsv"), "--vocabulary", "piper=" + in("a.vocab"), "--out",
		in("two")}, none...)...)
	assert.Equal(t, []int32{0, 1, 0, 2, 2, 3, 1}, firstKey(t, in("two"), 7))
	for i, engine := range []string{"drive", "cpu", "reference"} {
		file, out := in(fmt.Sprintf("b%d.vocab", i)), in(fmt.Sprintf("one%d", i))
		result := decode[preprocessResult](t, must(t, append([]string{"preprocess", "--in", in("day_0.tsv"), "--engine",
			engine, "--build-vocabulary", "piper=" + file, "--out", out, "--output", "json"}, none...)...))
		assert.Equal(t, content(t, in("two")), content(t, out))
		assert.Equal(t, content(t, in("a.vocab"))["a.vocab"], content(t, file)[filepath.Base(file)])
		require.Len(t, result.Vocabularies, 1)
		assert.Equal(t, built.Digest, result.Vocabularies[0].Digest)
		by := map[string]string{"drive": "drive", "cpu": "host", "reference": "host"}
		assert.Equal(t, by[engine], result.Vocabularies[0].LookedUpBy)
		assert.Equal(t, file, result.Vocabularies[0].BuiltFile)
	}
	result := decode[preprocessResult](t, must(t, append([]string{"preprocess", "--in", in("day_0.tsv"),
		"--build-vocabulary", "piper", "--out", in("memory"), "--output", "json"}, none...)...))
	assert.Equal(t, content(t, in("two")), content(t, in("memory")))
	require.Len(t, result.Vocabularies, 1)
	assert.Equal(t, built.Digest, result.Vocabularies[0].Digest)
	assert.Equal(t, built.Keys, result.Vocabularies[0].Keys)
	assert.Empty(t, result.Vocabularies[0].BuiltFile)
	assert.Positive(t, result.Vocabularies[0].BuildSeconds)

	// A vocabulary in memory keeps the ids of the rows of all partitions.
	both := append([]string{"preprocess", "--in", in("day_0.tsv"), "--in", in("day_1.tsv"), "--batch", "3"}, none...)
	must(t, append(slices.Clone(both), "--build-vocabulary", "piper="+in("both.vocab"), "--out", in("from file"))...)
	for _, engine := range []string{"drive", "cpu", "reference"} {
		out := in("kept by " + engine)
		must(t, append(slices.Clone(both), "--build-vocabulary", "piper", "--engine", engine, "--out", out)...)
		assert.Equal(t, content(t, in("from file")), content(t, out))
	}

	info := decode[vocabularyInfo](t, must(t, "vocabulary", "info", in("a.vocab"), "--output", "json"))
	assert.Equal(t, built.Digest, info.Digest)
	assert.Equal(t, &vocabularyCounts{Rows: 7, Matches: true}, info.Counts)
	assert.Contains(t, must(t, "vocabulary", "info", in("a.vocab")), "{order: first_seen}")

	extended := decode[builtVocabulary](t, must(t, append([]string{"vocabulary", "extend", in("a.vocab"), "--in",
		in("day_1.tsv"), "--out", in("c.vocab"), "--output", "json"}, none...)...))
	assert.Equal(t, [3]int64{6 * 26, 6 * 26, 2 * 26}, [3]int64{extended.Keys, extended.Seen, extended.Appended})
	must(t, append([]string{"preprocess", "--in", in("day_1.tsv"), "--vocabulary", "piper=" + in("c.vocab"), "--out",
		in("day_1")}, none...)...)
	assert.Equal(t, []int32{4, 1, 5}, firstKey(t, in("day_1"), 3))

	assert.Contains(t, must(t, "vocabulary", "diff", in("a.vocab"), in("b0.vocab")), "the same")
	status, out, _ := millrace(t, "vocabulary", "diff", in("a.vocab"), in("c.vocab"), "--output", "json")
	assert.Equal(t, 1, status)
	difference := decode[vocabularyDifference](t, out)
	assert.Equal(t, columnDifference{Name: "cat_0", Before: 4, After: 6, SameIDs: 4, Added: 2}, difference.Columns[0])

	must(t, "pipeline", "check", pipe, "--in", in("day_0.tsv"), "--vocabulary", "piper="+in("c.vocab"))
	must(t, append([]string{"train", "--in", in("day_1.tsv"), "--vocabulary", "piper=" + in("c.vocab"),
		"--trainer-rows-per-second", "1000000"}, none...)...)
}

// TestBadVocabularyCalls checks what the commands say of vocabularies that are not there, of another pipeline or
// damaged, of values that a vocabulary lacks, and of wrong flags.
func TestBadVocabularyCalls(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	criteoRows(t, in("day_0.tsv"), "2a", "7")
	criteoRows(t, in("day_1.tsv"), "7", "8")
	pipe := vocabularyPipeline(t, dir, "")
	must(t, "vocabulary", "build", "--progress", "none", "--pipeline", pipe, "--in", in("day_0.tsv"), "--out",
		in("a.vocab"))
	require.NoError(t, os.MkdirAll(in("other"), 0o700))
	other := vocabularyPipeline(t, in("other"), "base: 1")
	good, err := os.ReadFile(in("a.vocab"))
	require.NoError(t, err)
	for name, change := range map[string]func(b []byte){
		"damaged": func(b []byte) { b[len(b)/2] ^= 1 }, "version": func(b []byte) { b[8] = 2 },
	} {
		b := append([]byte{}, good...)
		change(b)
		require.NoError(t, os.WriteFile(in(name), b, 0o600))
	}
	refusals(t, "vocabulary", func(t *testing.T, status int, args []string, says string) {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, status, code, errs)
		assert.Contains(t, errs, says)
		assert.NoDirExists(t, in("out"))
		assert.NoFileExists(t, in("n.vocab"))
	}, "PREPROCESS", "preprocess --progress none --pipeline "+pipe+" --in "+in("day_1.tsv")+" --out "+in("out"),
		"PIPE", pipe, "OTHER", other, "DIR", dir)
}
