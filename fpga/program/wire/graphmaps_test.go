package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/program"
)

// mapSteps is a program of which a graph takes features of a map.
func mapSteps() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "item", Kind: program.Int64, Part: program.GraphFirst},
			{Name: "m.key", Kind: program.Int64, Part: program.GraphNext, MapLeaf: program.MapKeys},
			{Name: "m.id", Kind: program.Int64, List: true, Part: program.GraphNext, MapLeaf: program.MapValues,
				Picks: []program.Pick{{Key: 7}, {Key: -7, Scored: true}}},
			{Name: "m.score", Kind: program.Float64, List: true, Part: program.GraphNext, MapLeaf: program.MapScores},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: idlisttransform.Op{}}},
			Sinks: []program.GraphSink{{Value: 3, Sink: program.Sink{To: program.ToSparse}},
				{Value: 2, Sink: program.Sink{To: program.ToSparse, Index: 1}, Scored: true}},
		}},
		Output: program.Output{Keys: 2, Weights: true},
	}
}

func TestMapsInGraphsThatAreRefused(t *testing.T) {
	columns := func(p *program.Program) []program.Column { return p.Columns }
	refused(t, mapSteps, columns, map[string]refusal[[]program.Column]{
		"keys alone": {func(c []program.Column) { c[2].MapLeaf = program.NoPart },
			"keys of a map without its values"},
		"values alone": {func(c []program.Column) { c[1].MapLeaf = program.NoPart },
			"values of a map without its keys"},
		"scores alone": {func(c []program.Column) {
			c[1].MapLeaf, c[2].MapLeaf, c[2].Picks = program.NoPart, program.NoPart, nil
		}, "scores of a map without lists of ids"},
		"scores of numbers": {func(c []program.Column) { c[2].List = false },
			"scores of a map without lists of ids"},
		"another leaf": {func(c []program.Column) { c[0].MapLeaf = program.GraphFirst },
			"graph is not a leaf of a map"},
		"keys of real numbers": {func(c []program.Column) { c[1].Kind = program.Float32 },
			"keys are float32 (list: false), want int64"},
		"lists of keys": {func(c []program.Column) { c[1].List = true },
			"keys are int64 (list: true), want int64"},
		"text as scores": {func(c []program.Column) { c[3].Kind = program.Bytes },
			"scores are bytes (list: true)"},
		"no key": {func(c []program.Column) { c[2].Picks = nil },
			"a map of which no key is picked"},
		"keys of no map": {func(c []program.Column) { c[0].Picks = []program.Pick{{}} },
			"picks keys, and is not the values of a map"},
		"scores of real numbers": {func(c []program.Column) { c[2].Kind = program.Float32 },
			"key -7: scores that are not read, or of float32"},
		"a part that may be absent": {func(c []program.Column) { c[2].Absent = true },
			"a map of which partitions may lack a part"},
		"sinks": {func(c []program.Column) { c[2].Sinks = []program.Sink{{To: program.ToDense}} },
			"a column of a graph feeds 1 sinks, want none"},
	})
	refused(t, mapSteps, whole, map[string]refusal[*program.Program]{
		"no graph": {func(p *program.Program) {
			p.Columns = append(p.Columns, program.Column{Name: "x", Kind: program.Int64, MapLeaf: program.MapKeys,
				Sinks: []program.Sink{{To: program.ToDense}}})
		}, "a leaf of a map of no graph"},
		"text": {func(p *program.Program) { p.Source = program.CriteoBinary },
			"a leaf of a map of no graph over Parquet"},
		"no scores": {func(p *program.Program) { p.Columns = p.Columns[:3] }, "key -7: scores that are not read"},
		"a key that nothing takes": {func(p *program.Program) {
			p.Output.Weights = false
			p.Graphs[0].Sinks[1] = program.GraphSink{Value: 3, Sink: program.Sink{To: program.ToSparse, Index: 1}}
		}, `nothing takes key -7 of column "m.id" of the graph`},
	})
}

// TestPicksOfAGraphAreBounded checks the bound of features of maps from both sides.
func TestPicksOfAGraphAreBounded(t *testing.T) {
	for n, fits := range map[int]bool{program.MaxGraphPicks: true, program.MaxGraphPicks + 1: false} {
		p := mapSteps()
		p.Columns, p.Output = p.Columns[:3], program.Output{}
		p.Columns[2].Picks = nil
		g := &p.Graphs[0]
		g.Steps = nil
		g.Sinks = []program.GraphSink{{Sink: program.Sink{To: program.ToSparse}}}
		for i := range n {
			p.Columns[2].Picks = append(p.Columns[2].Picks, program.Pick{Key: int64(i)})
			g.Sinks = append(
				g.Sinks,
				program.GraphSink{Value: uint32(1 + i), Sink: program.Sink{To: program.ToSparse, Index: uint32(1 + i)}},
			)
		}
		p.Output.Keys = uint32(1 + n)
		err := p.Validate()
		if fits {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "4097 features of maps in a graph, want at most 4096")
	}
}
