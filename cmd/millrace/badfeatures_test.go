package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// pairRow is a row of two lists and a number.
type pairRow struct {
	A []int64 `parquet:"a,list"`
	B []int64 `parquet:"b,list"`
	N int64   `parquet:"n"`
}

// pairs writes 60 rows in row groups of 20 as pairs.parquet. Row 47, which is in row group 2, has lists of the given
// length, and 47 as its number as every row has.
func pairs(t *testing.T, length int) string {
	t.Helper()
	rows := make([]pairRow, 60)
	for i := range rows {
		rows[i] = pairRow{A: []int64{1}, B: []int64{int64(i)}, N: int64(i)}
	}
	rows[47].A, rows[47].B = make([]int64, length), make([]int64, length)
	return writeParquet(t, filepath.Join(t.TempDir(), "pairs.parquet"), rows, parquet.MaxRowsPerRowGroup(20))
}

// refusedByAll runs preprocess on every engine. The engines of drives say all of says, and the reference, which knows
// no row groups and pages, says the first and the last.
func refusedByAll(t *testing.T, says []string, args ...string) {
	t.Helper()
	allEngines(t, func(t *testing.T, engine []string) {
		want := says
		if engine[1] == "reference" {
			want = []string{says[0], says[len(says)-1]}
		}
		refusedAs(t, []string{"npy"}, want, append(append([]string{}, args...), engine...)...)
	})
}

// TestCrossesThatOverflow checks lists of 10^4 ids whose pairs are cut, are an error, and are more than an engine
// takes.
func TestCrossesThatOverflow(t *testing.T) {
	data := pairs(t, 10_000)
	pipe := func(cross string) string {
		return file(t, "cross.yaml", "sparse:\n  - {inputs: [a, b], as: pair, ops: ["+cross+", sigrid_hash: {max: 99}]}\n")
	}
	where := []string{"pairs.parquet", "row group 2", `column "a"`, "page 0"}
	refusedByAll(t, append(where, "cartesian", "10000 x 10000"), "--in", data, "--pipeline",
		pipe("cartesian: {max_length: 1000, overflow: fail}"))
	out := filepath.Join(t.TempDir(), "out")
	must(t, "preprocess", "--in", data, "--pipeline", pipe("cartesian: {max_length: 1000}"), "--out", out)
	require.Len(t, npyOf[int64](t, content(t, out)["values.npy"]), 59+1000, "the pairs are cut")
}

// TestIDsThatAVocabularyLacks checks that the error of an id names the file, the row, the column and the id, and what
// else the pipeline may say of such ids.
func TestIDsThatAVocabularyLacks(t *testing.T) {
	data, dir := pairs(t, 1), t.TempDir()
	fewer := make([]pairRow, 60)
	for i := range fewer {
		fewer[i].N = int64(i % 47)
	}
	earlier := writeParquet(t, filepath.Join(dir, "earlier.parquet"), fewer)
	for unknown, ids := range map[string]int{"error": 0, "id": 60, "bucket": 60, "drop": 60 - 13} {
		rules := "order: first_seen, unknown: " + unknown
		switch unknown {
		case "id":
			rules = "order: first_seen, base: 1, rare_id: 0, unknown: id"
		case "bucket":
			rules += ", oov_buckets: 3, base: 3"
		}
		pipe := file(t, "p.yaml", "sparse: [{columns: [n], ops: [vocabulary: v]}]\nvocabularies: {v: {"+rules+"}}\n")
		words := filepath.Join(dir, unknown+".vocab")
		must(t, "vocabulary", "build", "--progress", "none", "--pipeline", pipe, "--in", earlier, "--out", words)
		args := []string{"--pipeline", pipe, "--in", data, "--vocabulary", "v=" + words}
		allEngines(t, func(t *testing.T, engine []string) {
			if ids == 0 {
				refusedAs(t, []string{"npy"}, []string{"pairs.parquet", "row 47", `column "n"`, "lacks the key 47"},
					append(args, engine...)...)
				return
			}
			out := filepath.Join(t.TempDir(), "out")
			must(t, append(append([]string{"preprocess", "--out", out}, args...), engine...)...)
			require.Len(t, npyOf[int64](t, content(t, out)["values.npy"]), ids, unknown)
		})
	}
}

// TestFunctionsOfModulesThatFail checks that the error of a function of a module names the file, the row group, the
// column, the rows and the function.
func TestFunctionsOfModulesThatFail(t *testing.T) {
	data := pairs(t, 1)
	is47 := w.Code(w.Get(0), w.ConstI64(47), w.Op(0x51, 0x04, 0x40))
	for name, c := range map[string]struct {
		code []byte // what the function does for 47
		says string
	}{
		"it loops": {w.Op(0x03, 0x40, 0x0c, 0, 0x0b), "runs for more than 131072 instructions"},
		"it traps": {w.Op(0x00), "unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			m := w.Module{Pages: 1, Functions: []w.Function{{Name: "f", Params: []byte{w.I64}, Results: []byte{w.I64},
				Code: w.Code(is47, c.code, w.Op(0x0b), w.Get(0))}}}
			module := filepath.Join(t.TempDir(), "m.wasm")
			require.NoError(t, os.WriteFile(module, m.Bytes(), 0o600))
			pipe := file(t, "call.yaml", "sparse:\n  - {inputs: [n], as: x, ops: [wasm: {module: m, function: f, "+
				"in: [int64], out: int64}]}\n")
			for _, engine := range []string{"reference", "cpu"} {
				says := []string{"pairs.parquet", `function "f"`, c.says}
				if engine == "cpu" {
					says = append(says, "row group 2", `column "n"`, "page 0", "rows ")
				}
				refusedAs(t, []string{"npy"}, says, "--pipeline", pipe, "--in", data, "--wasm", module, "--engine",
					engine)
			}
		})
	}
}
