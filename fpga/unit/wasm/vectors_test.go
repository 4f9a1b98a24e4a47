package wasm_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// TestExampleInC builds the example with clang, where there is one, and compares it with its known answers.
func TestExampleInC(t *testing.T) {
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: .ci/wasm setup installs it", tool)
			}
			t.Skipf("%s is missing: install the packages clang and lld", tool)
		}
	}
	out := filepath.Join(t.TempDir(), "features.wasm")
	const folder = "../../../examples/operator/"
	b, err := exec.Command("clang", "--target=wasm32", "-O2", "-mno-bulk-memory", "-nostdlib", "-Wl,--no-entry", "-o", out,
		folder+"features.c").CombinedOutput()
	require.NoError(t, err, string(b))
	module, err := os.ReadFile(out)
	require.NoError(t, err)
	text, err := os.ReadFile(folder + "vectors.json")
	require.NoError(t, err)
	vectors, err := wasm.ParseVectors(text)
	require.NoError(t, err)
	for _, interpret := range []bool{false, true} {
		list, err := vectors.Test(module, wasm.Options{Interpret: interpret})
		require.NoError(t, err)
		require.Len(t, list, 4)
		for _, c := range list {
			assert.Zero(t, c.Wrong, c.Faults)
			assert.Positive(t, c.Rows)
		}
	}
}

// divide is a module that divides an integer by another, and floats.
func divide() []byte {
	return w.Module{Functions: []w.Function{
		{Name: "div", Params: []byte{w.I64, w.I64}, Results: []byte{w.I64}, Code: w.Code(w.Get(0), w.Get(1), w.Op(0x7f))},
		{Name: "divf", Params: []byte{w.F64, w.F64}, Results: []byte{w.F64}, Code: w.Code(w.Get(0), w.Get(1), w.Op(0xa3))},
	}}.Bytes()
}

// TestVectors finds what is right and what is wrong.
func TestVectors(t *testing.T) {
	vectors, err := wasm.ParseVectors([]byte(`{"functions": [
		{"function": "div", "in": ["int64", "int64"], "out": "int64", "rows": [
			{"in": [7, 2], "out": 3}, {"in": [7, null], "out": null}, {"in": [7, 0], "trap": true},
			{"in": [7, 2], "out": 4}, {"in": [7, 0], "out": 4}, {"in": [7, 1], "trap": true}]},
		{"function": "divf", "in": ["float64", "float64"], "out": "float64", "rows": [
			{"in": [0, 0], "out": "nan"}, {"in": [1, 0], "out": "inf"}, {"in": [-1, 0], "out": "-inf"},
			{"in": ["0x7ff0000000000001", 1.5e0], "out": "0x7ff8000000000000"}, {"in": [0, 1], "out": "0x8000000000000000"}]}
	]}`))
	require.NoError(t, err)
	list, err := vectors.Test(divide(), wasm.Options{})
	require.NoError(t, err)
	assert.Equal(t, []wasm.Checked{
		{Function: "div", Signature: "(int64, int64) -> int64", Rows: 6, Wrong: 3, Faults: []string{
			"row 3: 3, want 4", "row 4: the function traps: integer divide by zero", "row 5: 7, want a trap"}},
		{Function: "divf", Signature: "(float64, float64) -> float64", Rows: 5, Wrong: 1, Faults: []string{
			"row 4: 0 (0x0000000000000000), want -0 (0x8000000000000000)"}},
	}, list)
	_, err = vectors.Test([]byte("no module"), wasm.Options{})
	require.ErrorIs(t, err, format.ErrModule)
}

func TestVectorsThatAreRefused(t *testing.T) {
	rows := func(rows string) string {
		return `{"functions": [{"function": "f", "in": ["int64", "float32"], "out": "float32", "rows": [` + rows + `]}]}`
	}
	for document, want := range map[string]string{
		``:                               "EOF",
		`{}`:                             "0 functions, want 1 to 64",
		`{"functions": [{"name": "f"}]}`: "unknown field",
		`{"functions": [{"function": "f", "in": ["int32"], "out": "int64"}]}`: "kind(0)",
		`{"functions": [{"function": "f", "in": [], "out": "int64"}]}`:        "0 inputs, want 1 to 8",
		rows(``):                                       "0 rows, want 1 to",
		rows(`{"in": [1], "out": 1}`):                  "1 inputs, want 2",
		rows(`{"in": [1.5, 1], "out": 1}`):             "1.5, want a whole number",
		rows(`{"in": [1, 1]}`):                         "want out, or trap: true",
		rows(`{"in": [1, 1], "out": null}`):            "null if, and only if",
		rows(`{"in": [1, null], "out": 1}`):            "null if, and only if",
		rows(`{"in": [1, "0x1234567890"], "out": 1}`):  "want 32 bits in hexadecimal",
		rows(`{"in": [1, "x"], "out": 1}`):             "want a number, null, nan",
		rows(`{"in": [1, 1e99], "out": 1}`):            "want a number that fits float32",
		rows(`{"in": [1, 1], "trap": true, "out": 1}`): "has a null or a value",
		rows(`{"in": [1, 1], "out": 1}`) + "{}":        "something follows",
	} {
		_, err := wasm.ParseVectors([]byte(document))
		var refused *wasm.VectorsError
		require.ErrorAs(t, err, &refused, document)
		assert.ErrorContains(t, err, want, document)
	}
	_, err := wasm.ParseVectors([]byte(strings.Repeat(" ", wasm.MaxVectors+1)))
	require.ErrorContains(t, err, "want at most 1048576")
}

// FuzzVectors reads any document, and runs what it says of a small module.
func FuzzVectors(f *testing.F) {
	f.Add([]byte(`{"functions": [{"function": "div", "in": ["int64", "int64"], "out": "int64", "rows": [{"in": [7, 2], ` +
		`"out": 3}]}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		v, err := wasm.ParseVectors(document)
		if err != nil {
			var refused *wasm.VectorsError
			require.ErrorAs(t, err, &refused)
			return
		}
		b, err := json.Marshal(v)
		require.NoError(t, err)
		_, err = wasm.ParseVectors(b)
		require.NoError(t, err)
		if _, err := v.Test(divide(), wasm.Options{}); err != nil && !errors.Is(err, format.ErrModule) {
			t.Fatal(err)
		}
	})
}
