package program

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mapSteps is a program of which a graph takes features of a map.
func mapSteps() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "item", Kind: Int64, Part: GraphFirst},
			{Name: "m.key", Kind: Int64, Part: GraphNext, MapLeaf: MapKeys},
			{Name: "m.id", Kind: Int64, List: true, Part: GraphNext, MapLeaf: MapValues,
				Picks: []Pick{{Key: 7}, {Key: -7, Scored: true}}},
			{Name: "m.score", Kind: Float64, List: true, Part: GraphNext, MapLeaf: MapScores},
		},
		Graphs: []Graph{{
			Steps: []Step{{Inputs: []uint32{0, 1}, Combine: IDListTransform{}}},
			Sinks: []GraphSink{{Value: 3, Sink: Sink{To: ToSparse}},
				{Value: 2, Sink: Sink{To: ToSparse, Index: 1}, Scored: true}},
		}},
		Output: Output{Keys: 2, Weights: true},
	}
}

func TestMapsInGraphs(t *testing.T) {
	p := mapSteps()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "map_steps.v1.5.hex", b)
	assert.Equal(t, uint16(5), le.Uint16(b[10:]))
	q, err := Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p, q)
	checkDamage(t, p)
	assert.Contains(t, p.Units(), UnitRef{UnitMap, 1})
	assert.Contains(t, p.String(), "  [-7] scored true\n")
	assert.Contains(t, p.String(), "  value 3 = [0 1]: id_list_transform -> list<int64>\n")
	assert.Contains(t, p.String(), "  value 2 to scored sparse 1:\n")
}

func TestMapsInGraphsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Program, columns []Column)
		want   string
	}{
		"no graph": {func(p *Program, c []Column) {
			p.Columns = append(c, Column{Name: "x", Kind: Int64, MapLeaf: MapKeys, Sinks: []Sink{{To: ToDense}}})
		}, "a leaf of a map of no graph"},
		"text": {func(p *Program, _ []Column) { p.Source = CriteoBinary },
			"a leaf of a map of no graph over Parquet"},
		"keys alone":   {func(_ *Program, c []Column) { c[2].MapLeaf = NoPart }, "keys of a map without its values"},
		"values alone": {func(_ *Program, c []Column) { c[1].MapLeaf = NoPart }, "values of a map without its keys"},
		"scores alone": {func(_ *Program, c []Column) {
			c[1].MapLeaf, c[2].MapLeaf, c[2].Picks = NoPart, NoPart, nil
		}, "scores of a map without lists of ids"},
		"scores of numbers": {func(_ *Program, c []Column) { c[2].List = false }, "scores of a map without lists of ids"},
		"another leaf":      {func(_ *Program, c []Column) { c[0].MapLeaf = GraphFirst }, "graph is no leaf of a map"},
		"keys of real numbers": {func(_ *Program, c []Column) { c[1].Kind = Float32 },
			"keys are float32 (list: false), want int64"},
		"lists of keys":  {func(_ *Program, c []Column) { c[1].List = true }, "keys are int64 (list: true), want int64"},
		"text as scores": {func(_ *Program, c []Column) { c[3].Kind = Bytes }, "scores are bytes (list: true)"},
		"no key":         {func(_ *Program, c []Column) { c[2].Picks = nil }, "a map of which no key is picked"},
		"keys of no map": {func(_ *Program, c []Column) { c[0].Picks = []Pick{{}} }, "picks keys, and is no map's values"},
		"scores of real numbers": {func(_ *Program, c []Column) { c[2].Kind = Float32 },
			"key -7: scores that are not read, or of float32"},
		"no scores": {func(p *Program, c []Column) { p.Columns = c[:3] }, "key -7: scores that are not read"},
		"a part that may be absent": {func(_ *Program, c []Column) { c[2].Absent = true },
			"a map of which partitions may lack a part"},
		"a key that nothing takes": {func(p *Program, _ []Column) {
			p.Graphs[0].Sinks[1], p.Output.Weights = GraphSink{Value: 3, Sink: Sink{To: ToSparse, Index: 1}}, false
		}, `nothing takes key -7 of column "m.id" of the graph`},
		"sinks": {func(_ *Program, c []Column) { c[2].Sinks = []Sink{{To: ToDense}} },
			"a column of a graph feeds 1 sinks, want none"},
	} {
		t.Run(name, func(t *testing.T) {
			p := mapSteps()
			c.change(p, p.Columns)
			err := p.Validate()
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestPicksOfAGraphAreBounded checks the bound of features of maps from both sides.
func TestPicksOfAGraphAreBounded(t *testing.T) {
	for n, fits := range map[int]bool{MaxGraphPicks: true, MaxGraphPicks + 1: false} {
		p := mapSteps()
		p.Columns, p.Output = p.Columns[:3], Output{}
		p.Columns[2].Picks = nil
		g := &p.Graphs[0]
		g.Steps = nil
		g.Sinks = []GraphSink{{Sink: Sink{To: ToSparse}}}
		for i := range n {
			p.Columns[2].Picks = append(p.Columns[2].Picks, Pick{Key: int64(i)})
			g.Sinks = append(g.Sinks, GraphSink{Value: uint32(1 + i), Sink: Sink{To: ToSparse, Index: uint32(1 + i)}})
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
