package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnan"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// refusingProgram returns a program that replaces NaN, and refuses some numbers.
func refusingProgram() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "x", Kind: program.Float64, Sinks: []program.Sink{
				{
					To:      program.ToDense,
					Ops:     []program.Op{fillnan.Op{Value: -0.1}, convert.Op{To: program.Float32}, fillnan.Op{Value: 2}},
					Refuses: program.RefusesNaN,
				},
				{To: program.ToLabel, Ops: []program.Op{convert.Op{To: program.Float32}}, Refuses: program.RefusesNonFinite},
			}},
			{Name: "n", Kind: program.Int64, FitsInt64: true, Sinks: []program.Sink{
				{To: program.ToDense, Index: 1, Ops: []program.Op{convert.Op{To: program.Float32}}},
			}},
		},
		Output: program.Output{Label: true, Dense: 2},
	}
}

func TestASinkOfAGraphRefuses(t *testing.T) {
	g := graphProgram()
	g.Graphs[0].Sinks[0].Sink.Refuses = program.RefusesNaN
	assert.Equal(t, g.Validate() == nil, g.Graphs[0].Sinks[0].Sink.To != program.ToSparse)
	assert.Equal(t, uint16(9), le.Uint16(wire.Marshal(g)[10:]), "a sink of a graph")
}

func TestRefusalThatIsRefused(t *testing.T) {
	refused(t, refusingProgram, whole, map[string]refusal[*program.Program]{
		"no refusal":     {func(p *program.Program) { p.Columns[0].Sinks[0].Refuses = 3 }, "refusal(3) is not a refusal"},
		"reals that fit": {func(p *program.Program) { p.Columns[0].FitsInt64 = true }, "values of kind float64"},
		"a NaN for a NaN": {func(p *program.Program) { p.Columns[0].Sinks[0].Ops[0] = fillnan.Op{Value: math.NaN()} },
			"value NaN"},
		"an infinity": {func(p *program.Program) { p.Columns[0].Sinks[0].Ops[0] = fillnan.Op{Value: math.Inf(1)} },
			"value +Inf"},
		"not a float32": {func(p *program.Program) { p.Columns[0].Sinks[0].Ops[2] = fillnan.Op{Value: 0.1} }, "value 0.1"},
		"integers": {func(p *program.Program) { p.Columns[1].Sinks[0].Ops[0] = fillnan.Op{} },
			"fill_nan does not take int64"},
		"keys that refuse": {func(p *program.Program) { refuseKey(p) }, "ids, of which none is refused, refuse nan"},
		"another source": {func(p *program.Program) { p.Source, p.Columns = program.CriteoTSV, p.Columns[1:] },
			"must fit int64"},
	})
}

// refuseKey turns the integers of a refusing program into a key.
func refuseKey(p *program.Program) {
	p.Output.Dense, p.Output.Keys = 1, 1
	p.Columns[0], p.Columns[1] = p.Columns[1], p.Columns[0]
	p.Columns[0].Sinks[0] = program.Sink{To: program.ToSparse, Refuses: program.RefusesNaN}
}
