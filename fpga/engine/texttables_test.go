package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/operator/maptext"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// TestUnknownTexts checks that a text that a table lacks fails its slice with the row of the mini-batch and the text:
// in a column of texts, in one of lists, and in a step of a graph.
func TestUnknownTexts(t *testing.T) {
	text := func(s string) any { return []byte(s) }
	scalars := testColumn{name: "answer", physical: format.ByteArray, text: true}
	lists := testColumn{name: "answers", physical: format.ByteArray, text: true, list: true, elements: true}
	for range 5 {
		scalars.rows = append(scalars.rows, text("yes"), text("no"))
		lists.rows = append(lists.rows, []any{text("no"), text("yes")}, []any{})
	}
	scalars.rows[7] = text("maybe")
	lists.rows[6] = []any{text("no"), text("perhaps")}
	lists.rows[4] = []any{text("unknown too"), nil} // a list with a null is not read
	op := &maptext.Op{Keys: []string{"no", "yes"}, Values: []int64{0, 1}}
	sinks := []program.Sink{{To: program.ToSparse, Ops: []program.Op{op}}}
	for name, c := range map[string]struct {
		column testColumn
		graph  bool
		want   string
	}{
		"texts":        {scalars, false, `row 5 of the mini-batch: map_text: the table lacks the text "maybe": add it`},
		"texts, graph": {scalars, true, `row 5 of the mini-batch: map_text: the table lacks the text "maybe": add it`},
		"lists":        {lists, false, `row 4 of the mini-batch: map_text: the table lacks the text "perhaps": add it`},
		"lists, graph": {lists, true, `row 4 of the mini-batch: map_text: the table lacks the text "perhaps": add it`},
	} {
		t.Run(name, func(t *testing.T) {
			data := writeFile(t, []testColumn{c.column}, layout{groupRows: 10, batchRows: 10, pageBytes: 40, version: 1})
			f := readFooter(t, data)
			column := program.Column{Name: f.Leaves[0].Path, Kind: program.Bytes, List: c.column.list, Sinks: sinks}
			p := &program.Program{Source: program.Parquet, Columns: []program.Column{column},
				Output: program.Output{Keys: 1}}
			if c.graph {
				p.Columns[0].Sinks, p.Columns[0].Part = nil, program.GraphFirst
				p.Graphs = []program.Graph{{Steps: []program.Step{{Inputs: []uint32{0}, Ops: []program.Op{op}}},
					Sinks: []program.GraphSink{{Value: 1, Sink: program.Sink{To: program.ToSparse}}}}}
			}
			require.NoError(t, p.Validate())
			h := newHost(engine.New(engine.Options{BlockRows: 3}), p, f, data, 1)
			_, err := h.miniBatch(2, 8)
			var bad *sliceFailure
			require.ErrorAs(t, err, &bad)
			require.Equal(t, program.BadData, bad.state)
			require.Contains(t, bad.message, c.want)
		})
	}
}
