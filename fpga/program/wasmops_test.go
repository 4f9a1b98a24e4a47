package program_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
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

func TestCalls(t *testing.T) {
	p := calling()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "calls.v1.3.hex", b)
	q, err := operator.Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p, q)
	assert.Equal(t, b, q.Marshal())
	checkDamage(t, p)
	assert.Contains(
		t,
		p.String(),
		`value 2 = [0 1]: wasm module 010203000000 function "f" in int64,float64 out int64 -> int64`,
	)
	assert.Equal(t, []program.ModuleDigest{{1, 2, 3}, {4}}, p.WasmModules())
	p.Modules = program.Modules{{1}: nil}
	assert.Equal(t, b, p.Marshal(), "modules are not part of the wire form")
}

func TestCallsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *wasm.Op)
		want   string
	}{
		"no name":         {func(o *wasm.Op) { o.Function = "" }, "a function's name of 0 bytes, want 1 to 64"},
		"a long name":     {func(o *wasm.Op) { o.Function = strings.Repeat("f", 65) }, "a function's name of 65 bytes"},
		"a name with NUL": {func(o *wasm.Op) { o.Function = "a\x00b" }, "no NUL"},
		"no value":        {func(o *wasm.Op) { o.Out = 0 }, "a value of kind(0), want a number"},
		"a text":          {func(o *wasm.Op) { o.Out = program.Bytes }, "a value of bytes, want a number"},
		"no inputs":       {func(o *wasm.Op) { o.In = [program.MaxInputs]program.Kind{} }, "does not take [int64 float64]"},
		"other inputs":    {func(o *wasm.Op) { o.In[1] = program.Int64 }, "does not take [int64 float64]"},
		"one too many":    {func(o *wasm.Op) { o.In[2] = program.Int64 }, "does not take [int64 float64]"},
		"a gap": {func(o *wasm.Op) { o.In[4] = program.Int64 },
			"input 4 of int64, want numbers and nothing between them"},
	} {
		p := calling()
		o := p.Graphs[0].Steps[0].Combine.(wasm.Op)
		c.change(&o)
		p.Graphs[0].Steps[0].Combine = o
		err := p.Validate()
		require.ErrorIs(t, err, program.ErrInvalid, name)
		require.ErrorContains(t, err, c.want, name)
	}
	p := calling()
	p.Columns[0].List = true
	require.ErrorContains(t, p.Validate(), "wasm does not take [list<int64> float64]")
}
