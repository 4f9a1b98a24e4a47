package program

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calling is a program that calls functions of a module.
func calling() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "a", Kind: Int64, Part: GraphFirst},
			{Name: "b", Kind: Float64, Part: GraphNext},
		},
		Graphs: []Graph{{
			Steps: []Step{
				{Inputs: []uint32{0, 1}, Combine: Wasm{Module: ModuleDigest{1, 2, 3}, Function: "f",
					In: [MaxInputs]Kind{Int64, Float64}, Out: Int64}},
				{Inputs: []uint32{0, 1, 0, 1, 0, 1, 0, 1}, Combine: Wasm{Module: ModuleDigest{4},
					Function: strings.Repeat("g", MaxFunctionName), Out: Float32,
					In: [MaxInputs]Kind{Int64, Float64, Int64, Float64, Int64, Float64, Int64, Float64}}},
			},
			Sinks: []GraphSink{
				{Value: 2, Sink: Sink{To: ToSparse, Ops: []Op{FillNull{Int: 7}}}},
				{Value: 3, Sink: Sink{To: ToDense, Ops: []Op{FillNull{}}}},
			},
		}},
		Output: Output{Keys: 1, Dense: 1},
	}
}

func TestCalls(t *testing.T) {
	p := calling()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "calls.v1.3.hex", b)
	q, err := Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p, q)
	assert.Equal(t, b, q.Marshal())
	checkDamage(t, p)
	assert.Contains(t, p.String(), `value 2 = [0 1]: wasm "f" of module 010203000000 (int64, float64) -> int64 -> int64`)
	assert.Equal(t, []ModuleDigest{{1, 2, 3}, {4}}, p.WasmModules())
	p.Modules = Modules{{1}: nil}
	assert.Equal(t, b, p.Marshal(), "modules are no part of the wire form")
}

func TestCallsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *Wasm)
		want   string
	}{
		"no name":         {func(o *Wasm) { o.Function = "" }, "a function's name of 0 bytes, want 1 to 64"},
		"a long name":     {func(o *Wasm) { o.Function = strings.Repeat("f", 65) }, "a function's name of 65 bytes"},
		"a name with NUL": {func(o *Wasm) { o.Function = "a\x00b" }, "no NUL"},
		"no value":        {func(o *Wasm) { o.Out = 0 }, "a value of kind(0), want a number"},
		"a text":          {func(o *Wasm) { o.Out = Bytes }, "a value of bytes, want a number"},
		"no inputs":       {func(o *Wasm) { o.In = [MaxInputs]Kind{} }, "does not take [int64 float64]"},
		"other inputs":    {func(o *Wasm) { o.In[1] = Int64 }, "does not take [int64 float64]"},
		"one too many":    {func(o *Wasm) { o.In[2] = Int64 }, "does not take [int64 float64]"},
		"a gap":           {func(o *Wasm) { o.In[4] = Int64 }, "input 4 of int64, want numbers and nothing between them"},
	} {
		p := calling()
		o := p.Graphs[0].Steps[0].Combine.(Wasm)
		c.change(&o)
		p.Graphs[0].Steps[0].Combine = o
		err := p.Validate()
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, c.want, name)
	}
	p := calling()
	p.Columns[0].List = true
	require.ErrorContains(t, p.Validate(), "wasm does not take [list<int64> float64]")
}
