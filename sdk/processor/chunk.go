package processor

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
)

// look is the window, in bytes, with which a page header is looked at when nothing is known of the page.
const look = 4 << 10

// small is what is left of a column chunk that is moved whole, in bytes, where memory allows.
const small = 64 << 10

// roomGuess is the unpacked page expected of a compressed chunk before one was seen: what most writers aim at, and a
// little for levels.
const roomGuess = 1<<20 + 64<<10

// dictGuess is the decoded dictionary expected before one was seen.
const dictGuess = 64 << 10

// chunk is where a stream stands in one column chunk (text: in the partition), and what of it lies in memory.
type chunk struct {
	column int // of the program
	group  int
	kind   program.ChunkType
	at     uint64 // partition offset of its first byte
	length uint64 // bytes
	first  int64  // partition row of its first row
	rows   int64
	data   uint64 // chunk offset of its first data page, as the footer has it

	small    uint64 // what is left of it is moved whole from here on
	unpacked uint64 // bytes of its pages unpacked, as the footer has it

	row    int64 // rows behind the cursor, skipped ones included
	cursor program.Cursor
	need   uint64 // bytes from the cursor's page on that the engine asked for; 0 if it did not
	ready  uint32 // rows that the engine can do with what is in memory, while it asks for more
	page   uint64 // bytes of the cursor's page, header included; 0 if they are not known
	high   uint64 // chunk offset that moves have reached
	// reached is the furthest page that the cursor was at, opening what the engine asked for at the first.
	reached, opening uint64

	pages   partition.PageIndex // offset index, may be nil
	pageRow int64               // first row that begins in the cursor's page

	// In memory. The cursor's flags are true only while dict and scratch hold what they say; that the page is Checked is said
	// only of the window that it was checked in, whose bytes are moved once.
	window  *window
	checked *window
	dict    segment
	scratch segment
	dictMin uint64 // bytes that the engine asked for; 0 if it did not
	roomMin uint64

	coded  bool            // pages may refer to a dictionary, as the footer has it
	had    bool            // it has a dictionary: one was decoded
	lean   thrift          // memory is short
	fit    uint32          // rows of the last task that had to be cut to fit; 0 if none
	resume *program.Cursor // where to go on once the dictionary is decoded again
	serial uint64          // slice that it is placed for: not to be evicted from it
}

// thrift says how much of what is only guessed a chunk goes without.
type thrift uint8

const (
	generous    thrift = iota
	noGuess            // dictionary and unpacked page get what the engine asked for and no more
	noForesight        // and so does the window
)

// window is a piece of the input area that holds whole blocks of the partition, shifted offsets [from, to). Chunks that
// lie side by side may share one.
type window struct {
	seg      segment
	from, to uint64
	users    int
	attempt  uint64 // at placing jobs, that planned the last of its moves
}

// begin is the chunk offset from which on the window is wanted: where the cursor's page begins, or ends, if that page lies
// unpacked in scratch.
func (c *chunk) begin() uint64 {
	if c.cursor.Unpacked {
		return c.cursor.Page + c.page
	}
	return c.cursor.Page
}

// stand moves the cursor to where a task left it.
func (c *chunk) stand(t *program.TaskResult) {
	if t.Cursor.Page != c.cursor.Page {
		c.page = 0
	}
	if t.Page > 0 {
		c.page = uint64(t.Page)
	}
	c.cursor, c.checked, c.ready = t.Cursor, c.window, 0
}

// fresh places a chunk's cursor before a row of it.
func (c *chunk) fresh(row int64, p *partition.Partition) {
	c.row = row
	switch p.Source {
	case program.CriteoTSV:
		x := p.Index
		if x.Every > 0 && len(x.At) > 0 {
			k := min(row/x.Every, int64(len(x.At)-1))
			at := x.At[k]
			c.cursor = program.Cursor{Page: uint64(at.Offset), Ordinal: uint32(at.Line), Skip: uint64(row - k*x.Every), Seen: uint64(k * x.Every)}
			return
		}
		c.cursor = program.Cursor{Skip: uint64(row)}
	case program.CriteoBinary:
		c.cursor = program.Cursor{Page: uint64(row) * text.BinaryRow, Ordinal: uint32(row), Seen: uint64(row)}
	default:
		c.cursor = program.Cursor{Skip: uint64(row)}
	}
}

// wants guesses the bytes from the cursor's page on that count rows take; what the engine asked for, when it did.
func (c *chunk) wants(count int64, k *learned) uint64 {
	left := c.length - min(c.cursor.Page, c.length)
	if c.need > 0 {
		return min(c.need, left)
	}
	if c.lean >= noForesight {
		return min(grain, left)
	}
	if k.ask && c.packed() && c.wantsRoom(k) == 0 {
		return min(look, left) // the page's header tells what room it takes
	}
	if left <= c.small {
		return left
	}
	if c.resume != nil {
		return min(c.data-min(c.data, c.cursor.Page)+look, left) // the dictionary is all that is wanted
	}
	if n, ok := c.indexed(count); ok && c.cursor.Page >= c.data {
		return min(n, left)
	}
	skip := int64(min(c.cursor.Skip, uint64(c.row)))
	rows := max(c.rows-(c.row-skip), 1)
	perRow := left/uint64(rows) + 1
	// Whole pages to pass over: their headers are enough.
	if c.kind.Values > 0 && uint64(skip)*perRow > max(k.page, look) {
		return min(c.data-min(c.data, c.cursor.Page)+look, left)
	}
	n := uint64(skip+count) * perRow
	if k.page > 0 {
		n = (n + k.page - 1) / k.page * k.page // pages have to be there whole, and are alike
	}
	if c.cursor.Page < c.data {
		n += c.data - c.cursor.Page
	}
	return min(max(n, look), left)
}

// hopes is the least that count rows may take, if pages are as expected.
func (c *chunk) hopes(count int64) uint64 {
	left := c.length - min(c.cursor.Page, c.length)
	if n, ok := c.indexed(count); ok {
		return min(n, left)
	}
	rows := max(c.rows-(c.row-int64(min(c.cursor.Skip, uint64(c.row)))), 1)
	return min((c.cursor.Skip+uint64(count))*(left/uint64(rows)+1), left)
}

// wantsDict guesses the bytes of the decoded dictionary.
func (c *chunk) wantsDict(k *learned) uint64 {
	if !c.coded || c.lean >= noGuess {
		return c.dictMin
	}
	if c.dictMin > 0 || k.dict > 0 {
		return max(c.dictMin, k.dict)
	}
	return min(dictGuess, 8*c.kind.Values+grain)
}

// packed tells whether the chunk's pages are unpacked into scratch.
func (c *chunk) packed() bool { return format.Codec(c.kind.Codec) != format.Uncompressed }

// wantsRoom guesses the bytes of scratch.
func (c *chunk) wantsRoom(k *learned) uint64 {
	if c.lean >= noGuess {
		return c.roomMin
	}
	if c.roomMin > 0 || k.room > 0 {
		return max(c.roomMin, k.room)
	}
	if k.ask || !c.packed() {
		return 0
	}
	return min(roomGuess, c.unpacked)
}

// chunkOf describes the chunk of a row group for a program's column.
func chunkOf(p *partition.Partition, column int, leaf *format.Leaf, g int) *chunk {
	c := &chunk{column: column, group: g, first: p.RowGroups()[g].First, rows: p.RowGroups()[g].Rows}
	if leaf == nil {
		c.length = uint64(p.Size)
		return c
	}
	m := &p.File.RowGroups[g].Columns[leaf.Index]
	c.at, c.length = uint64(m.Offset), uint64(m.Compressed)
	if m.DataOffset > m.Offset {
		c.data = uint64(m.DataOffset - m.Offset)
	}
	c.unpacked = uint64(max(m.Uncompressed, 0)) + grain // and the engine's tag
	c.coded = m.DictOffset > 0 || m.Encodings.Has(format.RLEDictionary) || m.Encodings.Has(format.PlainDictionary)
	c.kind = program.ChunkType{
		Physical: uint8(leaf.Physical), Codec: uint8(m.Codec), MaxDef: leaf.MaxDef, MaxRep: leaf.MaxRep, ElementDef: leaf.RepDef, EntryDef: leaf.EntryDef,
		Unsigned: leaf.Unsigned, BitWidth: uint8(leaf.BitWidth), TypeLength: uint32(leaf.TypeLength), Values: uint64(m.NumValues),
		RowsUncounted: leaf.RowsUncounted, AlwaysCompressed: leaf.AlwaysCompressed,
	}
	return c
}
