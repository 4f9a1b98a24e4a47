package cosim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// levels are the levels of one section for unit list_lengths.
type levels struct {
	repetitions, definitions []uint8
}

// drawLevels draws the levels of whole rows with at least count pairs.
func drawLevels(draw *rand.Rand, ct format.ColumnType, count int) levels {
	var l levels
	add := func(repetition, definition uint8) {
		l.repetitions, l.definitions = append(l.repetitions, repetition), append(l.definitions, definition)
	}
	element := func() uint8 { // a definition level of an element, null one time in four
		if draw.IntN(4) > 0 {
			return ct.MaxDef
		}
		return ct.RepDef + uint8(draw.IntN(int(ct.MaxDef-ct.RepDef)+1))
	}
	for len(l.repetitions) < count {
		if ct.List && draw.IntN(3) == 0 { // empty or null
			add(0, uint8(draw.IntN(int(ct.RepDef))))
			continue
		}
		add(0, element())
		if ct.List {
			for range draw.IntN([]int{1, 3, 12, 40}[draw.IntN(4)]) {
				add(1, element())
			}
		}
	}
	return l
}

// levelTypes are columns with every combination of what can be null.
func levelTypes() []format.ColumnType {
	list := func(element, greatest uint8) format.ColumnType {
		return format.ColumnType{Physical: format.Int32, List: true, MaxRep: 1, RepDef: element, MaxDef: greatest}
	}
	return []format.ColumnType{list(1, 1), list(1, 2), list(2, 2), list(2, 3), list(5, 9), list(62, 63),
		{Physical: format.Int32}, {Physical: format.Int32, MaxDef: 1}, {Physical: format.Int32, MaxDef: 3}}
}

// levelCases have sections of every type of column: good ones, ones with a wrong level, ones of few pairs, ones whose
// transfers hold any number of pairs, and sections that follow one another.
func levelCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	for _, ct := range levelTypes() {
		setup, err := rtl.ListLengths(ct)
		require.NoError(t, err)
		add := func(name string, size func() int, sections ...levels) {
			c := unitCase{
				name: fmt.Sprintf("list_lengths %s: %d pairs, element %d of %d", name, len(sections[0].repetitions),
					ct.RepDef, ct.MaxDef),
				setup: setup, read: eachSection("list_lengths", rowsOf),
			}
			for _, l := range sections {
				c.stream.Words = append(c.stream.Words, rtl.LevelTransfers(l.repetitions, l.definitions, size)...)
			}
			c.cycles = len(c.stream.Words) + len(sections) // the last row has a cycle of its own
			c.kernel = func(*testing.T, Stream) []uint64 { return saidOf(sections, ct, levelKernel) }
			c.reference = func(Stream) []uint64 { return saidOf(sections, ct, levelReference) }
			cases = append(cases, c)
		}
		full := func() int { return 8 }
		drawn := func() int { return draw.IntN(9) }
		for _, n := range []int{0, 1, 8, 9, count / 4} {
			good := drawLevels(draw, ct, n)
			add("good", full, good)
			add("good, in parts", drawn, good)
			if n > 0 && ct.List {
				add("a wrong level", full, wrongLevels(draw, ct, good))
				add("a wrong level, in parts", drawn, wrongLevels(draw, ct, good))
			}
		}
		for _, size := range []func() int{full, drawn} {
			var sections []levels
			for turn := range 2 + count/32 {
				l := drawLevels(draw, ct, draw.IntN(count/16))
				if turn%2 == 1 && ct.List && len(l.repetitions) > 0 {
					l = wrongLevels(draw, ct, l)
				}
				sections = append(sections, l)
			}
			add(fmt.Sprintf("%d sections", len(sections)), size, sections...)
		}
	}
	return cases
}

// wrongLevels returns levels of which one is changed, to one that is often wrong.
func wrongLevels(draw *rand.Rand, ct format.ColumnType, l levels) levels {
	l.repetitions, l.definitions = slices.Clone(l.repetitions), slices.Clone(l.definitions)
	at := draw.IntN(len(l.repetitions))
	if draw.IntN(2) == 0 {
		l.repetitions[at] ^= 1
	} else {
		l.definitions[at] = uint8(draw.IntN(int(ct.MaxDef) + 1))
	}
	return l
}

// saidOf returns what a kernel or reference says of sections, one behind the other.
func saidOf(sections []levels, ct format.ColumnType, say func(format.ColumnType, levels) []uint64) []uint64 {
	var said []uint64
	for _, l := range sections {
		said = append(said, say(ct, l)...)
	}
	return said
}

// levelPage returns a page that holds levels, with values of 0.
func levelPage(ct format.ColumnType, l levels) (format.PageHeader, []byte) {
	packed := func(levels []uint8, greatest uint8) []byte { // as runs of one
		var b []byte
		for _, level := range levels {
			if greatest > 0 {
				b = append(b, 1<<1, level)
			}
		}
		return b
	}
	h := format.PageHeader{Type: format.DataPageV2, NumValues: int32(len(l.repetitions)), Encoding: format.Plain}
	repetitions, definitions := packed(l.repetitions, ct.MaxRep), packed(l.definitions, ct.MaxDef)
	values := 0
	for i, definition := range l.definitions {
		if l.repetitions[i] == 0 {
			h.NumRows++
		}
		if definition == ct.MaxDef {
			values++
		} else {
			h.NumNulls++
		}
	}
	h.RepBytes, h.DefBytes = int32(len(repetitions)), int32(len(definitions))
	page := append(append(repetitions, definitions...), make([]byte, 4*values)...)
	h.Compressed, h.Uncompressed = int32(len(page)), int32(len(page))
	return h, page
}

// levelKernel returns what the drive's decoder makes of levels: length and presence of each row, and the presence of
// each element.
func levelKernel(ct format.ColumnType, l levels) []uint64 {
	h, page := levelPage(ct, l)
	var d decoder.Decoder
	var b decoder.Block
	b.Reset(ct.Kind())
	if err := d.Reset(&ct, &h, page, nil); err != nil {
		return []uint64{sectionIsDamaged}
	}
	if _, err := d.Next(&b, int(h.NumRows)); err != nil || d.Rows() > 0 {
		return []uint64{sectionIsDamaged}
	}
	var said []uint64
	for row := range b.Rows {
		length, present := uint64(1), uint64(1)
		if ct.List {
			length = uint64(b.Lengths[row])
		}
		if len(b.RowValid) > 0 {
			present = uint64(b.RowValid[row])
		}
		said = append(said, length, present)
	}
	for element := range b.I64 {
		present := uint64(1)
		if len(b.Valid) > 0 {
			present = uint64(b.Valid[element])
		}
		said = append(said, present)
	}
	return said
}

// levelReference returns the same from the decoder that works level by level.
func levelReference(ct format.ColumnType, l levels) []uint64 {
	h, page := levelPage(ct, l)
	chunk := reference.Chunk{Type: ct}
	if err := chunk.AddPage(&h, page); err != nil {
		return []uint64{sectionIsDamaged}
	}
	var said, elements []uint64
	presence := func(value any) uint64 { return one(value != nil) }
	for _, row := range chunk.Rows {
		list, ok := row.([]any)
		switch {
		case !ct.List:
			said, elements = append(said, 1, 1), append(elements, presence(row))
		case !ok:
			said = append(said, 0, 0)
		default:
			said = append(said, uint64(len(list)), 1)
			for _, value := range list {
				elements = append(elements, presence(value))
			}
		}
	}
	return append(said, elements...)
}

// one returns 1 for true.
func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// rowsOf returns the rows and elements of one section in the results of unit list_lengths, or that it is damaged. The
// error says how the results contradict themselves.
func rowsOf(results []uint64) ([]uint64, error) {
	const words = 2
	var said, elements []uint64
	damaged := false
	for at := 0; at < len(results); at += words {
		result := rtl.ListRows(results[at : at+words])
		switch {
		case damaged && !result.Damaged:
			return nil, fmt.Errorf("result %d: the section is no longer damaged", at/words)
		case result.Last != (at+words == len(results)):
			return nil, fmt.Errorf("result %d of %d: last is %v", at/words, len(results)/words, result.Last)
		case !result.Tidy:
			return nil, fmt.Errorf("result %d: fields behind those that count are not 0", at/words)
		}
		damaged = result.Damaged
		for row, length := range result.Lengths {
			said = append(said, uint64(length), one(result.RowPresent[row]))
		}
		for _, present := range result.Present {
			elements = append(elements, one(present))
		}
	}
	if damaged {
		return []uint64{sectionIsDamaged}, nil
	}
	return append(said, elements...), nil
}
