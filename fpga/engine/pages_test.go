package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// The pages of these tests are written by hand and cut where no library cuts them: inside a row (v1), into empty
// pages, with pages in between that hold no data.

// thrift writes the compact protocol's few forms that a page header has.
type thrift struct {
	b    []byte
	last []int // field ids, one for each struct
}

func (w *thrift) field(id int, kind byte) {
	top := len(w.last) - 1
	w.b = append(w.b, byte(id-w.last[top])<<4|kind)
	w.last[top] = id
}

func (w *thrift) i32(id int, v int) {
	w.field(id, 5)
	w.b = binary.AppendUvarint(w.b, uint64(uint32(v)<<1)^uint64(uint32(int32(v)>>31)))
}

func (w *thrift) flag(id int, v bool) {
	if v {
		w.field(id, 1)
	} else {
		w.field(id, 2)
	}
}

func (w *thrift) open(id int) {
	if id > 0 {
		w.field(id, 12)
	}
	w.last = append(w.last, 0)
}

func (w *thrift) end() {
	w.b = append(w.b, 0)
	w.last = w.last[:len(w.last)-1]
}

// levelEntry is one value with its levels.
type levelEntry struct {
	rep, def int
	v        any
}

// entries returns a column's levels and values, row after row.
func (c *testColumn) entries() []levelEntry {
	var out []levelEntry
	for _, row := range c.rows {
		for _, v := range c.levels(nil, row, 0) {
			out = append(out, levelEntry{v.RepetitionLevel(), v.DefinitionLevel(), nil})
		}
		at := len(out) - len(c.levels(nil, row, 0))
		list, ok := row.([]any)
		if !ok {
			out[at].v = row
			continue
		}
		element, _ := c.maxLevels()
		if c.elements {
			element--
		}
		for i := at; i < len(out); i++ {
			if out[i].def >= element {
				out[i].v, list = list[0], list[1:]
			}
		}
	}
	return out
}

// levelRuns writes levels in the RLE hybrid's repeated runs.
func levelRuns(levels []int) []byte {
	var b []byte
	for i := 0; i < len(levels); {
		j := i
		for j < len(levels) && levels[j] == levels[i] {
			j++
		}
		b = append(binary.AppendUvarint(b, uint64(j-i)<<1), byte(levels[i]))
		i = j
	}
	return b
}

func plainValues(c *testColumn, e []levelEntry) []byte {
	var b []byte
	for _, x := range e {
		switch v := x.v.(type) {
		case int64:
			if c.physical == format.Int32 {
				b = binary.LittleEndian.AppendUint32(b, uint32(v))
			} else {
				b = binary.LittleEndian.AppendUint64(b, uint64(v))
			}
		case float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		case float64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		case []byte:
			if c.typeLength() == 0 {
				b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
			}
			b = append(b, v...)
		}
	}
	return b
}

// maxLevels returns the greatest levels of the column.
func (c *testColumn) maxLevels() (def, rep int) {
	if c.nested != nil {
		return c.nested.def, c.nested.rep
	}
	if c.optional {
		def++
	}
	if c.list {
		def, rep = def+1+2*c.within, 1+c.within
		if c.elements {
			def++
		}
	}
	return def, rep
}

// page writes one data page.
func (c *testColumn) page(e []levelEntry, version int, packed bool) []byte {
	maxDef, maxRep := c.maxLevels()
	var reps, defs []int
	rows, nulls := 0, 0
	for _, x := range e {
		reps, defs = append(reps, x.rep), append(defs, x.def)
		if x.rep == 0 {
			rows++
		}
		if x.def < maxDef {
			nulls++
		}
	}
	rep, def := levelRuns(reps), levelRuns(defs)
	if maxRep == 0 {
		rep = nil
	}
	if maxDef == 0 {
		def = nil
	}
	values := plainValues(c, e)
	var levels []byte
	if version == 1 {
		for _, l := range [][]byte{rep, def} {
			if l != nil || maxDef > 0 && len(e) == 0 {
				levels = binary.LittleEndian.AppendUint32(levels, uint32(len(l)))
				levels = append(levels, l...)
			}
		}
		values, levels = append(levels, values...), nil
	} else {
		levels = append(rep, def...)
	}
	body := values
	if packed {
		body = snappy.Encode(nil, values)
	}
	payload := append(levels, body...)
	kind := 0
	if version == 2 {
		kind = 3
	}
	return pageHeaderBytes(kind, len(levels)+len(values), payload, !c.noCRC, func(w *thrift) {
		if version == 1 {
			w.open(5)
			w.i32(1, len(e))
			w.i32(2, 0)
			w.i32(3, 3)
			w.i32(4, 3)
			w.end()
			return
		}
		w.open(8)
		w.i32(1, len(e))
		w.i32(2, nulls)
		w.i32(3, rows)
		w.i32(4, 0)
		w.i32(5, len(def))
		w.i32(6, len(rep))
		w.flag(7, packed)
		w.end()
	})
}

// pageHeaderBytes writes a page header, with a CRC or without, and the payload behind it.
func pageHeaderBytes(kind, unpacked int, payload []byte, crc bool, rest func(*thrift)) []byte {
	w := &thrift{}
	w.open(0)
	w.i32(1, kind)
	w.i32(2, unpacked)
	w.i32(3, len(payload))
	if crc {
		w.i32(4, int(int32(crc32.ChecksumIEEE(payload))))
	}
	rest(w)
	w.end()
	return append(w.b, payload...)
}

// chunk cuts a column's entries into pages of about mean entries.
func (c *testColumn) chunk(rng *rand.Rand, mean int) []byte {
	return c.cutPages(rng, c.entries(), mean)
}

// cutPages cuts entries into pages of about mean entries.
func (c *testColumn) cutPages(rng *rand.Rand, e []levelEntry, mean int) []byte {
	var b []byte
	for len(e) > 0 {
		if rng.IntN(12) == 0 { // an index page, which readers skip
			b = append(b, pageHeaderBytes(1, 3, []byte{1, 2, 3}, true, func(*thrift) {})...)
		}
		if rng.IntN(12) == 0 && !c.list {
			b = append(b, c.page(nil, 1, c.codec != "")...)
		}
		n := min(1+rng.IntN(2*mean), len(e))
		version := 1
		if e[0].rep == 0 && rng.IntN(4) == 0 {
			end := n
			for end < len(e) && e[end].rep > 0 {
				end++
			}
			n, version = end, 2
		}
		b = append(b, c.page(e[:n], version, c.codec != "")...)
		e = e[n:]
	}
	return b
}

// assembleFile makes a file of hand-written chunks, with metadata but no footer.
func assembleFile(rng *rand.Rand, cols []testColumn, groupRows, mean int) ([]byte, *format.File) {
	f := &format.File{}
	data := []byte("PAR1")
	for i := range cols {
		c := &cols[i]
		def, rep := c.maxLevels()
		l := format.Leaf{Path: c.name, Name: c.name, Index: i, Physical: c.physical, List: c.list, MaxDef: uint8(def),
			MaxRep: uint8(rep), TypeLength: c.typeLength()}
		if c.list {
			l.RepDef = uint8(def)
			if c.elements {
				l.RepDef--
			}
			if c.within > 0 {
				l.EntryDef = l.RepDef - uint8(2*c.within)
			}
		}
		f.Leaves = append(f.Leaves, l)
	}
	rows := len(cols[0].rows)
	for at := 0; at < rows; at += groupRows {
		end := min(at+groupRows, rows)
		g := format.RowGroup{Rows: int64(end - at)}
		for i := range cols {
			part := cols[i]
			part.rows = part.rows[at:end]
			b := part.chunk(rng, mean)
			ch := format.Chunk{Offset: int64(len(data)), Compressed: int64(len(b)),
				NumValues: int64(len(part.entries()))}
			if part.codec != "" {
				ch.Codec = format.Snappy
			}
			ch.DataOffset = ch.Offset
			g.Columns = append(g.Columns, ch)
			data = append(data, b...)
		}
		f.RowGroups = append(f.RowGroups, g)
		f.Rows += g.Rows
	}
	f.Size = int64(len(data))
	return data, f
}

// TestPagesCutAnywhere checks the engine against the reference with rows of lists that continue over pages, a
// mixture of v1 and v2 pages, and pages without values in between, also when the window grows a byte at a time.
func TestPagesCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 60).Draw(t, "rows")
		columns := rapid.IntRange(1, 3).Draw(t, "columns")
		groupRows := rapid.IntRange(1, 80).Draw(t, "groupRows")
		mean := rapid.IntRange(1, 30).Draw(t, "mean entries a page")
		batch := rapid.IntRange(1, 40).Draw(t, "batch")
		block := rapid.SampledFrom([]int{1, 5, 0}).Draw(t, "block")
		habit := rapid.IntRange(0, 3).Draw(t, "host")
		rng := rand.New(rand.NewPCG(seed, 3))
		cols := randomColumns(rng, columns, rows)
		for i := range cols {
			c := &cols[i]
			c.unsigned = 0
			if c.physical == format.Boolean {
				c.physical = format.Int64
			}
			if c.codec != "" {
				c.codec = "snappy"
			}
			if rng.IntN(3) > 0 {
				c.list = true
				for r := range c.rows {
					c.rows[r] = c.random(rng, false, rng.IntN(3), 1+rng.IntN(12))
				}
			}
		}
		for i := range cols { // lists that were scalars have lists in all rows
			for r, v := range cols[i].rows {
				if _, ok := v.([]any); cols[i].list && !ok && v != nil {
					cols[i].rows[r] = []any{v}
				}
			}
		}
		p := randomProgram(rng, cols, false, groupRows >= rows)
		data, f := assembleFile(rng, cols, groupRows, mean)
		ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
		require.NoError(t, err)
		h := newHost(engine.New(engine.Options{BlockRows: block}), p, f, data, seed)
		h.wholeChunks, h.smallestWindows, h.growByByte = habit == 0, habit == 1, habit == 2
		for first := 0; first < rows; first += batch {
			n := min(batch, rows-first)
			if rng.IntN(5) == 0 {
				continue
			}
			want, err := ref.MiniBatch(int64(first), n)
			require.NoError(t, err)
			got, err := h.miniBatch(int64(first), n)
			require.NoError(t, err)
			requireSame(t, want, got)
		}
	})
}

// TestRowOverThreePages reads a row that spans three pages, in windows that end at every byte.
func TestRowOverThreePages(t *testing.T) {
	c := testColumn{name: "c", physical: format.Int64, list: true, rows: []any{
		[]any{int64(1), int64(2)}, []any{int64(3), int64(4), int64(5), int64(6), int64(7)}, []any{}, []any{int64(8)},
	}}
	for _, codec := range []string{"", "snappy"} {
		c.codec = codec
		e := c.entries()
		var data []byte
		var sizes []int
		for _, cut := range [][2]int{{0, 3}, {3, 5}, {5, 9}} {
			p := c.page(e[cut[0]:cut[1]], 1, codec != "")
			sizes = append(sizes, len(p))
			data = append(data, p...)
		}
		l := format.Leaf{Path: "c", Name: "c", Physical: c.physical, List: true, MaxDef: 1, MaxRep: 1, RepDef: 1}
		ch := format.Chunk{Compressed: int64(len(data)), NumValues: int64(len(e))}
		if codec != "" {
			ch.Codec = format.Snappy
		}
		f := &format.File{Rows: 4, Leaves: []format.Leaf{l},
			RowGroups: []format.RowGroup{{Rows: 4, Columns: []format.Chunk{ch}}}}
		p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1},
			Columns: []program.Column{{Name: "c", Kind: program.Int64, List: true,
				Sinks: []program.Sink{{To: program.ToSparse}}}}}
		for window := sizes[0] + sizes[1] + sizes[2]; window > 0; window-- {
			h := newHost(engine.New(engine.Options{}), p, f, data, uint64(window))
			h.growByByte = window%2 == 0
			h.smallestWindows = !h.growByByte
			got, err := h.miniBatch(0, 4)
			require.NoError(t, err)
			require.Equal(t, []int32{2, 5, 0, 1}, got.Lengths)
			require.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7, 8}, got.Values)
		}
	}
}

// TestRowEndedByVersion2 checks that a page of version 1 does not go on with a row that a page of version 2 ended,
// wherever slices, windows and mini-batches end.
func TestRowEndedByVersion2(t *testing.T) {
	c := testColumn{name: "c", physical: format.Int64, list: true, rows: []any{
		[]any{int64(1), int64(2), int64(3)}, []any{int64(4), int64(5), int64(6)}, []any{int64(7)},
	}}
	type cut struct{ end, version int } // a page, with the entries up to end
	index := pageHeaderBytes(1, 3, []byte{1, 2, 3}, true, func(*thrift) {})
	for name, test := range map[string]struct {
		cuts    []cut
		between []byte // pages without values behind the first page
		refused bool
	}{
		"inside a row":              {[]cut{{5, 2}, {7, 1}}, nil, true},
		"inside the first row":      {[]cut{{2, 2}, {7, 1}}, nil, true},
		"nothing but a row's end":   {[]cut{{5, 2}, {6, 1}, {7, 1}}, nil, true},
		"an index page between":     {[]cut{{5, 2}, {7, 1}}, index, true},
		"an empty page between":     {[]cut{{5, 2}, {7, 1}}, c.page(nil, 1, false), true},
		"behind a page that may":    {[]cut{{2, 1}, {3, 1}, {5, 2}, {7, 1}}, nil, true},
		"version 2 inside a row":    {[]cut{{5, 1}, {7, 2}}, nil, true},
		"at a row":                  {[]cut{{3, 2}, {5, 1}, {7, 1}}, index, false},
		"version 2 behind the row":  {[]cut{{2, 1}, {6, 1}, {7, 2}}, c.page(nil, 1, false), false},
		"version 2 and 1, in turns": {[]cut{{3, 2}, {6, 1}, {7, 2}}, nil, false},
	} {
		for _, codec := range []string{"", "snappy"} {
			t.Run(name+" "+codec, func(t *testing.T) {
				e, from := c.entries(), 0
				var data []byte
				for i, cut := range test.cuts {
					data = append(data, c.page(e[from:cut.end], cut.version, codec != "")...)
					if from = cut.end; i == 0 {
						data = append(data, test.between...)
					}
				}
				ch := format.Chunk{Compressed: int64(len(data)), NumValues: int64(len(e))}
				if codec != "" {
					ch.Codec = format.Snappy
				}
				l := format.Leaf{Path: "c", Name: "c", Physical: c.physical, List: true, MaxDef: 1, MaxRep: 1,
					RepDef: 1}
				f := &format.File{Rows: 3, Leaves: []format.Leaf{l},
					RowGroups: []format.RowGroup{{Rows: 3, Columns: []format.Chunk{ch}}}}
				p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1},
					Columns: []program.Column{{Name: "c", Kind: program.Int64, List: true,
						Sinks: []program.Sink{{To: program.ToSparse}}}}}
				ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
				require.NoError(t, err)
				want, err := ref.MiniBatch(0, 3)
				if test.refused {
					require.ErrorIs(t, err, format.ErrCorrupt)
				} else {
					require.NoError(t, err)
				}
				for seed := range uint64(60) {
					var err error
					h := newHost(engine.New(engine.Options{}), p, f, data, seed)
					h.wholeChunks, h.smallestWindows, h.growByByte = seed%4 == 0, seed%4 == 1, seed%4 == 2
					batch := 1 + int(seed/4)%3
					var values []int64
					for first := 0; err == nil && first < 3; first += batch {
						var got *reference.Tensors
						if got, err = h.miniBatch(int64(first), min(batch, 3-first)); err == nil {
							values = append(values, got.Values...)
						}
					}
					if !test.refused {
						require.NoError(t, err)
						require.Equal(t, want.Values, values)
						continue
					}
					var bad *sliceFailure
					require.ErrorAs(t, err, &bad, "seed %d: %v", seed, values)
					require.Equal(t, program.BadData, bad.state, bad.message)
				}
			})
		}
	}
}

// TestCursorKnowsItsValue checks that a cursor inside a page of strings says where its row's value lies, that the next
// slice makes the same of a cursor that does not, and what a wrong place leads to.
func TestCursorKnowsItsValue(t *testing.T) {
	for _, optional := range []bool{false, true} {
		c := testColumn{name: "c", physical: format.ByteArray, optional: optional}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			var row any = fmt.Appendf(nil, "%0*x", 1+rng.IntN(8), rng.IntN(16))
			if optional && rng.IntN(5) == 0 {
				row = nil
			}
			c.rows = append(c.rows, row)
		}
		data := writeFile(t, []testColumn{c}, layout{groupRows: 300, batchRows: 100, pageBytes: 400, version: 1})
		p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1, Fixed: true},
			Columns: []program.Column{{Name: "c", Kind: program.Bytes, Sinks: []program.Sink{{To: program.ToSparse,
				Ops: []program.Op{hextoint.Op{}, fillnull.Op{Int: 7}}}}}}}
		const rows = 30
		b := newSliceRunner(t, engine.New(engine.Options{BlockRows: 16}), data, p, rows)
		places := 0
		for range 300 / rows {
			before := b.slice.Tasks[0].Cursor
			state, r := b.execute()
			require.Equal(t, program.Done, state, r.Message)
			after, want := r.Tasks[0].Cursor, bytes.Clone(b.mem.Output)
			require.Equal(t, after.Skip > 0, after.ValueAt > 0)
			if before.ValueAt > 0 {
				places++
				b.slice.Tasks[0].Cursor.ValueAt = 0
				clear(b.mem.Output)
				state, r = b.execute()
				require.Equal(t, program.Done, state, r.Message)
				require.Equal(t, want, b.mem.Output)
				require.Equal(t, after, r.Tasks[0].Cursor)

				b.slice.Tasks[0].Cursor.ValueAt = program.MaxValueAt
				state, r = b.execute()
				require.Equal(t, program.BadData, state)
				require.Contains(t, r.Message, "a value at byte 536870911 of the page: want ")
			}
			b.slice.Tasks[0].Cursor = after
		}
		require.Greater(t, places, 4)
	}
}
