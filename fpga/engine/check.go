package engine

import (
	"fmt"
	"unsafe"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// checkSlice holds every number of the slice against the ranges and the program, and sets up the tensors and walks.
func (w *worker) checkSlice() error {
	s, prog := &w.slice, w.program
	if s.Rows == 0 {
		return badSlice("no rows")
	}
	if err := w.out.place(w.mem.Output, s, &prog.out); err != nil {
		return err
	}
	if prog.source != program.Parquet && len(s.Tasks) != 1 {
		return badSlice("%d tasks, a text source takes one", len(s.Tasks))
	}
	w.walks = w.walks[:0]
	appended := s.Values
	for i := range s.Tasks {
		t := &s.Tasks[i]
		k, err := w.checkTask(t)
		if err == nil && k.col != nil {
			err = w.checkPart(i, k.col)
		}
		if err != nil {
			return &fault{stateOf(err), fmt.Errorf("task %d: %w", i, err)}
		}
		if need, ok := w.valuesFit(k.col, t, &appended); !ok {
			k.lack, k.need = program.MoreOutput, need
		}
		w.walks = append(w.walks, k)
	}
	return nil
}

// valuesFit tells whether the values that a task can yield at most fit the output. appended is what the slice's tasks
// before it can yield; of lists it is not known before they are decoded.
func (w *worker) valuesFit(col *column, t *program.Task, appended *uint64) (need uint64, ok bool) {
	s, out := &w.slice, &w.program.out
	if out.Fixed {
		need = uint64(out.Keys) * uint64(s.Rows)
		return need, out.Keys == 0 || need <= s.ValueCap
	}
	switch {
	case col == nil: // text: all columns
		need = s.Values + uint64(out.Keys)*uint64(t.Count)
	case col.list || col.part != program.NoPart:
		return 0, true
	default:
		*appended += uint64(col.keys) * uint64(t.Count)
		need = *appended
	}
	return need, need <= s.ValueCap
}

// checkTask holds one task's numbers against ranges and program.
func (w *worker) checkTask(t *program.Task) (walk, error) {
	s, prog := &w.slice, w.program
	k := walk{task: t, cur: t.Cursor}
	switch {
	case uint64(t.Column) >= uint64(len(prog.columns)) || prog.source != program.Parquet && t.Column != 0:
		return k, badSlice("column %d of %d", t.Column, len(prog.columns))
	case t.Count == 0 || t.Row > s.Rows || t.Count > s.Rows-t.Row:
		return k, badSlice("rows %d+%d of %d", t.Row, t.Count, s.Rows)
	}
	var ok bool
	if k.window, ok = sub(w.mem.Input, t.Window); !ok {
		return k, badSlice("window %d+%d in a range of %d bytes", t.Window.Off, t.Window.Len, len(w.mem.Input))
	}
	if k.dict, ok = sub(w.mem.Dict, t.Dict); !ok {
		return k, badSlice("dictionary room %d+%d in a range of %d bytes", t.Dict.Off, t.Dict.Len, len(w.mem.Dict))
	}
	if k.scratch, ok = sub(w.mem.Scratch, t.Scratch); !ok {
		return k, badSlice("scratch %d+%d in a range of %d bytes", t.Scratch.Off, t.Scratch.Len, len(w.mem.Scratch))
	}
	switch {
	case t.WindowAt > t.ChunkLen || t.ChunkLen > 1<<62:
		return k, badSlice("a window at %d of %d bytes", t.WindowAt, t.ChunkLen)
	case t.Cursor.Page < t.WindowAt && !t.Cursor.Unpacked || t.Cursor.Page > t.ChunkLen:
		return k, badSlice("a cursor at %d, the window begins at %d of %d bytes", t.Cursor.Page, t.WindowAt, t.ChunkLen)
	case t.Cursor.Skip > 1<<62 || t.Cursor.Seen > 1<<62 || t.Chunk.Values > 1<<62:
		return k, badSlice("counts that no chunk has")
	}
	// Windows are made of blocks of flash, so that one may go on behind the chunk.
	k.window = k.window[:min(uint64(len(k.window)), t.ChunkLen-t.WindowAt)]
	if prog.source != program.Parquet {
		if t.Cursor.Page < t.WindowAt {
			return k, badSlice("a cursor at %d, the window begins at %d", t.Cursor.Page, t.WindowAt)
		}
		whole := t.Row == 0 && t.Count == s.Rows
		if prog.out.Keys > 1 && !prog.out.Fixed && !whole {
			return k, badSlice("rows %d+%d of %d: text with lengths takes whole mini-batches", t.Row, t.Count, s.Rows)
		}
		if !aligned(k.scratch) {
			return k, badSlice("scratch is not 8-byte aligned")
		}
		return k, nil
	}
	k.col = &prog.columns[t.Column]
	if k.col.whole() && (t.Row != 0 || t.Count != s.Rows) {
		return k, badSlice("rows %d+%d of %d: column %q feeds several keys with lengths and takes whole mini-batches", t.Row, t.Count, s.Rows, k.col.name)
	}
	if !aligned(k.dict) {
		return k, badSlice("dictionary room is not 8-byte aligned")
	}
	return k, k.setType(&t.Chunk)
}

// setType reads the chunk's type, which must be one that the unit decodes and the program expects.
func (k *walk) setType(c *program.ChunkType) error {
	if c.TypeLength > 1<<30 {
		return badSlice("a type length of %d", c.TypeLength)
	}
	k.ct = format.ColumnType{
		Physical: format.Type(c.Physical), Codec: format.Codec(c.Codec), TypeLength: int32(c.TypeLength), BitWidth: c.BitWidth,
		Unsigned: c.Unsigned, List: c.MaxRep > 0, MaxDef: c.MaxDef, MaxRep: c.MaxRep, RepDef: c.ElementDef, EntryDef: c.EntryDef,
		RowsUncounted: c.RowsUncounted, AlwaysCompressed: c.AlwaysCompressed,
	}
	if err := k.ct.Validate(); err != nil {
		if state := stateOf(err); state == program.NoSupport {
			return &fault{state, err}
		}
		return badSlice("column %q: %w", k.col.name, err)
	}
	if got, rep := kindOf(k.ct.Kind()), k.col.repetition(); got != k.col.kind || k.ct.MaxRep != rep {
		return badSlice("column %q: the chunk holds %v (repetition level %d), the program reads %v (%d)", k.col.name, got, k.ct.MaxRep, k.col.kind, rep)
	}
	return nil
}

// kindOf is a decoder's kind of values in the program's numbering.
func kindOf(k format.Kind) program.Kind {
	switch k {
	case format.KindInt64:
		return program.Int64
	case format.KindFloat32:
		return program.Float32
	case format.KindFloat64:
		return program.Float64
	}
	return program.Bytes
}

// sub returns the bytes of a span, if it lies inside mem.
func sub(mem []byte, s program.Span) ([]byte, bool) {
	if s.Off > uint64(len(mem)) || s.Len > uint64(len(mem))-s.Off {
		return nil, false
	}
	return mem[s.Off : s.Off+s.Len : s.Off+s.Len], true
}

// aligned tells whether b begins at a multiple of 8 bytes.
func aligned(b []byte) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0
}
