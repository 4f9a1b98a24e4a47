package wire

import (
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

// mayLackColumns reports whether partitions may lack a column.
func mayLackColumns(p *program.Program) bool {
	return anyColumn(p, func(c *program.Column) bool { return c.Absent })
}

// listsOfGraphsAreDense reports whether lists that a graph makes become dense columns.
func listsOfGraphsAreDense(p *program.Program) bool {
	return slices.ContainsFunc(p.Graphs, func(g program.Graph) bool {
		return slices.ContainsFunc(g.Sinks, func(s program.GraphSink) bool {
			return s.Sink.EndsLists()
		})
	})
}

// refusesNumbers reports whether a sink refuses real numbers, or a column integers.
func refusesNumbers(p *program.Program) bool {
	refuses := func(s program.Sink) bool { return s.Refuses != program.RefusesNothing }
	return anyColumn(p, func(c *program.Column) bool {
		return c.FitsInt64 || slices.ContainsFunc(c.Sinks, refuses)
	}) || slices.ContainsFunc(p.Graphs, func(g program.Graph) bool {
		return slices.ContainsFunc(g.Sinks, func(s program.GraphSink) bool { return refuses(s.Sink) })
	})
}

// minorOfOperators returns the least minor version that has every operator.
func minorOfOperators(p *program.Program) (minor uint16) {
	p.ForEachOp(func(op program.Op) { minor = max(minor, program.MinorOf(op)) })
	return minor
}

// mapsToBytes reports whether the values of a map are bytes.
func mapsToBytes(p *program.Program) bool {
	return anyColumn(p, func(c *program.Column) bool {
		return c.LeafPart() == program.MapValues && c.Kind == program.Bytes
	})
}

// mapsInGraphs reports whether a graph takes features of maps.
func mapsInGraphs(p *program.Program) bool {
	return anyColumn(p, func(c *program.Column) bool { return c.MapLeaf != program.NoPart })
}

// readsAnnotations reports whether a column reads chunks by their annotations.
func readsAnnotations(p *program.Program) bool {
	return anyColumn(p, func(c *program.Column) bool { return c.Reading != program.ReadStored })
}

// usesScores reports whether a graph makes lists of ids with scores.
func usesScores(g *program.Graph) bool {
	for i := range g.Steps {
		if program.MinorOf(g.Steps[i].Combine) >= 5 {
			return true
		}
	}
	return slices.ContainsFunc(g.Sinks, func(s program.GraphSink) bool { return s.Scored })
}

// scoresGraphs reports whether a graph makes lists of ids with scores.
func scoresGraphs(p *program.Program) bool {
	for i := range p.Graphs {
		if usesScores(&p.Graphs[i]) {
			return true
		}
	}
	return false
}

// weightsOfGraphs reports whether the section of graphs says that there are weights: the section of maps says it if
// there is one.
func weightsOfGraphs(p *program.Program) bool { return p.Output.Weights && !p.HasMaps() }

// hasTexts reports whether a table of the program holds texts.
func hasTexts(p *program.Program) (found bool) {
	p.ForEachOp(func(op program.Op) {
		found = found || slices.ContainsFunc(Tables(op), func(t program.Table) bool { return len(t.Texts) > 0 })
	})
	return found
}

// The versions of the wire forms. A reader takes any minor version of its major version. A writer writes the least
// minor version that can express the content: a slice is 1.1 only if it has a cursor that is Checked, a program is 1.1
// only if it has maps, 1.2 only if its dense tensor is not float32, 1.3 only if it has graphs, 1.4 only if partitions
// may lack columns, 1.5 only if graphs make lists of ids with scores or take features of maps, 1.6 only if an NGram
// lists the ids of its windows, or if keys of maps are text, 1.7 only if it has lookup tables, 1.8 only if values of
// maps are bytes, 1.9 only if sinks or columns refuse numbers, or columns are read by annotations, and 1.10 only if
// tables have texts, or lists of graphs become dense columns. A slice is 1.5 only if its TablesChecked is set, a result
// 1.2 only if it has an AbsentKey. A slice is 1.6, and a result 1.3, only if it has a cursor with ValueAt. A slice is
// 1.7 only if a chunk is annotated.
const (
	Major = 1
	// Minor is of programs. 1: maps. 2: Output.DenseType. 3: graphs. 4: Column.Absent. 5: GraphSink.Scored,
	// Column.MapLeaf. 6: NGram.Mode, Pick.Text. 7: LookupTables. 8: MapValues of kind Bytes. 9: Sink.Refuses,
	// Column.FitsInt64, Column.Reading. 10: Table.Texts, lists of graphs in dense
	Minor = 10
	// 1: Cursor.Checked. 2: ChunkType.EntryDef, OutputLayout.Weights. 3: ChunkType.RowsUncounted, AlwaysCompressed. 4:
	// ChunkType.Absent. 5: Slice.TablesChecked. 6: Cursor.ValueAt. 7: ChunkType.Annotation
	SliceMinor = 7
	// 1: Cursor.Checked, Result.Wait and Move, TaskResult.Ready and Page. 2: Result.AbsentKey. 3: Cursor.ValueAt
	ResultMinor = 3
)

// anyColumn reports whether a column has a property.
func anyColumn(p *program.Program, has func(c *program.Column) bool) bool {
	for i := range p.Columns {
		if has(&p.Columns[i]) {
			return true
		}
	}
	return false
}
