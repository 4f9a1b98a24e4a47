package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/maptext"
	"github.com/millrace/millrace/fpga/operator/texttoint"
	"github.com/millrace/millrace/fpga/operator/texttoseconds"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// TestRowsOfTextErrors checks that a text of which an operator makes no number fails its slice with the row of the
// mini-batch and the text: in a column of texts, in one of lists, and in a step of a graph.
func TestRowsOfTextErrors(t *testing.T) {
	for _, o := range []struct {
		op        program.Op
		one, two  string // texts that the operator reads
		wantError string
	}{
		{&maptext.Op{Keys: []string{"no", "yes"}, Values: []int64{0, 1}}, "yes", "no",
			`map_text: the table lacks the text "%s": add it`},
		{texttoint.Op{}, "-12", "7", `text_to_int: "%s": not a decimal integer`},
		{texttoseconds.Op{Assumes: true}, "2021-05-21", "1970-01-01", `text_to_seconds: "%s": not a time of the form`},
		{hextoint.Op{}, "ff", "1", `hex_to_int: token "%s": not one to eight hexadecimal digits`},
	} {
		t.Run(fmt.Sprintf("%T", o.op), func(t *testing.T) {
			checkRowsOfTextErrors(t, o.op, o.one, o.two, o.wantError)
		})
	}
}

func checkRowsOfTextErrors(t *testing.T, op program.Op, one, two, wantError string) {
	text := func(s string) any { return []byte(s) }
	scalars := testColumn{name: "answer", physical: format.ByteArray, text: true}
	lists := testColumn{name: "answers", physical: format.ByteArray, text: true, list: true, elements: true}
	for range 5 {
		scalars.rows = append(scalars.rows, text(one), text(two))
		lists.rows = append(lists.rows, []any{text(two), text(one)}, []any{})
	}
	scalars.rows[7] = text("maybe")
	lists.rows[6] = []any{text(two), text("perhaps")}
	lists.rows[4] = []any{text("unknown too"), nil} // a list with a null is not read
	sinks := []program.Sink{{To: program.ToSparse, Ops: []program.Op{op}}}
	ofScalars := "row 5 of the mini-batch: " + fmt.Sprintf(wantError, "maybe")
	ofLists := "row 4 of the mini-batch: " + fmt.Sprintf(wantError, "perhaps")
	for name, c := range map[string]struct {
		column testColumn
		graph  bool
		want   string
	}{
		"texts":        {scalars, false, ofScalars},
		"texts, graph": {scalars, true, ofScalars},
		"lists":        {lists, false, ofLists},
		"lists, graph": {lists, true, ofLists},
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
