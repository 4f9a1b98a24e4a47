package engine

import (
	"fmt"

	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/engine/tensors"
	"github.com/millrace/millrace/fpga/program"
)

// checkSlice checks every number of the slice against the ranges and the program, and sets up the tensors and the task
// states.
func (x *executor) checkSlice() error {
	s, compiled := &x.slice, x.program
	if s.Rows == 0 {
		return failure.Slice("no rows")
	}
	if err := x.output.LayOut(x.memory.Output, s, &compiled.output); err != nil {
		return err
	}
	if compiled.source != program.Parquet && len(s.Tasks) != 1 {
		return failure.Slice("%d tasks, a text source takes one", len(s.Tasks))
	}
	x.tasks = x.tasks[:0]
	appended := s.Values
	for i := range s.Tasks {
		t := &s.Tasks[i]
		state, err := x.checkTask(t)
		var col *column // nil for text
		if err == nil && state.Column != nil {
			col = x.columnOf(&state)
			err = x.checkGroupTask(i, col)
		}
		if err != nil {
			return failure.New(failure.StateOf(err), fmt.Errorf("task %d: %w", i, err))
		}
		if need, ok := x.outputFits(col, t, &appended); !ok {
			state.StopEarly(program.MoreOutput, need)
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
	case col.List || col.part != program.NoPart:
		return 0, true
	default:
		*appended += uint64(col.sparseKeys) * uint64(t.Count)
		need = *appended
	}
	return need, need <= s.ValueCap
}

// checkTask checks one task's numbers against ranges and program.
func (x *executor) checkTask(t *program.Task) (chunk.Task, error) {
	s, compiled := &x.slice, x.program
	state := chunk.Task{Asked: t, Cursor: t.Cursor}
	switch {
	case uint64(t.Column) >= uint64(len(compiled.columns)) || compiled.source != program.Parquet && t.Column != 0:
		return state, failure.Slice("column %d of %d", t.Column, len(compiled.columns))
	case t.Count == 0 || t.Row > s.Rows || t.Count > s.Rows-t.Row:
		return state, failure.Slice("rows %d+%d of %d", t.Row, t.Count, s.Rows)
	}
	var ok bool
	if state.Window, ok = x.memory.window(t.Window); !ok {
		return state, failure.Slice("window %d+%d in a range of %d bytes", t.Window.Off, t.Window.Len, len(x.memory.Input))
	}
	if state.DictRoom, ok = t.Dict.In(x.memory.Dict); !ok {
		return state, failure.Slice("dictionary room %d+%d in a range of %d bytes", t.Dict.Off, t.Dict.Len,
			len(x.memory.Dict))
	}
	if state.Scratch, ok = t.Scratch.In(x.memory.Scratch); !ok {
		return state, failure.Slice("scratch %d+%d in a range of %d bytes", t.Scratch.Off, t.Scratch.Len,
			len(x.memory.Scratch))
	}
	switch {
	case t.WindowAt > t.ChunkLen || t.ChunkLen > 1<<62:
		return state, failure.Slice("a window at %d of %d bytes", t.WindowAt, t.ChunkLen)
	case t.Cursor.Page < t.WindowAt && !t.Cursor.Unpacked || t.Cursor.Page > t.ChunkLen:
		return state, failure.Slice("a cursor at %d, the window begins at %d of %d bytes", t.Cursor.Page, t.WindowAt,
			t.ChunkLen)
	case t.Cursor.Skip > 1<<62 || t.Cursor.Seen > 1<<62 || t.Chunk.Values > 1<<62:
		return state, failure.Slice("counts that no chunk has")
	}
	// Windows are made of blocks of flash, so that a window may reach beyond the chunk.
	state.Window = state.Window[:min(uint64(len(state.Window)), t.ChunkLen-t.WindowAt)]
	if compiled.source != program.Parquet {
		if t.Cursor.Page < t.WindowAt {
			return state, failure.Slice("a cursor at %d, the window begins at %d", t.Cursor.Page, t.WindowAt)
		}
		whole := t.Row == 0 && t.Count == s.Rows
		if compiled.output.Keys > 1 && !compiled.output.Fixed && !whole {
			return state, failure.Slice("rows %d+%d of %d: text with lengths takes whole mini-batches", t.Row, t.Count,
				s.Rows)
		}
		if !tensors.IsAligned(state.Scratch) {
			return state, failure.Slice("scratch is not 8-byte aligned")
		}
		return state, nil
	}
	state.Column = &compiled.columns[t.Column].Column
	if state.Column.Rereads && (t.Row != 0 || t.Count != s.Rows) {
		return state, failure.Slice("rows %d+%d of %d: column %q feeds several keys with lengths and takes whole "+
			"mini-batches", t.Row, t.Count, s.Rows, state.Column.Name)
	}
	if !tensors.IsAligned(state.DictRoom) {
		return state, failure.Slice("dictionary room is not 8-byte aligned")
	}
	return state, state.SetColumnType(&t.Chunk)
}
