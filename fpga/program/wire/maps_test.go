package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
)

// mapProgram reads one map of each shape, as DPP's tables have them.
func mapProgram() *program.Program {
	hash := []program.Op{sigridhash.Op{Max: 1000}}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "s.key_value.key", Kind: program.Int64, Part: program.MapKeys},
			{Name: "s.key_value.value.key_value.key", Kind: program.Int64, List: true, Part: program.MapValues,
				Sinks: []program.Sink{
					{To: program.ToSparse, Ops: []program.Op{firstx.Op{N: 3}, sigridhash.Op{Max: 1000}}},
					{To: program.ToSparse, Index: 1, Ops: hash},
				},
				Picks: []program.Pick{{Key: 9, Scored: true}, {Key: -1}}},
			{Name: "s.key_value.value.key_value.value", Kind: program.Float64, List: true, Part: program.MapScores},
			{Name: "l.key_value.key", Kind: program.Int64, Part: program.MapKeys},
			{Name: "l.key_value.value.list.element", Kind: program.Int64, List: true, Part: program.MapValues,
				Sinks: []program.Sink{{To: program.ToSparse, Index: 2, Ops: hash}}, Picks: []program.Pick{{Key: 9}}},
			{Name: "id", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse, Index: 3}}},
			{Name: "f.key_value.key", Kind: program.Int64, Part: program.MapKeys},
			{Name: "f.key_value.value", Kind: program.Float32, Part: program.MapValues, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 4, Ops: []program.Op{&bucketize.Op{Borders32: []float32{1, 2}}}},
				{To: program.ToDense, Index: 1, Ops: []program.Op{fillnull.Op{}}},
				{
					To:  program.ToDense,
					Ops: []program.Op{fillnull.Op{}, log.Op{Add: 1}},
				}, {To: program.ToLabel, Ops: []program.Op{fillnull.Op{}}},
			}, Picks: []program.Pick{{Key: 1}, {Key: 1}, {Key: 2}, {Key: 3}}},
		},
		Output: program.Output{Label: true, Dense: 2, Keys: 5, IDs: program.IDs32, Weights: true},
	}
}

// textKeyProgram reads maps whose keys are text: one by itself, and one for a graph.
func textKeyProgram() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "tags.key_value.key", Kind: program.Bytes, Part: program.MapKeys},
			{
				Name: "tags.key_value.value",
				Kind: program.Int64,
				Part: program.MapValues,
				Sinks: []program.Sink{{To: program.ToSparse},
					{To: program.ToSparse, Index: 1}, {To: program.ToSparse, Index: 2}},
				Picks: []program.Pick{{Text: "color"}, {Text: ""}, {Text: "color"}},
			},
			{Name: "s.key", Kind: program.Bytes, Part: program.GraphFirst, MapLeaf: program.MapKeys},
			{Name: "s.id", Kind: program.Int64, List: true, Part: program.GraphNext, MapLeaf: program.MapValues,
				Picks: []program.Pick{{Text: "größe"}, {Text: "color"}}},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0, 1}, Combine: cartesian.Op{MaxLength: 9}}},
			Sinks: []program.GraphSink{{Value: 2, Sink: program.Sink{To: program.ToSparse, Index: 3}}},
		}},
		Output: program.Output{Keys: 4},
	}
}

func TestTextsOfKeys(t *testing.T) {
	b := wire.Marshal(textKeyProgram())
	// A section of texts, or none, against what the columns say.
	_, err := operator.Unmarshal(
		reseal(wire.AppendSection(wire.Marshal(mapProgram()), wire.SectionTexts,
			func(b []byte) []byte { return wire.AppendTexts(textKeyProgram(), b) })),
	)
	require.ErrorIs(t, err, wire.ErrCorrupt)
	none := bytes.Clone(b[:bytes.LastIndex(b, []byte{wire.SectionTexts, 0, wire.FlagRequired, 0})])
	le.PutUint32(none[12:], le.Uint32(none[12:])-1)
	_, err = operator.Unmarshal(reseal(none))
	require.ErrorIs(t, err, wire.ErrCorrupt)
}

// textValueProgram reads maps whose values are text or other bytes: by themselves, and for a graph.
func textValueProgram() *program.Program {
	hash := []program.Op{hashbytes.Op{}}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "tags.key", Kind: program.Int64, Part: program.MapKeys},
			{
				Name: "tags.value",
				Kind: program.Bytes,
				Part: program.MapValues,
				Sinks: []program.Sink{{To: program.ToSparse, Ops: hash},
					{To: program.ToDense, Ops: []program.Op{float16.Op{}, fillnull.Op{}}}},
				Picks: []program.Pick{{Key: 3}, {Key: 4}},
			},
			{Name: "words.key", Kind: program.Bytes, Part: program.MapKeys},
			{
				Name:  "words.id",
				Kind:  program.Bytes,
				List:  true,
				Part:  program.MapValues,
				Sinks: []program.Sink{{To: program.ToSparse, Index: 1, Ops: hash}},
				Picks: []program.Pick{{Text: "a", Scored: true}},
			},
			{Name: "words.score", Kind: program.Float32, List: true, Part: program.MapScores},
			{Name: "s.key", Kind: program.Bytes, Part: program.GraphFirst, MapLeaf: program.MapKeys},
			{Name: "s.id", Kind: program.Bytes, List: true, Part: program.GraphNext, MapLeaf: program.MapValues,
				Picks: []program.Pick{{Text: "b", Scored: true}, {Text: "a"}}},
			{Name: "s.score", Kind: program.Float64, List: true, Part: program.GraphNext, MapLeaf: program.MapScores},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0}, Ops: hash}, {Inputs: []uint32{1}, Ops: hash},
				{Inputs: []uint32{2, 3}, Combine: idlisttransform.Op{}}},
			Sinks: []program.GraphSink{{Value: 2, Scored: true, Sink: program.Sink{To: program.ToSparse, Index: 2}},
				{Value: 4, Sink: program.Sink{To: program.ToSparse, Index: 3}}},
		}},
		Output: program.Output{Keys: 4, Dense: 1, Weights: true},
	}
}

func TestTextValuesThatAreRefused(t *testing.T) {
	refused(t, textValueProgram, whole, map[string]refusal[*program.Program]{
		"text that nothing reads": {func(p *program.Program) { p.Columns[1].Sinks[0].Ops = nil }, "bytes"},
		"scores that are text":    {func(p *program.Program) { p.Columns[4].Kind = program.Bytes }, "scores are bytes"},
		"in a graph, too":         {func(p *program.Program) { p.Columns[7].Kind = program.Bytes }, "scores are bytes"},
		"scored text as it is":    {func(p *program.Program) { p.Graphs[0].Sinks[0].Value = 0 }, "bytes"},
		"scored real numbers": {func(p *program.Program) { p.Columns[6].Kind = program.Float64 },
			"scores that are not read"},
	})
}

func TestTextKeysThatDoNotFit(t *testing.T) {
	refused(t, textKeyProgram, whole, map[string]refusal[*program.Program]{
		"a number": {func(p *program.Program) { p.Columns[1].Picks[0] = program.Pick{Key: 3} }, "the number 3 as a key"},
		"no UTF-8": {func(p *program.Program) { p.Columns[1].Picks[0].Text = "a\xff" }, "is not UTF-8"},
		"too long": {func(p *program.Program) { p.Columns[1].Picks[0].Text = strings.Repeat("a", program.MaxName+1) },
			"4097 bytes"},
		"of a list": {func(p *program.Program) { p.Columns[0].List = true }, "keys are bytes (list: true)"},
		"text for numbers": {func(p *program.Program) { p.Columns[0].Kind = program.Int64 },
			`the text "color" as a key of a map ` +
				"whose keys are int64"},
		"in a graph": {func(p *program.Program) { p.Columns[3].Picks[1] = program.Pick{Key: 3} }, "the number 3 as a key"},
		"real keys":  {func(p *program.Program) { p.Columns[2].Kind = program.Float64 }, "want int64 or bytes"},
	})
	p := textKeyProgram()
	p.Columns[1].Picks[0].Text = strings.Repeat("a", program.MaxName)
	require.NoError(t, p.Validate())
	_, err := operator.Unmarshal(wire.Marshal(p))
	require.NoError(t, err)
}

// mapSlice is a slice that needs version 1.2.
func mapSlice() *program.Slice {
	s := someSlice()
	s.Layout.Weights = 1 << 20
	s.Tasks[0].Chunk.MaxRep, s.Tasks[0].Chunk.EntryDef = 2, 1
	return s
}

func TestSliceOfMaps(t *testing.T) {
	b := wire.MarshalSlice(mapSlice())
	goldenfile.Bytes(t, "testdata/slice.v1.2.hex", b)
	s, err := wire.UnmarshalSlice(b)
	require.NoError(t, err)
	assert.Equal(t, mapSlice(), s)
	assert.Equal(t, uint16(2), le.Uint16(b[6:]))
}

func TestMapsDamage(t *testing.T) {
	// A section that names no map is refused, and so is a section that names a column twice.
	empty := mapProgram()
	for i := range empty.Columns {
		empty.Columns[i].Part, empty.Columns[i].Picks = program.NoPart, nil
	}
	_, err := operator.Unmarshal(reseal(wire.AppendSection(wire.Marshal(empty), wire.SectionMaps,
		func(b []byte) []byte { return wire.AppendMaps(empty, b) })))
	require.ErrorIs(t, err, wire.ErrCorrupt)
	whole := wire.Marshal(mapProgram())
	at := bytes.LastIndex(whole, []byte{wire.SectionMaps, 0, wire.FlagRequired, 0}) + wire.SectionSize + 8
	le.PutUint32(whole[at:], 1)
	_, err = operator.Unmarshal(reseal(whole))
	require.ErrorIs(t, err, wire.ErrCorrupt)
}

func TestMapsUnits(t *testing.T) {
	assert.Contains(t, mapProgram().Units(), program.UnitRef{Unit: program.UnitMap, Version: 1})
	assert.Contains(t, mapSteps().Units(), program.UnitRef{Unit: program.UnitMap, Version: 1})
	assert.NotContains(t, everyOp().Units(), program.UnitRef{Unit: program.UnitMap, Version: 1})
	assert.Contains(t, program.Known(), program.UnitRef{Unit: program.UnitMap, Version: 1})
	assert.Equal(t, "map", program.UnitMap.String())
}

func TestMapsParts(t *testing.T) {
	p := mapProgram()
	var parts []int
	for i := 0; i < len(p.Columns); i += p.Parts(i) {
		parts = append(parts, p.Parts(i))
	}
	assert.Equal(t, []int{3, 2, 1, 2}, parts)
}

func TestPartsInWords(t *testing.T) {
	assert.Equal(
		t,
		"none keys values scores part(6)",
		program.NoPart.String()+" "+program.MapKeys.String()+" "+program.MapValues.String()+" "+
			program.MapScores.String()+" "+program.Part(
			6,
		).String(),
	)
}

func TestMapsValidate(t *testing.T) {
	refused(t, mapProgram, whole, map[string]refusal[*program.Program]{
		"no part": {func(p *program.Program) { p.Columns[0].Part = 6 }, "part(6) is not a part of a map"},
		"of text": {func(p *program.Program) { p.Source = program.CriteoTSV }, "a map with source criteo-tsv"},
		"a plain pick": {func(p *program.Program) { p.Columns[5].Picks = []program.Pick{{}} },
			"picks keys, and is not the values of a map"},
		"keys with a sink": {func(p *program.Program) { p.Columns[0].Sinks = []program.Sink{{To: program.ToSparse}} },
			"the keys of a map feed 1 sinks, want none"},
		"scores with a sink": {func(p *program.Program) { p.Columns[2].Sinks = []program.Sink{{To: program.ToSparse}} },
			"the scores of a map feed 1 sinks, want none"},
		"keys of reals": {func(p *program.Program) { p.Columns[0].Kind = program.Float32 },
			"keys are float32 (list: false), want int64"},
		"lists of keys": {func(p *program.Program) { p.Columns[0].List = true }, "keys are int64 (list: true), want int64"},
		"keys alone": {func(p *program.Program) { p.Columns[4].Part = program.NoPart; p.Columns[4].Picks = nil },
			"keys of a map without its values"},
		"values alone": {func(p *program.Program) {
			p.Columns[3].Part = program.NoPart
			p.Columns[3].Sinks = p.Columns[4].Sinks
		},
			"values of a map without its keys"},
		"a pick too few": {func(p *program.Program) { p.Columns[1].Picks = p.Columns[1].Picks[:1] }, "1 keys for 2 sinks"},
		"scores not there": {func(p *program.Program) { p.Columns[4].Picks[0].Scored = true },
			"sink 0: scores that are not read"},
		"windows of scored ids": {func(p *program.Program) { p.Columns[1].Sinks[0].Ops[0] = ngram.Op{N: 2} },
			"sink 0: ngram of scored ids"},
		"parts of scored ids": {func(p *program.Program) { p.Columns[1].Sinks[0].Ops[0] = listslice.Op{End: 2} },
			"sink 0: list_slice of scored ids"},
		"scores of scalars": {func(p *program.Program) { p.Columns[1].List = false; p.Columns[1].Sinks[0].Ops = nil },
			"scores of a map without"},
		"scores alone": {func(p *program.Program) { p.Columns[0].Part = program.MapScores }, "scores of a map without"},
		"scores of bytes": {func(p *program.Program) { p.Columns[2].Kind = program.Bytes },
			"scores are bytes (list: true), want lists of numbers"},
		"scores of scalar": {func(p *program.Program) { p.Columns[2].List = false },
			"scores are float64 (list: false), want lists of numbers"},
		"no scores": {func(p *program.Program) { p.Columns[1].Picks[0].Scored = false },
			"weights, and no scores to make them of"},
		"no tensor": {func(p *program.Program) { p.Output.Weights = false },
			"sink 0: scores that are not read, or have no tensor"},
		"no sinks":        {func(p *program.Program) { p.Columns[7].Sinks, p.Columns[7].Picks = nil, nil }, "no sinks"},
		"a list in dense": {func(p *program.Program) { p.Columns[7].List = true }, "cannot be"},
		"fixed lists": {func(p *program.Program) { p.Output.Fixed = true },
			"a list in an output where every length is 1"},
	})
}

// Size is the least output range in which LayoutIn finds room, the tensors are aligned, and do not touch.
func TestLayoutIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := program.Output{
			Label: rapid.Bool().Draw(t, "label"), Dense: rapid.Uint32Range(0, 3).Draw(t, "dense"), Keys: rapid.Uint32Range(0,
				3).Draw(t, "keys"),
			IDs: program.IDs(rapid.IntRange(0, 1).Draw(t, "ids")), Weights: rapid.Bool().Draw(t, "weights"),
		}
		rows, values := rapid.Uint32Range(1, 1000).Draw(t, "rows"), rapid.Uint64Range(0, 5000).Draw(t, "values")
		size := o.Size(rows, values)
		p, room := o.LayoutIn(rows, size)
		if o.Keys == 0 {
			require.Zero(t, room)
			return
		}
		require.GreaterOrEqual(t, room, values)
		require.Less(t, room, values+program.Align)
		require.LessOrEqual(t, p.Values+room*o.IDs.Bytes(), size)
		if !o.Weights {
			require.Zero(t, p.Weights)
			return
		}
		require.Zero(t, p.Weights%program.Align)
		require.GreaterOrEqual(t, p.Weights, p.Values+room*o.IDs.Bytes())
		require.LessOrEqual(t, p.Weights+4*room, size)
		_, room = o.LayoutIn(rows, p.Values)
		require.Zero(t, room)
	})
}
