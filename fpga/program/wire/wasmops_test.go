package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// calling is a program that calls functions of a module.
func calling() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "a", Kind: program.Int64, Part: program.GraphFirst},
			{Name: "b", Kind: program.Float64, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0, 1}, Combine: wasm.Op{Module: program.ModuleDigest{1, 2, 3}, Function: "f",
					In: [program.MaxInputs]program.Kind{program.Int64, program.Float64}, Out: program.Int64}},
				{Inputs: []uint32{0, 1, 0, 1, 0, 1, 0, 1}, Combine: wasm.Op{Module: program.ModuleDigest{4},
					Function: strings.Repeat("g", wasm.MaxName), Out: program.Float32,
					In: [program.MaxInputs]program.Kind{
						program.Int64,
						program.Float64,
						program.Int64,
						program.Float64,
						program.Int64,
						program.Float64,
						program.Int64,
						program.Float64,
					}}},
			},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse, Ops: []program.Op{fillnull.Op{Int: 7}}}},
				{Value: 3, Sink: program.Sink{To: program.ToDense, Ops: []program.Op{fillnull.Op{}}}},
			},
		}},
		Output: program.Output{Keys: 1, Dense: 1},
	}
}

func TestModulesOfCalls(t *testing.T) {
	p := calling()
	b := wire.Marshal(p)
	assert.Equal(t, []program.ModuleDigest{{1, 2, 3}, {4}}, p.WasmModules())
	p.Modules = program.Modules{{1}: nil}
	assert.Equal(t, b, wire.Marshal(p), "modules are not part of the wire form")
}

func TestCallsThatAreRefused(t *testing.T) {
	op := func(change func(o *wasm.Op)) func(s *program.Step) {
		return func(s *program.Step) {
			o := s.Combine.(wasm.Op)
			change(&o)
			s.Combine = o
		}
	}
	first := func(p *program.Program) *program.Step { return &p.Graphs[0].Steps[0] }
	refused(t, calling, first, map[string]refusal[*program.Step]{
		"no name":         {op(func(o *wasm.Op) { o.Function = "" }), "a function's name of 0 bytes, want 1 to 64"},
		"a long name":     {op(func(o *wasm.Op) { o.Function = strings.Repeat("f", 65) }), "a function's name of 65 bytes"},
		"a name with NUL": {op(func(o *wasm.Op) { o.Function = "a\x00b" }), "no NUL"},
		"no value":        {op(func(o *wasm.Op) { o.Out = 0 }), "a value of kind(0), want a number"},
		"a text":          {op(func(o *wasm.Op) { o.Out = program.Bytes }), "a value of bytes, want a number"},
		"no inputs": {op(func(o *wasm.Op) { o.In = [program.MaxInputs]program.Kind{} }),
			"does not take [int64 float64]"},
		"other inputs": {op(func(o *wasm.Op) { o.In[1] = program.Int64 }), "does not take [int64 float64]"},
		"one too many": {op(func(o *wasm.Op) { o.In[2] = program.Int64 }), "does not take [int64 float64]"},
		"a gap": {op(func(o *wasm.Op) { o.In[4] = program.Int64 }),
			"input 4 of int64, want numbers and nothing between them"},
	})
	p := calling()
	p.Columns[0].List = true
	require.ErrorContains(t, p.Validate(), "wasm does not take [list<int64> float64]")
}
