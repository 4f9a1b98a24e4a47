package slicer

import (
	"math/bits"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
)

// chunk is a column chunk (text: the partition) that a stream has begun and not ended.
type chunk struct {
	chunkLayout
	position
	demand
	holding

	lastSlice    uint64 // number of the slice that it was last placed for: not to be evicted from it
	furthestPage uint64 // furthest page that the cursor was at
}

// chunkLayout holds the statements of the footer and the page index about a chunk.
type chunkLayout struct {
	column            int // The column's index in the program.
	group             int
	kind              program.ChunkType
	start             uint64 // partition offset of its first byte
	length            uint64 // bytes
	firstRow          int64  // The first row's number in the partition.
	rows              int64
	firstDataPage     uint64 // chunk offset of its first data page
	unpackedBytes     uint64 // bytes of its pages unpacked
	dictionaryEncoded bool   // pages may refer to a dictionary
	pageIndex         partition.PageIndex
}

// position is where a stream stands in a chunk.
type position struct {
	row               int64 // rows behind the cursor, skipped ones included
	cursor            program.Cursor
	pageBytes         uint64          // The size of the cursor's page with its header; 0: it is not known.
	pageRow           int64           // first row that begins in the cursor's page
	dictionaryDecoded bool            // a dictionary was decoded
	resumeAt          *program.Cursor // where to go on once the dictionary is decoded again
}

// demand holds the engine's requests, in bytes; 0 where there was none.
type demand struct {
	inputBytes     uint64 // from the cursor's page on
	dictBytes      uint64
	scratchBytes   uint64
	firstPageInput uint64 // input at the chunk's first page
	rowsInWindow   uint32 // rows that the engine can do with what is in memory, while it asks for more
	cutRows        uint32 // rows of the last task that had to be cut to fit
	guesses        guessLevel
	moveWholeBelow uint64 // what is left of the chunk is moved whole from here on
}

// guessLevel says which guesses of sizes a chunk does without.
type guessLevel uint8

const (
	guessEverything guessLevel = iota
	guessWindow                // dictionary and unpacked page get what the engine asked for and no more
	guessNothing               // and so does the window
)

// holding is the part of a chunk that lies in memory. The cursor's flags are true only while dictionary and scratch
// hold what they say. The flag Checked holds only for the window in which the page was checked, whose bytes are
// moved once.
type holding struct {
	window         *window
	checkedIn      *window
	dictSegment    segment
	scratchSegment segment
	movedUpTo      uint64 // chunk offset that moves have reached
}

// window is a segment of the input area that holds whole blocks of the partition, aligned offsets [from, to). Chunks
// that lie side by side may share one.
type window struct {
	segment     segment
	from, to    uint64
	sharers     int
	lastAttempt uint64 // number of the attempt that planned the last of its moves
}

// describeChunk describes the chunk of a row group for a program's column, with the cursor before a row of it. The leaf
// is nil for text, and for a column that the partition lacks.
func describeChunk(p *partition.Partition, column int, leaf *format.Leaf, annotation program.Annotation, group int,
	row int64) *chunk {
	place := p.RowGroups()[group]
	c := &chunk{}
	c.column, c.group, c.firstRow, c.rows = column, group, place.First, place.Rows
	c.startAtRow(row, p)
	switch {
	case p.File == nil:
		c.length = uint64(p.Size)
		return c
	case leaf == nil:
		c.kind = program.ChunkType{Absent: true, Values: uint64(place.Rows)}
		return c
	}
	m := &p.File.RowGroups[group].Columns[leaf.Index]
	c.start, c.length = uint64(m.Offset), uint64(m.Compressed)
	if m.DataOffset > m.Offset {
		c.firstDataPage = uint64(m.DataOffset - m.Offset)
	}
	c.unpackedBytes = uint64(max(m.Uncompressed, 0)) + grain // and the engine's tag
	c.dictionaryEncoded = m.DictOffset > 0 ||
		m.Encodings.Has(format.RLEDictionary) || m.Encodings.Has(format.PlainDictionary)
	c.kind = program.ChunkType{
		Physical: uint8(leaf.Physical), Codec: uint8(m.Codec), MaxDef: leaf.MaxDef, MaxRep: leaf.MaxRep,
		ElementDef: leaf.RepDef, EntryDef: leaf.EntryDef, Unsigned: leaf.Unsigned, BitWidth: uint8(leaf.BitWidth),
		TypeLength: uint32(leaf.TypeLength), Values: uint64(m.NumValues),
		RowsUncounted: leaf.RowsUncounted, AlwaysCompressed: leaf.AlwaysCompressed,
	}
	if annotation != program.NotAnnotated {
		c.kind.Annotation, c.kind.BitWidth = annotation, 0
	}
	return c
}

// startAtRow places a new chunk's cursor before a row of it.
func (c *chunk) startAtRow(row int64, p *partition.Partition) {
	c.row = row
	switch p.Source {
	case program.CriteoTSV:
		x := p.Index
		if x.Every > 0 && len(x.At) > 0 {
			k := min(row/x.Every, int64(len(x.At)-1))
			at := x.At[k]
			c.cursor = program.Cursor{
				Page: uint64(at.Offset), Ordinal: uint32(at.Line), Skip: uint64(row - k*x.Every),
				Seen: uint64(k * x.Every),
			}
			return
		}
		c.cursor = program.Cursor{Skip: uint64(row)}
	case program.CriteoBinary:
		c.cursor = program.Cursor{Page: uint64(row) * text.BinaryRow, Ordinal: uint32(row), Seen: uint64(row)}
	default:
		c.cursor = program.Cursor{Skip: uint64(row)}
	}
}

// isFinished reports whether all rows of the chunk are in mini-batches.
func (c *chunk) isFinished() bool { return c.row >= c.rows }

// isAbsent reports whether the partition lacks the column. Such a chunk has no bytes.
func (c *chunk) isAbsent() bool { return c.kind.Absent }

// isCompressed reports whether the chunk's pages are unpacked into scratch.
func (c *chunk) isCompressed() bool { return format.Codec(c.kind.Codec) != format.Uncompressed }

// bytesOfRows returns how many of the chunk's bytes its first rows need, see Done.Needed.
func (c *chunk) bytesOfRows(rows int64) uint64 {
	hi, lo := bits.Mul64(c.length, uint64(rows))
	n, _ := bits.Div64(hi, lo, uint64(c.rows))
	return n
}

// remainingBytes returns the bytes of the chunk from the cursor's page on.
func (c *chunk) remainingBytes() uint64 { return c.length - min(c.cursor.Page, c.length) }

// windowStart returns the chunk offset from which on the window is wanted: where the cursor's page begins or, if that
// page lies unpacked in scratch, ends.
func (c *chunk) windowStart() uint64 {
	if c.cursor.Unpacked {
		return c.cursor.Page + c.pageBytes
	}
	return c.cursor.Page
}

// moveCursor moves the cursor to where a task left it.
func (c *chunk) moveCursor(t *program.TaskResult) {
	if t.Cursor.Page != c.cursor.Page {
		c.pageBytes = 0
	}
	if t.Page > 0 {
		c.pageBytes = uint64(t.Page)
	}
	c.cursor, c.checkedIn, c.rowsInWindow = t.Cursor, c.window, 0
}

// skippedRows returns the rows before the position that the cursor's page holds.
func (c *chunk) skippedRows() int64 { return int64(min(c.cursor.Skip, uint64(c.row))) }

// rewindForDictionary begins the chunk again if its dictionary made way: the dictionary's page is the chunk's first.
// Once the dictionary is decoded the stream goes on where it was.
func (c *chunk) rewindForDictionary() {
	if !c.lostDictionary() {
		return
	}
	at := c.cursor
	at.Unpacked, at.Checked = false, false
	c.resumeAt = &at
	c.cursor = program.Cursor{Skip: uint64(c.row)}
	c.inputBytes = 0
}

// lostDictionary reports whether the chunk's dictionary made way, and is not being decoded again.
func (c *chunk) lostDictionary() bool {
	return c.dictionaryDecoded && !c.cursor.Dict && c.cursor.Page != 0 && c.resumeAt == nil
}

// resumeAfterDictionary goes back to where the stream was when the dictionary had to be decoded again.
func (c *chunk) resumeAfterDictionary() {
	c.cursor, c.resumeAt = *c.resumeAt, nil
	c.cursor.Dict = true
}
