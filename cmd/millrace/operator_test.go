package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// writeCounter writes a module whose function adds two integers and how often it was called, as a global and memory
// count it. add is a constant that is added, too.
func writeCounter(t *testing.T, add int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counter.wasm")
	f := w.Function{Name: "count", Params: []byte{w.I64, w.I64}, Results: []byte{w.I64}, Code: w.Code(
		w.Op(0x23, 0), w.ConstI64(1), w.Op(0x7c, 0x24, 0),
		w.ConstI32(8), w.ConstI32(8), w.Access(0x29, 0), w.ConstI64(1), w.Op(0x7c), w.Access(0x37, 0),
		w.Get(0), w.Get(1), w.Op(0x7c, 0x23, 0, 0x7c), w.ConstI32(8), w.Access(0x29, 0), w.Op(0x7c),
		w.ConstI64(add), w.Op(0x7c))}
	m := w.Module{Functions: []w.Function{f}, Pages: 1, Globals: []w.Global{{Type: w.I64, Init: w.ConstI64(0)}}}
	require.NoError(t, os.WriteFile(path, m.Bytes(), 0o600))
	return path
}

// TestNoCutShowsInOperators preprocesses with a function that counts its calls, in small and large memory, by several
// threads and engines, and in other mini-batches: each row is the function's first.
func TestNoCutShowsInOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, pipe, module := filepath.Join(dir, "data"), filepath.Join(dir, "p.yaml"), writeCounter(t, 0)
	must(t, "dataset", "generate", "--progress", "none", "--rows", "1500", "--row-group-rows", "400", "--partitions", "2",
		"--out", data)
	require.NoError(t, os.WriteFile(pipe, []byte(`values:
  - {as: a, from: int_0, ops: [fill_null: 0]}
  - {as: b, from: int_1, ops: [fill_null: 0]}
sparse:
  - {inputs: [a, b], as: k, ops: [wasm: {module: counter, function: count, in: [int64, int64], out: int64}]}
  - inputs: [a, b]
    as: sum
    ops: [wasm: {module: counter, function: count, in: [int64, int64], out: int64}, clamp: {min: 2}]
`), 0o600))
	var want []byte
	for i, how := range [][]string{
		{"--engine", "reference"},
		{"--engine", "cpu", "--threads", "1", "--slm", "256KiB", "--batch", "256"},
		{"--engine", "cpu", "--threads", "3", "--slm", "1MiB", "--batch", "300"},
		{"--engine", "cpu", "--threads", "2", "--slm", "64MiB", "--batch", "1500"},
		{"--engine", "cpu", "--batch", "7"},
	} {
		out := filepath.Join(dir, fmt.Sprint("out", i))
		must(t, append([]string{"preprocess", "--progress", "none", "--pipeline", pipe, "--in", data, "--wasm", module,
			"--out", out}, how...)...)
		_, got := array(t, out, "values.npy")
		require.NotEmpty(t, got)
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, how)
	}
	digest := func(flags ...string) string {
		return must(t, append([]string{"pipeline", "check", pipe, "--in", data, "--output", "json"}, flags...)...)
	}
	assert.Equal(t, digest("--wasm", module), digest("--wasm", "counter="+module))
	assert.NotEqual(t, digest("--wasm", module), digest("--wasm", writeCounter(t, 1)), "another module")

	code, _, errs := millrace(t, "preprocess", "--pipeline", pipe, "--in", data, "--out", filepath.Join(dir, "none"))
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "name it with --wasm counter=FILE")
	code, _, errs = millrace(t, "preprocess", "--pipeline", pipe, "--in", data, "--engine", "drive", "--wasm", module,
		"--out", filepath.Join(dir, "none"))
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "wasm")
	code, _, errs = millrace(t, "preprocess", "--pipeline", pipe, "--in", data, "--wasm", "other="+module, "--out",
		filepath.Join(dir, "none"))
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, `no operator of the pipeline names module "other"`)
	code, _, _ = millrace(t, "preprocess", "--pipeline", pipe, "--in", data, "--wasm", "=f", "--out", dir)
	assert.Equal(t, 2, code)
}

// TestPassesCallModules makes statistics and a vocabulary of what a function yields, and preprocesses with both.
func TestPassesCallModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, pipe, module := filepath.Join(dir, "data"), filepath.Join(dir, "p.yaml"), writeCounter(t, 0)
	must(t, "dataset", "generate", "--progress", "none", "--rows", "500", "--out", data)
	require.NoError(t, os.WriteFile(pipe, []byte(`values:
  - {as: a, from: int_0, ops: [fill_null: 0]}
  - {as: b, from: int_1, ops: [fill_null: 0]}
  - {inputs: [a, b], as: sum, ops: [wasm: {module: m, function: count, in: [int64, int64], out: int64}]}
dense: [{columns: [sum], ops: [normalize: {statistics: s}]}]
sparse: [{columns: [sum], as: ids, ops: [vocabulary: v]}]
statistics: {s: }
vocabularies: {v: {order: count}}
`), 0o600))
	summary, words, with := filepath.Join(dir, "s.summary"), filepath.Join(dir, "v.vocab"), "m="+module
	code, _, errs := millrace(t, "dataset", "summarize", "--pipeline", pipe, "--in", data, "--out", summary)
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, `"m" has no file: name it with --wasm m=FILE`)
	code, _, errs = millrace(t, "dataset", "summarize", "--in", data, "--wasm", with)
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "--wasm is for a --pipeline")
	must(t, "dataset", "summarize", "--pipeline", pipe, "--in", data, "--wasm", with, "--engine", "cpu", "--out",
		summary)
	must(t, "vocabulary", "build", "--pipeline", pipe, "--in", data, "--wasm", with, "--engine", "cpu", "--statistics",
		"s="+summary, "--out", words)
	made := map[string][]byte{}
	for _, engine := range []string{"reference", "cpu"} {
		out := filepath.Join(dir, engine)
		must(t, "preprocess", "--pipeline", pipe, "--in", data, "--wasm", with, "--statistics", "s="+summary,
			"--vocabulary", "v="+words, "--engine", engine, "--out", out)
		for _, name := range []string{"dense.npy", "values.npy"} {
			b, err := os.ReadFile(filepath.Join(out, name))
			require.NoError(t, err)
			if before := made[name]; before != nil {
				assert.Equal(t, before, b, name)
			}
			made[name] = b
		}
	}
}

// writeCountVectors writes writeCounter's module, and known answers of it: the right one for the first row is 5.
func writeCountVectors(t *testing.T, first int) (module, vectors string) {
	t.Helper()
	vectors = filepath.Join(t.TempDir(), "vectors.json")
	require.NoError(t, os.WriteFile(vectors, fmt.Appendf(nil, `{"functions": [{"function": "count", "in": ["int64",
		"int64"], "out": "int64", "rows": [{"in": [1, 2], "out": %d}, {"in": [1, null], "out": null}]}]}`, first), 0o600))
	return writeCounter(t, 0), vectors
}

// TestOperatorTest compares a module with answers that are right, and with one that is wrong.
func TestOperatorTest(t *testing.T) {
	module, vectors := writeCountVectors(t, 5)
	assert.Contains(t, must(t, "operator", "test", module, vectors), "2 of 2 rows as known")
	assert.Contains(t, must(t, "operator", "test", module, vectors, "--interpret", "--output", "json"), `"wrong_rows": 0`)
	module, vectors = writeCountVectors(t, 6)
	code, out, errs := millrace(t, "operator", "test", module, vectors)
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "row 0: 5, want 6")
	assert.Contains(t, errs, "some rows are not as known")
	code, _, errs = millrace(t, "operator", "test", vectors, vectors)
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "no WebAssembly module of version 1 begins here")
}
