package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// statefulModule returns a module whose function f takes values of some kinds and is written to show what it should not
// see: it adds how often it was called, counted in a global and in memory, to the sum of its parameters' bits.
func statefulModule(kinds []program.Kind, out program.Kind) []byte {
	types := map[program.Kind]byte{program.Int64: wasmtest.I64, program.Float32: wasmtest.F32,
		program.Float64: wasmtest.F64}
	f := wasmtest.Function{Name: "f", Results: []byte{types[out]}}
	f.Code = wasmtest.Code(wasmtest.Op(0x23, 0), wasmtest.ConstI64(1), wasmtest.Op(0x7c, 0x24, 0),
		wasmtest.ConstI32(8), wasmtest.ConstI32(8), wasmtest.Access(0x29, 0), wasmtest.ConstI64(1), wasmtest.Op(0x7c),
		wasmtest.Access(0x37, 0), wasmtest.Op(0x23, 0), wasmtest.ConstI32(8), wasmtest.Access(0x29, 0), wasmtest.Op(0x7c))
	for i, k := range kinds {
		f.Params = append(f.Params, types[k])
		f.Code = append(f.Code, wasmtest.Get(uint64(i))...)
		switch k {
		case program.Float32:
			f.Code = append(f.Code, 0xbc, 0xac) // reinterpret, extend
		case program.Float64:
			f.Code = append(f.Code, 0xbd)
		}
		f.Code = append(f.Code, 0x7c)
	}
	if out == program.Float32 {
		f.Code = append(f.Code, 0xb4)
	}
	return wasmtest.Module{Functions: []wasmtest.Function{f}, Pages: 1,
		Globals: []wasmtest.Global{{Type: wasmtest.I64, Init: wasmtest.ConstI64(40)}}}.Bytes()
}

// wasmStep returns a step that calls a function for scalars of any kinds; ok is false if there are none.
func (m *graphMaker) wasmStep() (s program.Step, ok bool) {
	var scalars []uint32
	for i, of := range m.types {
		if !of.List && of.Kind != program.Bytes {
			scalars = append(scalars, uint32(i))
		}
	}
	if len(scalars) == 0 {
		return s, false
	}
	call := wasm.Op{Function: "f", Out: program.Int64}
	if m.rng.IntN(2) == 0 {
		call.Out = program.Float32
	}
	for i := range 1 + m.rng.IntN(3) {
		n := scalars[m.rng.IntN(len(scalars))]
		s.Inputs, call.In[i] = append(s.Inputs, n), m.types[n].Kind
	}
	module := statefulModule(call.Inputs(), call.Out)
	call.Module = sha256.Sum256(module)
	if m.p.Modules == nil {
		m.p.Modules = program.Modules{}
	}
	m.p.Modules[call.Module] = module
	s.Combine = call
	return s, true
}

// typesOf returns the types of values.
func (m *graphMaker) typesOf(values []uint32) (types []program.ValueType) {
	for _, n := range values {
		types = append(types, m.types[n])
	}
	return types
}

// callProgram is a program that calls a function for one column of integers.
func callProgram(module []byte) *program.Program {
	return &program.Program{
		Source:  program.Parquet,
		Columns: []program.Column{{Name: "a", Kind: program.Int64, Part: program.GraphFirst}},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0}, Combine: wasm.Op{Module: sha256.Sum256(module), Function: "f",
				In: [program.MaxInputs]program.Kind{program.Int64}, Out: program.Int64}}},
			Sinks: []program.GraphSink{{Value: 1, Sink: program.Sink{To: program.ToSparse}}},
		}},
		Output:  program.Output{Keys: 1},
		Modules: program.Modules{sha256.Sum256(module): module},
	}
}

// TestFunctionsThatFail runs functions that do not end, and modules that are not there or refused. The engine goes on
// with other programs.
func TestFunctionsThatFail(t *testing.T) {
	call := func(code ...[]byte) []byte {
		return wasmtest.Module{Pages: 1, Functions: []wasmtest.Function{{Name: "f", Params: []byte{wasmtest.I64},
			Results: []byte{wasmtest.I64}, Code: wasmtest.Code(code...)}}}.Bytes()
	}
	values := make([]any, 300)
	for i := range values {
		values[i] = int64(i)
	}
	cols := []testColumn{{name: "a", physical: format.Int64, rows: values}}
	data := writeFile(t, cols, layout{groupRows: 300, batchRows: 50, version: 2})
	f := readFooter(t, data)
	good := call(wasmtest.Get(0))
	modules := program.Modules{sha256.Sum256(good): good}
	for name, c := range map[string]struct {
		module []byte
		state  program.State
		want   string
	}{
		"for ever": {call(wasmtest.Op(0x03, 0x40, 0x0c, 0, 0x0b), wasmtest.Get(0)), program.BadData,
			`wasm: function "f": row 0: runs for more than 131072 instructions`},
		"a division": {call(wasmtest.ConstI64(1), wasmtest.Get(0), wasmtest.ConstI64(260), wasmtest.Op(0x7d, 0x7f)),
			program.BadData, "integer divide by zero"},
		"outside": {call(wasmtest.Get(0), wasmtest.Op(0xa7), wasmtest.ConstI32(16), wasmtest.Op(0x74),
			wasmtest.Access(0x29, 0)), program.BadData, "reads or writes outside the module's memory"},
		"imports": {wasmtest.Module{Sections: []byte{2, 7, 1, 1, 'e', 1, 'f', 0, 0}}.Bytes(), program.NoSupport,
			"the module imports something"},
		"truncated":    {good[:len(good)-3], program.NoSupport, "wasm module: byte"},
		"another type": {call(wasmtest.ConstI32(1)), program.NoSupport, "wasm module"},
		"not there":    {nil, program.BadProgram, "activate an image that holds it"},
	} {
		p := callProgram(c.module)
		if c.module != nil {
			modules[sha256.Sum256(c.module)] = c.module
		}
		e := engine.New(engine.Options{Modules: modules})
		_, err := newHost(e, p, f, data, 1).miniBatch(0, 300)
		var bad *sliceFailure
		require.ErrorAs(t, err, &bad, name)
		assert.Equal(t, c.state, bad.state, name)
		assert.Contains(t, bad.message, c.want, name)
		if c.state == program.BadData {
			assert.Contains(t, bad.message, `column "a": page `, name)
			ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
			require.NoError(t, err)
			_, err = ref.MiniBatch(0, 300)
			require.ErrorIs(t, err, reference.ErrData, name)
			assert.ErrorContains(t, err, c.want[max(0, len(c.want)-20):], name)
		}
		got, err := newHost(e, callProgram(good), f, data, 1).miniBatch(0, 300)
		require.NoError(t, err, name)
		assert.Equal(t, int64(7), got.Values[7], name)
	}
}

// manyCalls is a program that calls the functions f0, f1 and so on of a module, one after the other.
func manyCalls(module []byte, n int) *program.Program {
	p := callProgram(module)
	step := p.Graphs[0].Steps[0]
	p.Graphs[0].Steps = nil
	for i := range n {
		call := step.Combine.(wasm.Op)
		call.Function = fmt.Sprintf("f%d", i)
		p.Graphs[0].Steps = append(p.Graphs[0].Steps, program.Step{Inputs: []uint32{uint32(i)}, Combine: call})
	}
	p.Graphs[0].Sinks[0].Value = uint32(n)
	return p
}

// manyFunctions is a module of n functions of the same code.
func manyFunctions(n int, pages uint32, code ...[]byte) []byte {
	m := wasmtest.Module{Pages: pages}
	for i := range n {
		m.Functions = append(m.Functions, wasmtest.Function{Name: fmt.Sprintf("f%d", i), Params: []byte{wasmtest.I64},
			Results: []byte{wasmtest.I64}, Code: wasmtest.Code(code...)})
	}
	return m.Bytes()
}

// longCode is code of nearly as many steps as an operator may have, which the compiler is done with soon.
func longCode() []byte {
	return wasmtest.Code(bytes.Repeat(wasmtest.Op(0x20, 0, 0x1a), 21_500), wasmtest.Get(0))
}

// oneRow is a partition of a row.
func oneRow(t *testing.T) (data []byte, f *format.File) {
	data = writeFile(t, []testColumn{{name: "a", physical: format.Int64, rows: []any{int64(1)}}}, layout{groupRows: 1,
		batchRows: 1, version: 2})
	return data, readFooter(t, data)
}

// TestManyFunctions holds the limits of the functions of a program from both sides: their number, the work of compiling
// them, and the memory that they hold.
func TestManyFunctions(t *testing.T) {
	data, f := oneRow(t)
	writes := wasmtest.Code(wasmtest.ConstI32(0), wasmtest.Get(0), wasmtest.Access(0x37, 0), wasmtest.Get(0))
	for want, c := range map[string]struct {
		most  int
		pages uint32
		code  []byte
	}{
		"more than 64 functions of modules":                      {64, 0, wasmtest.Get(0)},
		"take more than 8388608 steps to compile: call fewer":    {4, 0, longCode()},
		"hold more than 67108864 bytes: call fewer, or declare ": {31, 16, writes},
	} {
		module := manyFunctions(c.most+1, c.pages, c.code)
		for n := c.most; n <= c.most+1; n++ {
			p := manyCalls(module, n)
			_, err := newHost(engine.New(engine.Options{Modules: p.Modules}), p, f, data, 1).miniBatch(0, 1)
			if n == c.most {
				require.NoError(t, err, want)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
}

// endingContext ends when somebody has asked a number of times whether it has ended.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}
	return context.Canceled
}

// TestCompilingAProgramEndsWithItsContext ends a slice between two functions that are compiled. The next slice compiles
// them.
func TestCompilingAProgramEndsWithItsContext(t *testing.T) {
	data, f := oneRow(t)
	p := manyCalls(manyFunctions(4, 0, longCode()), 4)
	e := engine.New(engine.Options{Modules: p.Modules})
	h := newHost(e, p, f, data, 1)
	ctx := &endingContext{Context: context.Background(), left: 1}
	h.ctx = ctx
	_, err := h.miniBatch(0, 1)
	require.ErrorContains(t, err, "idle with message \"context canceled\"")
	assert.GreaterOrEqual(t, ctx.left, -5, "it does not go on to compile")
	got, err := newHost(e, p, f, data, 1).miniBatch(0, 1)
	require.NoError(t, err)
	assert.Equal(t, []int64{1}, got.Values)
}

// TestProgramsLeaveTheCache runs programs whose functions together hold more memory than an engine keeps. A program
// that has left the cache is compiled again.
func TestProgramsLeaveTheCache(t *testing.T) {
	data, f := oneRow(t)
	writes := wasmtest.Code(wasmtest.ConstI32(0), wasmtest.Get(0), wasmtest.Access(0x37, 0), wasmtest.Get(0))
	module := manyFunctions(20, 16, writes)
	e := engine.New(engine.Options{Modules: program.Modules{sha256.Sum256(module): module}})
	allocated := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := newHost(e, manyCalls(module, n), f, data, 1).miniBatch(0, 1)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		assert.Equal(t, []int64{1}, got.Values)
		return after.TotalAlloc - before.TotalAlloc
	}
	const compiled = 30 << 20 // more than anything else allocates
	for i, n := range []int{18, 19, 19, 18} {
		if i == 2 {
			assert.Less(t, allocated(n), uint64(compiled), "the engine keeps the program that was run last")
		} else {
			assert.Greater(t, allocated(n), uint64(compiled))
		}
	}
}
