package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/hashcross"
	"github.com/millrace/millrace/fpga/operator/listlength"
	"github.com/millrace/millrace/fpga/operator/split"
	"github.com/millrace/millrace/fpga/program"
)

// partsOfTexts is a program that makes ids of the parts of a text, and numbers of the parts and of a list's elements.
func partsOfTexts() *program.Program {
	toDense := func(index uint32) program.Sink {
		return program.Sink{To: program.ToDense, Index: index, Ops: []program.Op{convert.Op{To: program.Float32}}}
	}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "text", Kind: program.Bytes, Part: program.GraphFirst},
			{Name: "list.list.element", Kind: program.Float32, List: true, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0}, Combine: split.Op{Separator: "|"}},
				{Inputs: []uint32{0}, Combine: split.Op{Separator: "0123456789abcde\x00", Empty: split.KeepEmpty},
					Ops: []program.Op{hashbytes.Op{}}},
				{Inputs: []uint32{2}, Combine: listlength.Op{}},
				{Inputs: []uint32{1}, Combine: listlength.Op{}},
			},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse, Ops: []program.Op{hashbytes.Op{}}}},
				{Value: 3, Sink: program.Sink{To: program.ToSparse, Index: 1}},
				{Value: 4, Sink: toDense(0)},
				{Value: 5, Sink: toDense(1)},
			},
		}},
		Output: program.Output{Keys: 2, Dense: 2},
	}
}

func TestPartsOfTextsThatAreRefused(t *testing.T) {
	refused(t, partsOfTexts, firstGraph, map[string]refusal[*program.Graph]{
		"no separator": {func(g *program.Graph) { g.Steps[0].Combine = split.Op{} },
			"step 0: split: a separator of 0 bytes, want 1 to 16"},
		"a long separator": {func(g *program.Graph) {
			g.Steps[0].Combine = split.Op{Separator: strings.Repeat("|", 17)}
		},
			"step 0: split: a separator of 17 bytes, want 1 to 16"},
		"a separator that is not text": {func(g *program.Graph) { g.Steps[0].Combine = split.Op{Separator: "\xff"} },
			"step 0: split: a separator that is not UTF-8"},
		"another rule": {func(g *program.Graph) { g.Steps[0].Combine = split.Op{Separator: "|", Empty: 2} },
			"step 0: split: empty(2) is not a rule for empty parts"},
		"parts of numbers": {func(g *program.Graph) { g.Steps[0].Inputs[0] = 1 },
			"step 0: split does not take [list<float32>]"},
		"parts of parts": {func(g *program.Graph) { g.Steps[1].Inputs[0] = 2 },
			"step 1: split does not take [list<bytes>]"},
		"parts of two texts": {func(g *program.Graph) { g.Steps[0].Inputs = []uint32{0, 0} },
			"step 0: split does not take [bytes bytes]"},
		"the length of a text": {func(g *program.Graph) { g.Steps[3].Inputs[0] = 0 },
			"step 3: list_length does not take [bytes]"},
		"the length of two lists": {func(g *program.Graph) { g.Steps[3].Inputs = []uint32{1, 1} },
			"step 3: list_length does not take [list<float32> list<float32>]"},
		"parts that are ids": {func(g *program.Graph) { g.Sinks[0].Sink.Ops = nil },
			"sink 0 (sparse 0): ends as bytes, want int64"},
		"dense parts": {func(g *program.Graph) { g.Sinks[2].Value = 2 }, "a list cannot be dense"},
	})
}

// TestMostCombined checks the greatest extents of what combiners make of a row.
func TestMostCombined(t *testing.T) {
	text, list, ids := program.Extent{Elements: 1, Bytes: 100}, program.Extent{Elements: 7}, program.Extent{Elements: 5}
	for _, c := range []struct {
		name    string
		combine program.Combiner
		inputs  []program.Extent
		want    program.Extent
	}{
		{"no combiner", nil, []program.Extent{text}, text},
		{"split", split.Op{Separator: "|"}, []program.Extent{text}, program.Extent{Elements: 101, Bytes: 100}},
		{"split at several bytes", split.Op{Separator: "::::::"}, []program.Extent{text},
			program.Extent{Elements: 17, Bytes: 100}},
		{"split of a long text", split.Op{Separator: "|"}, []program.Extent{{Elements: 1, Bytes: 1 << 32}},
			program.Extent{Elements: split.MaxParts, Bytes: 1 << 32}},
		{"split of no text", split.Op{Separator: "|"}, []program.Extent{{Elements: 1}}, program.Extent{Elements: 1}},
		{"list_length", listlength.Op{}, []program.Extent{list}, program.Extent{Elements: 1}},
		{"cartesian", cartesian.Op{MaxLength: 36}, []program.Extent{list, ids}, program.Extent{Elements: 35}},
		{"a cartesian that is cut", cartesian.Op{MaxLength: 34}, []program.Extent{list, ids}, program.Extent{Elements: 34}},
		{"compute_score", computescore.Op{}, []program.Extent{list, ids}, program.Extent{Elements: 1}},
		{"several texts", hashcross.Op{}, []program.Extent{text, text, list}, program.Extent{Elements: 1, Bytes: 200}},
	} {
		assert.Equal(t, c.want, program.MostCombined(c.combine, c.inputs), c.name)
	}
}
