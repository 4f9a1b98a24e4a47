package chunk

import (
	"encoding/binary"

	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// absentPageRows is the greatest number of rows of a page that stands for rows of an absent chunk. A page header holds
// the number in 31 bits.
const absentPageRows = 1 << 24

// absentPageBytes bounds the bytes of such a page: two runs of levels, each a length of at most four bytes and a level.
const absentPageBytes = 16

// setAbsentType sets the type of a chunk that its partition lacks. Such a chunk is read as pages without values: the
// rows of a number are null, and those of a list are null lists.
func (t *Task) setAbsentType(chunk *program.ChunkType) error {
	only := program.ChunkType{Absent: true, Values: chunk.Values}
	at := t.Asked.Cursor
	switch {
	case !t.Column.Absent:
		return failure.Slice("column %q: the chunk is absent, and the program says that every partition has the column",
			t.Column.Name)
	case *chunk != only || t.Asked.ChunkLen != 0:
		return failure.Slice("column %q: an absent chunk of %d bytes with a type", t.Column.Name, t.Asked.ChunkLen)
	case at.Page != 0 || at.Unpacked || at.Dict:
		return failure.Slice("column %q: a cursor at byte %d of an absent chunk, unpacked %t, dictionary %t", t.Column.Name,
			at.Page, at.Unpacked, at.Dict)
	}
	t.ColumnType = format.ColumnType{Physical: physicalOf(t.Column.Kind), MaxDef: 1}
	switch rep := t.Column.repetitionLevel(); rep {
	case 1:
		t.ColumnType.List, t.ColumnType.MaxRep, t.ColumnType.RepDef = true, 1, 1
	case 2:
		t.ColumnType.List, t.ColumnType.MaxRep = true, 2
		t.ColumnType.MaxDef, t.ColumnType.EntryDef, t.ColumnType.RepDef = 2, 1, 2
	}
	t.isAbsent = true
	whole := at.Skip &^ (absentPageRows - 1) // rows of whole pages, so that these are not skipped one by one
	t.Cursor.Seen, t.Cursor.Skip = at.Seen+whole, at.Skip-whole
	return nil
}

// physicalOf returns a physical type whose values have a kind.
func physicalOf(k program.Kind) format.Type {
	switch k {
	case program.Int64:
		return format.Int64
	case program.Float32:
		return format.Float
	case program.Float64:
		return format.Double
	}
	return format.ByteArray
}

// readAbsentPage makes the page of an absent chunk at a cursor. All of these pages lie at byte 0 and have no bytes of
// the chunk. The cursor's Seen tells one page from another.
func (t *Task) readAbsentPage(at *program.Cursor, p *page) {
	rows := min(t.Asked.Chunk.Values-at.Seen, absentPageRows)
	levels := t.absentLevels[:0]
	appendRun := func() {
		levels = append(binary.AppendUvarint(levels, rows<<1), 0) // a run of level 0
	}
	if t.ColumnType.MaxRep > 0 {
		appendRun()
	}
	repetition := len(levels)
	appendRun()
	*p = page{header: format.PageHeader{
		Type: format.DataPageV2, Uncompressed: int32(len(levels)), Compressed: int32(len(levels)),
		NumValues: int32(rows), NumNulls: int32(rows), NumRows: int32(rows), RepBytes: int32(repetition),
		DefBytes: int32(len(levels) - repetition),
	}, unpacked: levels}
}
