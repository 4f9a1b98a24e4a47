package program

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusingProgram returns a program that replaces NaN, and refuses some numbers.
func refusingProgram() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "x", Kind: Float64, Sinks: []Sink{
				{To: ToDense, Ops: []Op{FillNaN{Value: -0.1}, Convert{To: Float32}, FillNaN{Value: 2}},
					Refuses: RefusesNaN},
				{To: ToLabel, Ops: []Op{Convert{To: Float32}}, Refuses: RefusesNonFinite},
			}},
			{Name: "n", Kind: Int64, FitsInt64: true, Sinks: []Sink{
				{To: ToDense, Index: 1, Ops: []Op{Convert{To: Float32}}},
			}},
		},
		Output: Output{Label: true, Dense: 2},
	}
}

func TestRefusal(t *testing.T) {
	p := refusingProgram()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "refusals.v1.9.hex", b)
	assert.Equal(t, uint16(9), le.Uint16(b[10:]), "the minor version")
	q, err := Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p, q)
	checkDamage(t, p)
	assert.Contains(t, p.String(), "dense 0: fill_nan -0.1 | convert float32 | fill_nan 2 refuses nan\n")
	assert.Contains(t, p.String(), "label: convert float32 refuses nan and infinities\n")
	assert.Contains(t, p.String(), `column 1 "n" int64 fits int64`)

	g := graphProgram()
	g.Graphs[0].Sinks[0].Sink.Refuses = RefusesNaN
	assert.Equal(t, g.Validate() == nil, g.Graphs[0].Sinks[0].Sink.To != ToSparse)
	assert.Equal(t, uint16(9), le.Uint16(g.Marshal()[10:]), "a sink of a graph")
}

func TestRefusalThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Program)
		want   string
	}{
		"no refusal":     {func(p *Program) { p.Columns[0].Sinks[0].Refuses = 3 }, "refusal(3) is not a refusal"},
		"reals that fit": {func(p *Program) { p.Columns[0].FitsInt64 = true }, "values of kind float64"},
		"a NaN for a NaN": {func(p *Program) { p.Columns[0].Sinks[0].Ops[0] = FillNaN{Value: math.NaN()} },
			"value NaN"},
		"an infinity": {func(p *Program) { p.Columns[0].Sinks[0].Ops[0] = FillNaN{Value: math.Inf(1)} },
			"value +Inf"},
		"not a float32": {func(p *Program) { p.Columns[0].Sinks[0].Ops[2] = FillNaN{Value: 0.1} }, "value 0.1"},
		"integers": {func(p *Program) { p.Columns[1].Sinks[0].Ops[0] = FillNaN{} },
			"fill_nan does not take int64"},
		"keys that refuse": {func(p *Program) { refuseKey(p) }, "ids, of which none is refused, refuse nan"},
		"another source":   {func(p *Program) { p.Source, p.Columns = CriteoTSV, p.Columns[1:] }, "must fit int64"},
	} {
		p := refusingProgram()
		c.change(p)
		err := p.Validate()
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// refuseKey turns the integers of a refusing program into a key.
func refuseKey(p *Program) {
	p.Output.Dense, p.Output.Keys = 1, 1
	p.Columns[0], p.Columns[1] = p.Columns[1], p.Columns[0]
	p.Columns[0].Sinks[0] = Sink{To: ToSparse, Refuses: RefusesNaN}
}
