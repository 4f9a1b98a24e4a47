package wire

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

// A slice on the wire:
//
//	  0  magic "MSLC", major u16, minor u16, length u32, tasks u32
//	 16  digest, 32 bytes
//	 48  program u64, rows u32, flags u32 (bit 0 tables checked)
//	 64  place of dense, lengths, label, values u64 each
//	 96  values u64, value capacity u64, place of weights u64, 8 reserved
//	128  tasks, 128 bytes each:
//	       0  column u32, row u32, count u32, type length u32
//	      16  physical, codec, max def, max rep, element def, flags (bit 0 unsigned, 1 rows uncounted,
//	          2 always compressed, 3 absent, 4 annotated), bit width (with flag 4 the annotation), entry def u8 each
//	      24  values u64
//	      32  window (offset u64, length u64), window at u64, chunk length u64
//	      64  cursor: page u64, skip u64, seen u64, ordinal u32, flags u32 (bit 0 unpacked, 1 dict, 2 checked,
//	          from 3 on value at)
//	      96  dict (offset u64, length u64), scratch (offset u64, length u64)

// Place of weights and entry def are zero before version 1.2, the chunk's flags 1 and 2 before version 1.3,
// flag 3 before version 1.4, the slice's flags before version 1.5, value at before version 1.6, flag 4 before
// version 1.7.

// MarshalSlice returns the slice's wire form, SliceHeader + SliceTask * len(Tasks) bytes.
func MarshalSlice(s *program.Slice) []byte { return AppendSlice(nil, s) }

// AppendSlice appends the slice's wire form to b.
func AppendSlice(b []byte, s *program.Slice) []byte {
	start := len(b)
	size := SliceHeader + SliceTask*len(s.Tasks)
	b = slices.Grow(b, size)[:start+size]
	h := b[start : start+SliceHeader]
	writeCommonHeader(h, sliceMagic, leastMinorOfSlice(s), size, len(s.Tasks))
	copy(h[16:48], s.Digest[:])
	le.PutUint64(h[48:], s.Program)
	le.PutUint32(h[56:], s.Rows)
	le.PutUint32(h[60:], uint32(boolBit(s.TablesChecked))*sliceTablesChecked)
	le.PutUint64(h[64:], s.Layout.Dense)
	le.PutUint64(h[72:], s.Layout.Lengths)
	le.PutUint64(h[80:], s.Layout.Label)
	le.PutUint64(h[88:], s.Layout.Values)
	le.PutUint64(h[96:], s.Values)
	le.PutUint64(h[104:], s.ValueCap)
	le.PutUint64(h[112:], s.Layout.Weights)
	clear(h[120:])
	for i := range s.Tasks {
		encodeTask(&s.Tasks[i], b[start+SliceHeader+SliceTask*i:][:SliceTask])
	}
	return b
}

// leastMinorOfSlice returns the least minor version that can express the slice.
func leastMinorOfSlice(s *program.Slice) int {
	minor := 0
	if s.TablesChecked {
		minor = 5
	}
	if s.Layout.Weights != 0 {
		minor = max(minor, 2)
	}
	for i := range s.Tasks {
		c := &s.Tasks[i].Chunk
		switch {
		case c.Annotation != program.NotAnnotated:
			return 7
		case s.Tasks[i].Cursor.ValueAt != 0:
			minor = max(minor, 6)
		case c.Absent:
			minor = max(minor, 4)
		case c.RowsUncounted || c.AlwaysCompressed:
			minor = max(minor, 3)
		case c.EntryDef != 0:
			minor = max(minor, 2)
		case s.Tasks[i].Cursor.Checked:
			minor = max(minor, 1)
		}
	}
	return minor
}

// UnmarshalSlice reads a slice. b must be the whole of it and nothing else. It does not check offsets and counts:
// the engine checks them against its memory.
func UnmarshalSlice(b []byte) (*program.Slice, error) {
	s := new(program.Slice)
	if err := DecodeSlice(s, b); err != nil {
		return nil, err
	}
	return s, nil
}

// DecodeSlice reads a slice into s as UnmarshalSlice does, and reuses s.Tasks. After an error the content of s is
// undefined.
func DecodeSlice(s *program.Slice, b []byte) error {
	r := reader{what: "slice", b: b}
	h := r.takeBytes(SliceHeader, "header")
	n, size := r.readCommonHeader(h, sliceMagic, SliceHeader, SliceTask)
	if want := SliceHeader + SliceTask*n; r.err == nil && (size != want || len(b) != want) {
		r.failCorrupt("says it has %d bytes, %d are here, %d tasks take %d", size, len(b), n, want)
	}
	if r.err != nil {
		return r.err
	}
	copy(s.Digest[:], h[16:48])
	s.Program = le.Uint64(h[48:])
	s.Rows = le.Uint32(h[56:])
	s.Layout = program.OutputLayout{Dense: le.Uint64(h[64:]), Lengths: le.Uint64(h[72:]), Label: le.Uint64(h[80:]),
		Values: le.Uint64(h[88:]), Weights: le.Uint64(h[112:])}
	s.Values = le.Uint64(h[96:])
	s.ValueCap = le.Uint64(h[104:])
	flags := le.Uint32(h[60:])
	if flags&^sliceTablesChecked != 0 {
		r.failCorrupt("flags are %#x, want at most %#x", flags, sliceTablesChecked)
	}
	s.TablesChecked = flags&sliceTablesChecked != 0
	r.checkZeros(h[120:], "header")
	s.Tasks = slices.Grow(s.Tasks[:0], n)[:n]
	for i := range s.Tasks {
		decodeTask(&s.Tasks[i], &r)
	}
	return r.err
}

// writeCommonHeader writes the first 16 bytes of a slice or a result.
func writeCommonHeader(h []byte, magic string, minor, size, tasks int) {
	copy(h, magic)
	le.PutUint16(h[4:], Major)
	le.PutUint16(h[6:], uint16(minor))
	le.PutUint32(h[8:], uint32(size))
	le.PutUint32(h[12:], uint32(tasks))
}

// readCommonHeader checks the first 16 bytes of a slice or a result. It returns the number of tasks, which fit into the
// bytes that are left to read, and the length that the header names, which is at least the length of the tasks.
func (r *reader) readCommonHeader(h []byte, magic string, header, task int) (tasks, size int) {
	if r.err != nil {
		return 0, 0
	}
	if string(h[:4]) != magic {
		r.failCorrupt("begins with %q, want %q", h[:4], magic)
		return 0, 0
	}
	if major := le.Uint16(h[4:]); major != Major {
		r.err = fmt.Errorf("%s: %w %d.%d, want %d.x", r.what, ErrVersion, major, le.Uint16(h[6:]), Major)
		return 0, 0
	}
	tasks = r.checkCount(uint64(le.Uint32(h[12:])), program.MaxTasks, uint64(task), "tasks")
	size = int(le.Uint32(h[8:]))
	if r.err == nil && size < header+task*tasks {
		r.failCorrupt("says it has %d bytes, %d tasks take %d", size, tasks, header+task*tasks)
	}
	return tasks, size
}

func encodeTask(t *program.Task, b []byte) {
	le.PutUint32(b, t.Column)
	le.PutUint32(b[4:], t.Row)
	le.PutUint32(b[8:], t.Count)
	c := &t.Chunk
	le.PutUint32(b[12:], c.TypeLength)
	width := c.BitWidth
	if c.Annotation != program.NotAnnotated {
		width = uint8(c.Annotation)
	}
	copy(b[16:24], []byte{c.Physical, c.Codec, c.MaxDef, c.MaxRep, c.ElementDef, packChunkFlags(c), width, c.EntryDef})
	le.PutUint64(b[24:], c.Values)
	encodeSpan(t.Window, b[32:])
	le.PutUint64(b[48:], t.WindowAt)
	le.PutUint64(b[56:], t.ChunkLen)
	encodeCursor(&t.Cursor, b[64:96])
	encodeSpan(t.Dict, b[96:])
	encodeSpan(t.Scratch, b[112:])
}

// packChunkFlags returns the byte of a chunk's type that holds its booleans.
func packChunkFlags(c *program.ChunkType) byte {
	return boolBit(c.Unsigned)*chunkUnsigned | boolBit(c.RowsUncounted)*chunkRowsUncounted |
		boolBit(c.AlwaysCompressed)*chunkAlwaysCompressed | boolBit(c.Absent)*chunkAbsent |
		boolBit(c.Annotation != program.NotAnnotated)*chunkAnnotated
}

func unpackChunkFlags(c *program.ChunkType, r *reader, flags byte) {
	if flags&^chunkFlags != 0 {
		r.failCorrupt("chunk flags are %#x, want at most %#x", flags, chunkFlags)
	}
	c.Unsigned, c.RowsUncounted = flags&chunkUnsigned != 0, flags&chunkRowsUncounted != 0
	c.AlwaysCompressed, c.Absent = flags&chunkAlwaysCompressed != 0, flags&chunkAbsent != 0
	if flags&chunkAnnotated != 0 {
		c.Annotation, c.BitWidth = program.Annotation(c.BitWidth), 0
		if c.Annotation == program.NotAnnotated || !c.Annotation.Valid() {
			r.failCorrupt("%d is not an annotation of a chunk", uint8(c.Annotation))
		}
	}
}

func decodeTask(t *program.Task, r *reader) {
	b := r.takeBytes(SliceTask, "task")
	if r.err != nil {
		return
	}
	t.Column, t.Row, t.Count = le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	t.Chunk = program.ChunkType{
		TypeLength: le.Uint32(b[12:]), Physical: b[16], Codec: b[17], MaxDef: b[18], MaxRep: b[19], ElementDef: b[20],
		BitWidth: b[22], EntryDef: b[23], Values: le.Uint64(b[24:]),
	}
	unpackChunkFlags(&t.Chunk, r, b[21])
	t.Window = spanAt(b[32:])
	t.WindowAt, t.ChunkLen = le.Uint64(b[48:]), le.Uint64(b[56:])
	decodeCursor(&t.Cursor, b[64:96])
	t.Dict, t.Scratch = spanAt(b[96:]), spanAt(b[112:])
}

func encodeSpan(s program.Span, b []byte) {
	le.PutUint64(b, s.Off)
	le.PutUint64(b[8:], s.Len)
}

func spanAt(b []byte) program.Span { return program.Span{Off: le.Uint64(b), Len: le.Uint64(b[8:])} }

func encodeCursor(c *program.Cursor, b []byte) {
	le.PutUint64(b, c.Page)
	le.PutUint64(b[8:], c.Skip)
	le.PutUint64(b[16:], c.Seen)
	le.PutUint32(b[24:], c.Ordinal)
	flags := boolBit(c.Unpacked)*cursorUnpacked | boolBit(c.Dict)*cursorDict | boolBit(c.Checked)*cursorChecked
	le.PutUint32(b[28:], uint32(flags)|min(c.ValueAt, program.MaxValueAt)<<cursorValueAt)
}

func decodeCursor(c *program.Cursor, b []byte) {
	c.Page, c.Skip, c.Seen, c.Ordinal = le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint32(b[24:])
	flags := le.Uint32(b[28:])
	c.ValueAt = flags >> cursorValueAt
	c.Unpacked, c.Dict, c.Checked = flags&cursorUnpacked != 0, flags&cursorDict != 0, flags&cursorChecked != 0
}
