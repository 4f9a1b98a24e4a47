package engine_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/listlength"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/split"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// addParts adds the parts of a column's text, and ids or the number of them. It reports whether the column has text.
func (m *graphMaker) addParts(column uint32, c *testColumn) bool {
	if c.list || c.physical != format.ByteArray || m.p.Source != program.Parquet {
		return false
	}
	o := split.Op{Separator: []string{"a", "1", " ", "é", "0f", "\x00"}[m.rng.IntN(6)], Empty: split.Empty(m.rng.IntN(2))}
	texts := program.ValueType{Kind: program.Bytes, List: true}
	m.addStep(program.Step{Inputs: []uint32{column}, Combine: o}, texts)
	parts := uint32(len(m.types) - 1)
	if m.p.Output.Fixed || m.rng.IntN(3) == 0 {
		m.addLength(parts)
		return true
	}
	fake := testColumn{physical: format.ByteArray, list: true, text: c.text}
	ops := randomChain(m.rng, &fake, program.Int64, false, m.risky)
	if m.rng.IntN(2) == 0 { // the ids are those of the same step
		m.graph.Steps[len(m.graph.Steps)-1].Ops = ops
		m.types[parts].Kind = program.Int64
	} else {
		m.addStep(program.Step{Inputs: []uint32{parts}, Ops: ops}, program.ValueType{Kind: program.Int64, List: true})
	}
	return true
}

// addLength adds the number of elements of a list.
func (m *graphMaker) addLength(list uint32) {
	s := program.Step{Inputs: []uint32{list}, Combine: listlength.Op{}}
	of := program.ValueType{Kind: program.Int64}
	if m.rng.IntN(3) == 0 {
		s.Ops, of.Kind = []program.Op{convert.Op{To: program.Float32}}, program.Float32
	}
	m.addStep(s, of)
}

// addLengths adds the numbers of elements of some lists.
func (m *graphMaker) addLengths(rng *rand.Rand) {
	for i, of := range m.types {
		if of.List && rng.IntN(4) == 0 {
			m.addLength(uint32(i))
		}
	}
}

// textProgram makes a key of the ids of the parts of a text, one of the first part, and dense columns of the numbers of
// parts, of the elements of lists, and of those of lists whose nulls were filled.
func textProgram(f *format.File) *program.Program {
	dense := func(value, index uint32, ops ...program.Op) program.GraphSink {
		return program.GraphSink{Value: value, Sink: program.Sink{To: program.ToDense, Index: index,
			Ops: append(ops, convert.Op{To: program.Float32})}}
	}
	key := func(value, index uint32, ops ...program.Op) program.GraphSink {
		return program.GraphSink{Value: value, Sink: program.Sink{To: program.ToSparse, Index: index, Ops: ops}}
	}
	length := func(value uint32) program.Step {
		return program.Step{Inputs: []uint32{value}, Combine: listlength.Op{}}
	}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "a_text", Kind: program.Bytes, Part: program.GraphFirst},
			{Name: f.Leaves[1].Path, Kind: program.Bytes, List: true, Part: program.GraphNext},
			{Name: f.Leaves[2].Path, Kind: program.Int64, List: true, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0}, Combine: split.Op{Separator: "|"}}, // 3
				{Inputs: []uint32{0}, Combine: split.Op{Separator: "|", Empty: split.KeepEmpty},
					Ops: []program.Op{hextoint.Op{}}}, // 4
				length(3), // 5
				length(4), // 6
				length(1), // 7
				length(2), // 8
				{Inputs: []uint32{2}, Ops: []program.Op{fillnull.Op{Int: 9}}}, // 9
				length(9), // 10
				{Inputs: []uint32{2}, Combine: enumerate.Op{}, Ops: []program.Op{firstx.Op{N: 1}}}, // 11
				length(11), // 12
			},
			Sinks: []program.GraphSink{
				key(3, 0, hextoint.Op{}), key(3, 1, hextoint.Op{}, firstx.Op{N: 1}), key(4, 2),
				key(5, 3, positivemodulus.Op{M: 2}),
				dense(5, 0), dense(6, 1), dense(7, 2), dense(8, 3), dense(10, 4), dense(12, 5),
			},
		}},
		Output: program.Output{Keys: 4, Dense: 6, IDs: program.IDs64},
	}
}

// TestPartsOfTexts checks a mini-batch that is written down: parts of texts, and how many elements lists have.
func TestPartsOfTexts(t *testing.T) {
	text := func(s string) any { return []byte(s) }
	cols := []testColumn{
		{name: "a_text", physical: format.ByteArray, optional: true, text: true,
			rows: []any{text("1|22"), text("3"), nil, text(""), text("|4||5|")}},
		{name: "b_words", physical: format.ByteArray, list: true, optional: true, elements: true, text: true,
			rows: []any{[]any{text("x"), text("yy")}, nil, []any{text("z"), nil}, []any{}, []any{text("")}}},
		{name: "c_ids", physical: format.Int64, list: true, optional: true, elements: true,
			rows: []any{[]any{int64(1), int64(2), int64(3)}, []any{int64(1), nil}, nil, []any{}, []any{nil}}},
	}
	data := writeFile(t, cols, layout{groupRows: 5, batchRows: 2, pageBytes: 64, version: 1})
	f := readFooter(t, data)
	requireMiniBatch(t, textProgram(f), f, data, &reference.Tensors{
		Rows: 5,
		Lengths: []int32{
			2, 1, 0, 0, 2,
			1, 1, 0, 0, 1,
			2, 1, 0, 0, 0, // an empty text is null as a number, and a list that holds a null is empty
			1, 1, 1, 1, 1,
		},
		Values: []int64{1, 0x22, 3, 4, 5, 1, 3, 4, 1, 0x22, 3, 0, 1, 0, 0, 0},
		Dense: []float32{
			2, 2, 2, 3, 3, 1,
			1, 1, 0, 0, 2, 0,
			0, 0, 0, 0, 0, 0,
			0, 0, 0, 0, 0, 0,
			2, 0, 1, 0, 1, 0,
		},
	})
}

// partsProgram makes a key of the parts of a text.
func partsProgram(o split.Op) *program.Program {
	return &program.Program{
		Source:  program.Parquet,
		Columns: []program.Column{{Name: "text", Kind: program.Bytes, Part: program.GraphFirst}},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0}, Combine: o, Ops: []program.Op{hashbytes.Op{}}}},
			Sinks: []program.GraphSink{{Value: 1, Sink: program.Sink{To: program.ToSparse}}},
		}},
		Output: program.Output{Keys: 1},
	}
}

// TestTextsOfManyParts checks texts at both sides of the greatest number of parts, and a long text of one part.
func TestTextsOfManyParts(t *testing.T) {
	long := bytes.Repeat([]byte("long text"), 1<<19)
	most := bytes.Repeat([]byte("a|"), split.MaxParts)
	run := func(text []byte, o split.Op) (*reference.Tensors, error) {
		cols := []testColumn{{name: "text", physical: format.ByteArray, text: true, rows: []any{[]byte("b"), text}}}
		data := writeFile(t, cols, layout{groupRows: 2, batchRows: 2, pageBytes: 1 << 24, version: 1})
		h := newHost(engine.New(engine.Options{}), partsProgram(o), readFooter(t, data), data, 1)
		h.wholeChunks = true
		return h.miniBatch(0, 2)
	}
	drop, keep := split.Op{Separator: "|"}, split.Op{Separator: "|", Empty: split.KeepEmpty}
	for name, c := range map[string]struct {
		text  []byte
		op    split.Op
		parts int32
	}{
		"the most parts":                {most, drop, split.MaxParts},
		"a part more than the most":     {append(bytes.Clone(most), 'a'), drop, 0},
		"an empty part more":            {most, keep, 0},
		"one part":                      {long, drop, 1},
		"one part of several megabytes": {long[:1<<22+1], split.Op{Separator: "\x00"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := run(c.text, c.op)
			if c.parts > 0 {
				require.NoError(t, err)
				require.Equal(t, []int32{1, c.parts}, m.Lengths)
				return
			}
			var bad *sliceFailure
			require.ErrorAs(t, err, &bad)
			require.Equal(t, program.BadData, bad.state)
			require.Contains(t, bad.message, `column "text": page 0`)
			require.Contains(t, bad.message, "split: row 0 has 1048577: too many parts of one text, which are at most 1048576")
		})
	}
}
