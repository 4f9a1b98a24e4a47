package engine

import (
	"fmt"
	"unsafe"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// checkSlice checks every number of the slice against the ranges and the program, and sets up the tensors and the task
// states.
func (x *executor) checkSlice() error {
	s, compiled := &x.slice, x.program
	if s.Rows == 0 {
		return sliceError("no rows")
	}
	if err := x.output.layOutTensors(x.memory.Output, s, &compiled.output); err != nil {
		return err
	}
	if compiled.source != program.Parquet && len(s.Tasks) != 1 {
		return sliceError("%d tasks, a text source takes one", len(s.Tasks))
	}
	x.tasks = x.tasks[:0]
	appended := s.Values
	for i := range s.Tasks {
		t := &s.Tasks[i]
		state, err := x.checkTask(t)
		if err == nil && state.column != nil {
			err = x.checkGroupTask(i, state.column)
		}
		if err != nil {
			return &stateError{errorState(err), fmt.Errorf("task %d: %w", i, err)}
		}
		if need, ok := x.outputFits(state.column, t, &appended); !ok {
			state.stopEarly(program.MoreOutput, need)
		}
		x.tasks = append(x.tasks, state)
	}
	return nil
}

// outputFits reports whether the output holds all values that a task can yield, and returns how many elements it
// needs for them. *appended is the number of values of the earlier slices and of the scalar columns of earlier
// tasks; outputFits adds those of the task's scalar column. It accepts every list, because the number of a list's
// values is known only after decoding.
func (x *executor) outputFits(col *column, t *program.Task, appended *uint64) (need uint64, ok bool) {
	s, out := &x.slice, &x.program.output
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
		*appended += uint64(col.sparseKeys) * uint64(t.Count)
		need = *appended
	}
	return need, need <= s.ValueCap
}

// checkTask checks one task's numbers against ranges and program.
func (x *executor) checkTask(t *program.Task) (taskState, error) {
	s, compiled := &x.slice, x.program
	state := taskState{task: t, cursor: t.Cursor}
	switch {
	case uint64(t.Column) >= uint64(len(compiled.columns)) || compiled.source != program.Parquet && t.Column != 0:
		return state, sliceError("column %d of %d", t.Column, len(compiled.columns))
	case t.Count == 0 || t.Row > s.Rows || t.Count > s.Rows-t.Row:
		return state, sliceError("rows %d+%d of %d", t.Row, t.Count, s.Rows)
	}
	var ok bool
	if state.window, ok = x.memory.window(t.Window); !ok {
		return state, sliceError("window %d+%d in a range of %d bytes", t.Window.Off, t.Window.Len, len(x.memory.Input))
	}
	if state.dictRoom, ok = spanBytes(x.memory.Dict, t.Dict); !ok {
		return state, sliceError("dictionary room %d+%d in a range of %d bytes", t.Dict.Off, t.Dict.Len,
			len(x.memory.Dict))
	}
	if state.scratch, ok = spanBytes(x.memory.Scratch, t.Scratch); !ok {
		return state, sliceError("scratch %d+%d in a range of %d bytes", t.Scratch.Off, t.Scratch.Len,
			len(x.memory.Scratch))
	}
	switch {
	case t.WindowAt > t.ChunkLen || t.ChunkLen > 1<<62:
		return state, sliceError("a window at %d of %d bytes", t.WindowAt, t.ChunkLen)
	case t.Cursor.Page < t.WindowAt && !t.Cursor.Unpacked || t.Cursor.Page > t.ChunkLen:
		return state, sliceError("a cursor at %d, the window begins at %d of %d bytes", t.Cursor.Page, t.WindowAt,
			t.ChunkLen)
	case t.Cursor.Skip > 1<<62 || t.Cursor.Seen > 1<<62 || t.Chunk.Values > 1<<62:
		return state, sliceError("counts that no chunk has")
	}
	// Windows are made of blocks of flash, so that a window may reach beyond the chunk.
	state.window = state.window[:min(uint64(len(state.window)), t.ChunkLen-t.WindowAt)]
	if compiled.source != program.Parquet {
		if t.Cursor.Page < t.WindowAt {
			return state, sliceError("a cursor at %d, the window begins at %d", t.Cursor.Page, t.WindowAt)
		}
		whole := t.Row == 0 && t.Count == s.Rows
		if compiled.output.Keys > 1 && !compiled.output.Fixed && !whole {
			return state, sliceError("rows %d+%d of %d: text with lengths takes whole mini-batches", t.Row, t.Count,
				s.Rows)
		}
		if !isAligned(state.scratch) {
			return state, sliceError("scratch is not 8-byte aligned")
		}
		return state, nil
	}
	state.column = &compiled.columns[t.Column]
	if state.column.needsAllRows() && (t.Row != 0 || t.Count != s.Rows) {
		return state, sliceError("rows %d+%d of %d: column %q feeds several keys with lengths and takes whole "+
			"mini-batches", t.Row, t.Count, s.Rows, state.column.name)
	}
	if !isAligned(state.dictRoom) {
		return state, sliceError("dictionary room is not 8-byte aligned")
	}
	return state, state.setColumnType(&t.Chunk)
}

// setColumnType reads the chunk's type, which must be one that the unit decodes and the program expects.
func (t *taskState) setColumnType(chunk *program.ChunkType) error {
	if chunk.Absent {
		return t.setAbsentType(chunk)
	}
	if chunk.TypeLength > 1<<30 {
		return sliceError("a type length of %d", chunk.TypeLength)
	}
	t.columnType = format.ColumnType{
		Physical: format.Type(chunk.Physical), Codec: format.Codec(chunk.Codec), TypeLength: int32(chunk.TypeLength),
		BitWidth: chunk.BitWidth,
		Unsigned: chunk.Unsigned, List: chunk.MaxRep > 0, MaxDef: chunk.MaxDef, MaxRep: chunk.MaxRep,
		RepDef: chunk.ElementDef, EntryDef: chunk.EntryDef,
		RowsUncounted: chunk.RowsUncounted, AlwaysCompressed: chunk.AlwaysCompressed,
	}
	rep := t.column.repetitionLevel()
	t.columnType.Flattened = rep == 1 && chunk.MaxRep > 1 // lists in lists are read as one list
	if err := t.columnType.Validate(); err != nil {
		if state := errorState(err); state == program.NoSupport {
			return &stateError{state, err}
		}
		return sliceError("column %q: %w", t.column.name, err)
	}
	got := parquetcolumn.KindOf(t.columnType.Kind())
	t.values = chunkReading{to: t.column.kind, reading: t.column.reading, physical: t.columnType.Physical,
		annotation: chunk.Annotation, unsigned64: chunk.Unsigned && t.columnType.Physical == format.Int64}
	t.brings = t.values.needed()
	if chunk.Annotation != program.NotAnnotated && t.column.reading == program.ReadStored {
		return sliceError("column %q: an annotated chunk, and the program reads chunks as they are stored",
			t.column.name)
	}
	if !parquetcolumn.Reads(program.Column{Kind: t.column.kind, Reading: t.column.reading}, t.columnType.Physical,
		chunk.Annotation) || t.columnType.MaxRep != rep && !t.columnType.Flattened {
		return sliceError("column %q: the chunk holds %v (repetition level %d), the program reads %v (%d)",
			t.column.name, got, t.columnType.MaxRep, t.column.kind, rep)
	}
	return nil
}

// spanBytes returns the bytes of a span, if the span lies inside mem.
func spanBytes(mem []byte, s program.Span) ([]byte, bool) {
	if s.Off > uint64(len(mem)) || s.Len > uint64(len(mem))-s.Off {
		return nil, false
	}
	return mem[s.Off : s.Off+s.Len : s.Off+s.Len], true
}

// isAligned reports whether b begins at a multiple of 8 bytes.
func isAligned(b []byte) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0
}
