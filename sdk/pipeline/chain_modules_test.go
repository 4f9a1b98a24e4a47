package pipeline_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// addModule is a module with the function add: (int64, float64) -> float32.
func addModule(more ...byte) []byte {
	return wasmtest.Module{Functions: []wasmtest.Function{{Name: "add", Params: []byte{wasmtest.I64, wasmtest.F64},
		Results: []byte{wasmtest.F32}, Code: wasmtest.Code(more, wasmtest.Get(0), wasmtest.Op(0xb4), wasmtest.Get(1),
			wasmtest.Op(0xb6, 0x92))}}}.Bytes()
}

// callSchema has two numbers, a text and a list.
func callSchema() []columntypes.Column {
	return []columntypes.Column{
		{Name: "i", Kind: program.Int64}, {Name: "x", Kind: program.Float32}, {Name: "t", Kind: program.Bytes},
		{Name: "l", Kind: program.Int64, List: true},
	}
}

const callDocument = `dense:
  - {inputs: [i, x], as: sum, ops: [wasm: {module: m, function: add, in: [int64, float64], out: float32}]}
`

func bindAdd(t *testing.T, document string, module []byte) *pipeline.Spec {
	s, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	s, err = s.BindModule(pipeline.Module{Name: "m", Bytes: module})
	require.NoError(t, err)
	return s
}

// TestCallsAreLowered lowers a call: the inputs are converted, and the digest of the module is part of the job's.
func TestCallsAreLowered(t *testing.T) {
	module := addModule()
	sum := sha256.Sum256(module)
	s := bindAdd(t, callDocument, module)
	r, err := resolve.Pipeline(s, callSchema())
	require.NoError(t, err)
	assert.Contains(t, string(r.Canonical()), `"steps":[{"wasm":{"module":"`+hex.EncodeToString(sum[:])+
		`","function":"add","in":["int64","float64"],"out":"float32"},"inputs":[{"column":"i","kind":"int64",`)
	p, _, err := lowering.Lower(r)
	require.NoError(t, err)
	assert.Equal(t, program.Modules{sum: module}, p.Modules)
	assert.Equal(t, []program.ModuleDigest{sum}, p.WasmModules())
	assert.Contains(t, p.String(), "convert float64")
	other, err := resolve.Pipeline(bindAdd(t, callDocument, addModule(0x01)), callSchema())
	require.NoError(t, err)
	assert.NotEqual(t, r.Digest(), other.Digest(), "another module with the same function")
	again, err := pipeline.Parse(s.YAML())
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
		_, err := pipeline.Parse([]byte(c.document))
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
	} {
		s, err := pipeline.Parse([]byte(c.document))
		require.NoError(t, err)
		s, err = s.BindModule(pipeline.Module{Name: "m", Digest: program.ModuleDigest{1}})
		require.NoError(t, err)
		_, err = resolve.Pipeline(s, callSchema())
		require.ErrorContains(t, err, c.want, name)
	}
	for name, c := range map[string]struct{ document, want string }{
		"no function": {call("i, x", "module: m, function: sub, in: [int64, float64], out: float32"),
			`line 1:68: sparse[0].ops[0].wasm.function: module does not fit: "m": no function "sub" is exported; operators of ` +
				"this module: [add(int64, float64) -> float32]"},
		"other kinds": {call("i, i", "module: m, function: add, in: [int64, int64], out: float32"),
			`function "add" is not (int64, int64) -> float32`},
	} {
		s, err := pipeline.Parse([]byte(c.document))
		require.NoError(t, err)
		_, err = s.BindModule(pipeline.Module{Name: "m", Bytes: addModule()})
		require.ErrorIs(t, err, problem.ErrModule, name)
		require.ErrorContains(t, err, c.want, name)
	}
	// A function that is called often counts once.
	functions := func(n, instructions int) []byte {
		var m wasmtest.Module
		for i := range n {
			m.Functions = append(m.Functions, wasmtest.Function{Name: fmt.Sprintf("f%d", i), Params: []byte{wasmtest.I64},
				Results: []byte{wasmtest.I64}, Code: wasmtest.Code(bytes.Repeat(wasmtest.Op(0x20, 0, 0x1a), instructions/2),
					wasmtest.Get(0))})
		}
		return m.Bytes()
	}
	for want, c := range map[string]struct{ most, instructions int }{
		"more than 64 functions":                           {64, 0},
		"take more than 8388608 steps to compile: call fe": {4, 43_000},
	} {
		for n := c.most; n <= c.most+1; n++ {
			document := "sparse:\n"
			for i := range 2 * n {
				document += fmt.Sprintf("  - {inputs: [i], as: k%d, ops: [wasm: {module: m, function: f%d, in: [int64], "+
					"out: int64}]}\n", i, i%n)
			}
			s, err := pipeline.Parse([]byte(document))
			require.NoError(t, err)
			if _, err = s.BindModule(pipeline.Module{Name: "m", Bytes: functions(n, c.instructions)}); n == c.most {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, fmt.Sprintf("line %d:", 2+c.most))
				require.ErrorContains(t, err, want)
			}
		}
	}
	s, err := pipeline.Parse([]byte(callDocument))
	require.NoError(t, err)
	_, err = resolve.Pipeline(s, callSchema())
	require.ErrorIs(t, err, problem.ErrModule)
	require.ErrorContains(t, err, `line 2:52: dense[0].ops[0].wasm.module: column "sum": module does not fit: "m" `+
		`has no file: name it with --wasm m=FILE, or in Python with modules={"m": FILE}`)
	_, err = s.BindModule(pipeline.Module{Name: "n"})
	require.ErrorContains(t, err, `no operator of the pipeline names module "n"`)
	for _, module := range [][]byte{[]byte("no module"), {}} {
		_, err = s.BindModule(pipeline.Module{Name: "m", Bytes: module})
		require.ErrorContains(t, err, "no WebAssembly module of version 1 begins here")
	}
}

// TestModulesWithoutBytes resolves and lowers a pipeline of which only the digest of the module is known: the job is
// the same, and the program has no module to run.
func TestModulesWithoutBytes(t *testing.T) {
	want, err := resolve.Pipeline(bindAdd(t, callDocument, addModule()), callSchema())
	require.NoError(t, err)
	s, err := pipeline.Parse([]byte(callDocument))
	require.NoError(t, err)
	digest := program.ModuleDigest(sha256.Sum256(addModule()))
	s, err = s.BindModule(pipeline.Module{Name: "m", Digest: digest})
	require.NoError(t, err)
	got, err := resolve.Pipeline(s, callSchema())
	require.NoError(t, err)
	assert.Equal(t, want.Canonical(), got.Canonical())
	p, _, err := lowering.Lower(got)
	require.NoError(t, err)
	assert.Empty(t, p.Modules)
	assert.Equal(t, []program.ModuleDigest{digest}, p.WasmModules())
}

// TestPassesHaveTheirModules makes the pass of a filter over a value that a function yields, and that of a vocabulary
// which does not need the module.
func TestPassesHaveTheirModules(t *testing.T) {
	s := bindAdd(t, `values: [{inputs: [i, x], as: sum, ops: [wasm: {module: m, function: add, in: [int64, float64],
  out: float32}]}]
dense: [{columns: [sum]}]
sparse: [{columns: [i], ops: [vocabulary: v]}]
vocabularies: {v: {}}
filter: {column: sum, lt: 3}
`, addModule())
	keys, _, err := s.VocabularyKeys("v")
	require.NoError(t, err)
	assert.Len(t, keys.Modules, 1, "the filter needs it")
	rest, err := s.WithoutMissingVocabularies()
	require.NoError(t, err)
	r, err := resolve.Pipeline(rest, callSchema())
	require.NoError(t, err)
	require.NotNil(t, r.Filter.Spec)
	require.Len(t, r.Filter.Spec.Modules, 1)
	pass, err := resolve.Pipeline(r.Filter.Spec, callSchema())
	require.NoError(t, err)
	p, _, err := lowering.Lower(pass)
	require.NoError(t, err)
	assert.Len(t, p.Modules, 1)
	s.Modules = nil
	_, err = resolve.Pipeline(s, callSchema())
	require.ErrorContains(t, err, `"m" has no file`)
	s.Filter = nil
	keys, _, err = s.VocabularyKeys("v")
	require.NoError(t, err)
	assert.Empty(t, keys.Modules)
}
