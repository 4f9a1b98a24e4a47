package lowering

import (
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// sourceName names the column, or the feature of a map, that an operator takes. A feature whose scores the operator
// takes is another than the same feature without scores: it is empty where a score is null.
func sourceName(o *resolve.Operand, taker program.Combiner) string {
	if !o.OfMap() {
		return "column " + leafKey(&o.Column)
	}
	name := "key " + o.Column.Map.KeyName(o.Key, o.Text) + " of " + o.Column.Name
	if _, scored := taker.(scores.Op); scored {
		name = "scored " + name
	}
	return name
}

// addSource adds the column or feature that an operator takes.
func (g *graphBuilder) addSource(o *resolve.Operand, taker program.Combiner) nodeRef {
	name := sourceName(o, taker)
	at, ok := g.byName[name]
	if !ok {
		at = len(g.sources)
		g.byName[name] = at
		g.sources = append(g.sources, g.newSource(o, taker))
	}
	columns := g.groups[g.sources[at].group].columns
	for i := range columns {
		columns[i].Absent = columns[i].Absent || o.Absent
	}
	values := &columns[min(len(columns), 2)-1]
	values.FitsInt64 = values.FitsInt64 || readAsNumbers(&o.Column, o.Ops)
	return nodeRef{column: true, at: at}
}

// newSource adds a column, or a key to the columns of its map.
func (g *graphBuilder) newSource(o *resolve.Operand, taker program.Combiner) graphSource {
	c := &o.Column
	if !o.OfMap() {
		g.groups = append(g.groups, graphColumns{[]program.Column{{Name: c.Name, Field: c.Field, Kind: c.Kind,
			List: c.List, Part: program.GraphNext, Reading: c.Reading}}})
		return graphSource{group: len(g.groups) - 1}
	}
	at := 0
	for at < len(g.groups) && (len(g.groups[at].columns) < 2 || g.groups[at].columns[1].Name != c.Map.Values) {
		at++
	}
	if at == len(g.groups) {
		g.groups = append(g.groups, graphColumns{[]program.Column{
			{Name: c.Map.Keys, Kind: c.Map.KindOfKeys(), Part: program.GraphNext, MapLeaf: program.MapKeys},
			{Name: c.Map.Values, Kind: c.Kind, List: c.List, Part: program.GraphNext, MapLeaf: program.MapValues}}})
	}
	of := &g.groups[at]
	_, scored := taker.(scores.Op)
	if scored && len(of.columns) < 3 {
		of.columns = append(of.columns, program.Column{Name: c.Map.Scores, Kind: c.Map.ScoreKind, List: true,
			Part: program.GraphNext, MapLeaf: program.MapScores, Absent: of.columns[0].Absent,
			FitsInt64: c.Map.ScoreKind == program.Int64})
	}
	values := &of.columns[1]
	values.Picks = append(values.Picks, program.Pick{Key: o.Key, Text: o.Text, Scored: scored})
	return graphSource{at, len(values.Picks) - 1}
}

// columnCount returns how many columns the graph has so far.
func (g *graphBuilder) columnCount() (n int) {
	for i := range g.groups {
		n += len(g.groups[i].columns)
	}
	return n
}

// sourceNumbers returns the numbers that the sources have as values of the graph.
func (g *graphBuilder) sourceNumbers() []uint32 {
	first, n := make([]uint32, len(g.groups)), uint32(0)
	for i := range g.groups {
		first[i] = n
		if columns := g.groups[i].columns; len(columns) == 1 {
			n++
		} else {
			n += uint32(len(columns[1].Picks))
		}
	}
	numbers := make([]uint32, len(g.sources))
	for i, s := range g.sources {
		numbers[i] = first[s.group] + uint32(s.pick)
	}
	return numbers
}
