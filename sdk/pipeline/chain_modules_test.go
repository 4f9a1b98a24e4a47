package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// addModule is a module with the function add: (int64, float64) -> float32.
func addModule(more ...byte) []byte {
	return wasmtest.Module{Functions: []wasmtest.Function{{Name: "add", Params: []byte{wasmtest.I64, wasmtest.F64},
		Results: []byte{wasmtest.F32}, Code: wasmtest.Code(more, wasmtest.Get(0), wasmtest.Op(0xb4), wasmtest.Get(1),
			wasmtest.Op(0xb6, 0x92))}}}.Bytes()
}

// callSchema has two numbers, a text and a list.
func callSchema() []ColumnInfo {
	return []ColumnInfo{
		{Name: "i", Kind: program.Int64}, {Name: "x", Kind: program.Float32}, {Name: "t", Kind: program.Bytes},
		{Name: "l", Kind: program.Int64, List: true},
	}
}

const callDocument = `dense:
  - {inputs: [i, x], as: sum, ops: [wasm: {module: m, function: add, in: [int64, float64], out: float32}]}
`

func bindAdd(t *testing.T, document string, module []byte) *Spec {
	s, err := Parse([]byte(document))
	require.NoError(t, err)
	s, err = s.BindModule(Module{Name: "m", Bytes: module})
	require.NoError(t, err)
	return s
}

// TestCallsAreLowered lowers a call: the inputs are converted, and the digest of the module is part of the job's.
func TestCallsAreLowered(t *testing.T) {
	module := addModule()
	sum := sha256.Sum256(module)
	s := bindAdd(t, callDocument, module)
	r, err := s.Resolve(callSchema())
	require.NoError(t, err)
	assert.Contains(t, string(r.Canonical()), `"steps":[{"wasm":{"module":"`+hex.EncodeToString(sum[:])+
		`","function":"add","in":["int64","float64"],"out":"float32"},"inputs":[{"column":"i","kind":"int64",`)
	p, _, err := Lower(r)
	require.NoError(t, err)
	assert.Equal(t, program.Modules{sum: module}, p.Modules)
	assert.Equal(t, []program.ModuleDigest{sum}, p.WasmModules())
	assert.Contains(t, p.String(), "convert float64")
	other, err := bindAdd(t, callDocument, addModule(0x01)).Resolve(callSchema())
	require.NoError(t, err)
	assert.NotEqual(t, r.Digest(), other.Digest(), "another module with the same function")
	again, err := Parse(s.YAML())
	require.NoError(t, err)
	assert.Equal(t, s.JSON(), again.JSON())
}

func TestCallsThatAreRefused(t *testing.T) {
	call := func(inputs, params string) string {
		return "sparse: [{inputs: [" + inputs + "], as: k, ops: [wasm: {" + params + "}]}]"
	}
	for name, c := range map[string]struct{ document, want string }{
		"no function": {call("i", "module: m, in: [int64], out: int64"), "missing: function: name of the exported function"},
		"a kind":      {call("i", "module: m, function: f, in: [int32], out: int64"), `"int32", want one of int64, float32`},
		"no kinds":    {call("i", "module: m, function: f, in: [], out: int64"), "0 kinds, want that of each input, 1 to 8"},
		"no list":     {call("i", "module: m, function: f, in: int64, out: int64"), "want a list of words"},
	} {
		_, err := Parse([]byte(c.document))
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, "line 1:", name)
	}
	for name, c := range map[string]struct{ document, want string }{
		"fewer inputs": {call("i", "module: m, function: add, in: [int64, float64], out: float32"),
			"line 1:74: sparse[0].ops[0].wasm.in: column \"k\": wrong value: 2 kinds, and the inputs are 1"},
		"a list": {call("l", "module: m, function: add, in: [int64], out: float32"),
			"sparse[0].inputs[0]: column \"k\": wrong type of column: wasm takes one value a row, and these are lists"},
		"a text":       {call("t", "module: m, function: add, in: [int64], out: float32"), "wasm takes numbers, and"},
		"real numbers": {call("x", "module: m, function: add, in: [int64], out: float32"), "wasm takes ids (int64)"},
		"no function": {call("i, x", "module: m, function: sub, in: [int64, float64], out: float32"),
			`wasm.function: column "k": module does not fit: "m": no function "sub" is exported; operators of this module: ` +
				"[add(int64, float64) -> float32]"},
		"other kinds": {call("i, i", "module: m, function: add, in: [int64, int64], out: float32"),
			`function "add" is not (int64, int64) -> float32`},
	} {
		_, err := bindAdd(t, c.document, addModule()).Resolve(callSchema())
		require.ErrorContains(t, err, c.want, name)
	}
	s, err := Parse([]byte(callDocument))
	require.NoError(t, err)
	_, err = s.Resolve(callSchema())
	require.ErrorIs(t, err, ErrModule)
	require.ErrorContains(t, err, `line 2:52: dense[0].ops[0].wasm.module: column "sum": module does not fit: there is `+
		`no file for "m": name it with --wasm m=FILE`)
	_, err = s.BindModule(Module{Name: "n"})
	require.ErrorContains(t, err, `no operator of the pipeline names module "n"`)
	_, err = bindAdd(t, callDocument, []byte("no module")).Resolve(callSchema())
	require.ErrorContains(t, err, "no WebAssembly module of version 1 begins here")
}
