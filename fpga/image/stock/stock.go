package stock

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/google/uuid"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/program"
)

// Platform is the platform of the stock image.
const Platform = "millrace-csd"

// Interface is the shell's interface that the stock image needs and that drives of this project have: a UUIDv5 of
// its name.
func Interface() uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("millrace csd shell interface 1"))
}

// Image builds the image that a drive leaves the factory with: every unit of this build, and known answers for them.
// Operators declare theirs (package fpga/operator); the other vectors test rows of text, pages, maps, graphs and lookup
// tables. The bytes are the same in every run of one build; a golden file has the id.
//
// It states no parameters and no resources: most of its units are not in fpga/rtl, and the software drive runs as fast
// as its host.
func Image() ([]byte, error) {
	answers, err := answerVectors(operator.KnownAnswers())
	if err != nil {
		return nil, err
	}
	s := &image.Spec{
		Platform:  Platform,
		Interface: Interface(),
		Memories:  memories(),
		Partition: partition(),
		SelfTest: append(
			[]image.Vector{rowsVector(), chunksVector(), mapsVector(), scoredVector(), lookupsVector()},
			answers...),
		Build: image.BuildInfo{Tool: "millrace", Reproducible: true},
	}
	for _, u := range program.Known() {
		if u.Unit == wasm.Unit { // the image has no module
			continue
		}
		s.AddUnit(u)
	}
	return image.Build(s)
}

// memories and partition are those of every stock image.
func memories() []image.Memory { return []image.Memory{{Name: "slm", Type: "ddr4", Size: 4 << 30}} }

func partition() image.Partition { return image.Partition{Slots: 2} }

// rowsVector is a known answer for text rows: two rows of Criteo's format, one full of nulls, through the operators
// that take numbers. Every expected value is written down, none computed.
func rowsVector() image.Vector {
	const rows = 2
	p := &program.Program{Source: program.CriteoTSV, Label: true}
	column := func(name string, field uint16, sinks ...program.Sink) {
		p.Columns = append(p.Columns, program.Column{Name: name, Field: field, Kind: program.Int64, Sinks: sinks})
	}
	sparse := func(key uint32, ops ...program.Op) program.Sink {
		return program.Sink{To: program.ToSparse, Index: key, Ops: ops}
	}
	column("cat_0", 14, sparse(0, fillnull.Op{Int: 6}, sigridhash.Op{Salt: 0, Max: 100}))
	column("cat_1", 15, sparse(1, fillnull.Op{Int: -7}, zeroextend.Op{}))
	column("cat_2", 16, sparse(2, fillnull.Op{Int: -7}, positivemodulus.Op{M: 5}))
	column("int_1", 2, sparse(3, fillnull.Op{Int: -3}, convert.Op{To: program.Float32},
		&bucketize.Op{Borders32: []float32{0, 10, 20}}))
	column("label", 0, program.Sink{To: program.ToLabel, Ops: []program.Op{convert.Op{To: program.Float32}}})
	column("int_0", 1, program.Sink{To: program.ToDense, Ops: []program.Op{
		fillnull.Op{Int: 0}, clamp.Op{IntLo: 0,
			IntHi: math.MaxInt64}, convert.Op{To: program.Float32}, log.Op{Add: 1},
	}})
	p.Output = program.Output{Label: true, Dense: 1, Keys: 4, IDs: program.IDs64, Fixed: true}

	// 40 fields: label, int_0 to int_12, cat_0 to cat_25. The second row has a label and nulls.
	input := []byte("1\t9\t10" + strings.Repeat("\t", 11) + "\t1\tffffffff\tc" + strings.Repeat("\t", 23) + "\n" +
		"0" + strings.Repeat("\t", 39) + "\n")
	place := p.Output.Layout(rows)
	out := make([]byte, place.Values+4*rows*8)
	le := binary.LittleEndian
	le.PutUint32(out[place.Dense:], 0x40135d8e) // ln(1 + 9), rounded to nearest
	le.PutUint32(out[place.Dense+4:], 0)        // null: ln(1 + 0)
	le.PutUint32(out[place.Label:], math.Float32bits(1))
	le.PutUint32(out[place.Label+4:], 0)
	for i, v := range []int64{
		60, 91, // SigridHash(salt 0, max 100) of 1 and of 6: TorchArrow's own test
		1<<32 - 1, 1<<32 - 7,
		2, 3, // 12 mod 5; -7 mod 5 is positive
		1, 0, // 10 lies on a border and falls to its left; -3 is below all
	} {
		le.PutUint64(out[place.Values+uint64(i)*8:], uint64(v))
	}
	slice := &program.Slice{
		Rows: rows, Layout: place, ValueCap: 4 * rows,
		Tasks: []program.Task{{
			Count: rows, Window: program.Span{Len: uint64(len(input))}, ChunkLen: uint64(len(input)),
			Scratch: program.Span{Len: 4096},
		}},
	}
	v := image.ProgramVector("text rows", p, slice, input, out)
	v.Dict = 0 // text has no dictionary
	return v
}

// chunksVector is a known answer for Parquet pages: strings of hexadecimal digits and a list, by hand.
func chunksVector() image.Vector {
	const rows = 2
	p := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "hex", Kind: program.Bytes, Sinks: []program.Sink{{To: program.ToSparse,
				Ops: []program.Op{hextoint.Op{}}}}},
			{Name: "ids", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse, Index: 1,
				Ops: []program.Op{firstx.Op{N: 2}}}}},
			{Name: "windows", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse, Index: 2,
				Ops: []program.Op{ngram.Op{N: 2}}}}},
			{Name: "listed", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse, Index: 3,
				Ops: []program.Op{ngram.Op{N: 2, Mode: ngram.RAP}}}}},
			{Name: "parts", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse, Index: 4,
				Ops: []program.Op{listslice.Op{Start: -2, End: listslice.NoEnd, Padded: true, PadInt: 9}}}}},
		},
		Output: program.Output{Keys: 5, IDs: program.IDs64},
	}
	le := binary.LittleEndian
	var hex []byte
	for _, s := range []string{"1f", "DEADBEEF"} {
		hex = append(le.AppendUint32(hex, uint32(len(s))), s...)
	}
	hex = image.DataPage(hex, rows)
	// Two lists, {5, 6, 7} and {-8}: repetition levels 0 1 1 0 bit-packed, definition levels 1 1 1 1 as a run.
	listPage := func(values ...int64) []byte {
		page := []byte{2, 0, 0, 0, 0x03, 0b0110, 2, 0, 0, 0, 4 << 1, 1}
		for _, v := range values {
			page = le.AppendUint64(page, uint64(v))
		}
		return image.DataPage(page, 4)
	}
	ids, windows := listPage(5, 6, 7, -8), listPage(1, 2, 3, -8)

	place := p.Output.Layout(rows)
	// Of the list 1, 2, 3 the windows of two ids, and of the list of one id none; the ids of these windows, and the one
	// id; then the last two ids of both, or 9.
	values := []int64{0x1f, 0xdeadbeef, 5, 6, -8, -5286723046509945304, -5814142665615228097,
		1, 2, 2, 3, -8, 2, 3, -8, 9}
	out := make([]byte, place.Values+uint64(len(values))*8)
	for i, n := range []uint32{1, 1, 2, 1, 2, 0, 4, 1, 2, 2} { // lengths, key by key
		le.PutUint32(out[place.Lengths+uint64(i)*4:], n)
	}
	for i, v := range values {
		le.PutUint64(out[place.Values+uint64(i)*8:], uint64(v))
	}
	h, n := uint64(len(hex)), uint64(len(ids))
	slice := &program.Slice{
		Rows: rows, Layout: place,
		ValueCap: uint64(len(values)),
		Tasks: []program.Task{
			{Column: 0, Count: rows, Chunk: program.ChunkType{Physical: 6, Values: 2}, Window: program.Span{Len: h},
				ChunkLen: h},
			{Column: 1, Count: rows, Chunk: program.ChunkType{Physical: 2, MaxDef: 1, MaxRep: 1, ElementDef: 1,
				Values: 4},
				Window: program.Span{Off: h, Len: n}, ChunkLen: n},
			{Column: 2, Count: rows, Chunk: program.ChunkType{Physical: 2, MaxDef: 1, MaxRep: 1, ElementDef: 1,
				Values: 4},
				Window: program.Span{Off: h + n, Len: uint64(len(windows))}, ChunkLen: uint64(len(windows))},
			{Column: 3, Count: rows, Chunk: program.ChunkType{Physical: 2, MaxDef: 1, MaxRep: 1, ElementDef: 1,
				Values: 4},
				Window: program.Span{Off: h + n, Len: uint64(len(windows))}, ChunkLen: uint64(len(windows))},
			{Column: 4, Count: rows, Chunk: program.ChunkType{Physical: 2, MaxDef: 1, MaxRep: 1, ElementDef: 1,
				Values: 4},
				Window: program.Span{Off: h + n, Len: uint64(len(windows))}, ChunkLen: uint64(len(windows))},
		},
	}
	return image.ProgramVector("parquet pages", p, slice, append(append(hex, ids...), windows...), out)
}

// mapsVector is a known answer for maps: one of ids to scored lists, by hand. Row 0 is {4: {50: 0.5, 60: 1.5}, 9: {70:
// 2}}, row 1 is {9: {}}, row 2 is {9: {80: 3}, 4: {90: 4}}.
func mapsVector() image.Vector {
	const rows = 3
	sink := func(key uint32, ops ...program.Op) program.Sink {
		return program.Sink{To: program.ToSparse, Index: key, Ops: ops}
	}
	p := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "m.key_value.key", Kind: program.Int64, Part: program.MapKeys},
			{Name: "m.key_value.value.key_value.key", Kind: program.Int64, List: true, Part: program.MapValues,
				Sinks: []program.Sink{sink(0), sink(1, firstx.Op{N: 1})},
				Picks: []program.Pick{{Key: 9, Scored: true},
					{Key: 4}}},
			{Name: "m.key_value.value.key_value.value", Kind: program.Float32, List: true, Part: program.MapScores},
		},
		Output: program.Output{Keys: 2, IDs: program.IDs64, Weights: true},
	}
	le := binary.LittleEndian
	section := func(b ...byte) []byte { return append(le.AppendUint32(nil, uint32(len(b))), b...) }
	// Levels are packed: from the lowest bit on one bit each for the keys, two for the values inside the lists.
	keys := append(section(0x03, 0b10010), section(5<<1, 1)...)
	for _, k := range []uint64{4, 9, 9, 9, 4} {
		keys = le.AppendUint64(keys, k)
	}
	keys = image.DataPage(keys, 5)
	// Repetition 0 2 1 0 0 1, definition 2 2 2 1 2 2.
	inner := append(section(0x03, 0b00_01_10_00, 0b01_00), section(3<<1, 2, 1<<1, 1, 2<<1, 2)...)
	ids, scores := inner[:len(inner):len(inner)], inner[:len(inner):len(inner)]
	for _, id := range []uint64{50, 60, 70, 80, 90} {
		ids = le.AppendUint64(ids, id)
	}
	for _, s := range []float32{0.5, 1.5, 2, 3, 4} {
		scores = le.AppendUint32(scores, math.Float32bits(s))
	}
	ids, scores = image.DataPage(ids, 6), image.DataPage(scores, 6)

	const room = 64
	size := p.Output.Size(rows, room)
	place, _ := p.Output.LayoutIn(rows, size)
	out := make([]byte, size)
	for i, n := range []uint32{1, 0, 1, 1, 0, 1} { // lengths, key by key
		le.PutUint32(out[place.Lengths+uint64(i)*4:], n)
	}
	// Behind the values lies what they were put in order from: row by row.
	for i, v := range []uint64{70, 80, 50, 90, 70, 50, 80, 90} {
		le.PutUint64(out[place.Values+uint64(i)*8:], v)
	}
	for i, w := range []float32{2, 3, 1, 1, 2, 1, 3, 1} {
		le.PutUint32(out[place.Weights+uint64(i)*4:], math.Float32bits(w))
	}
	k, i, s := uint64(len(keys)), uint64(len(ids)), uint64(len(scores))
	nested := program.ChunkType{Physical: 2, MaxDef: 2, MaxRep: 2, ElementDef: 2, EntryDef: 1, Values: 6}
	reals := nested
	reals.Physical = 4
	slice := &program.Slice{
		Rows: rows, Layout: place, ValueCap: room,
		Tasks: []program.Task{
			{Column: 0, Count: rows, Chunk: program.ChunkType{Physical: 2, MaxDef: 1, MaxRep: 1, ElementDef: 1,
				Values: 5},
				Window: program.Span{Len: k}, ChunkLen: k},
			{Column: 1, Count: rows, Chunk: nested, Window: program.Span{Off: k, Len: i}, ChunkLen: i},
			{Column: 2, Count: rows, Chunk: reals, Window: program.Span{Off: k + i, Len: s}, ChunkLen: s},
		},
	}
	return image.ProgramVector("maps", p, slice, append(append(keys, ids...), scores...), out)
}
