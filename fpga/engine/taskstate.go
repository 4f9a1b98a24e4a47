package engine

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// taskState is a task on its way through check and execution.
type taskState struct {
	task               *program.Task
	column             *column // nil for text
	columnType         format.ColumnType
	window             []byte // the bytes of the chunk from task.WindowAt on
	dictRoom           []byte
	scratch            []byte
	cursor             program.Cursor // how far the task has come
	stopState          program.State  // Done, or why the task cannot reach its last row in this slice
	stopNeed           uint64         // program.TaskResult.Need, which belongs to stopState
	rowsInWindow       uint32         // how many of the task's rows the window is known to hold
	cursorPageBytes    uint64         // size of the page that the cursor is inside of, else 0
	verifyWhileReading bool           // verify the checksums of uncompressed pages while reading them
	values             chunkReading   // converts the chunk's values to the column's
	brings             bool           // values has to convert them
	isAbsent           bool           // the partition lacks the column; see setAbsentType
	absentLevels       [absentPageBytes]byte
}

// releaseTasks drops the tasks' references to the memory of their slice. It returns an empty list that reuses tasks.
func releaseTasks(tasks []taskState) []taskState {
	clear(tasks[:cap(tasks)])
	return tasks[:0]
}

// stopEarly ends the task before its last row. state says why, and need says how much memory or how many bytes the
// task needs to continue.
func (t *taskState) stopEarly(state program.State, need uint64) {
	t.stopState, t.stopNeed = state, need
}

// stopped reports whether stopEarly ended the task.
func (t *taskState) stopped() bool { return t.stopState != program.Done }

// headerEstimate is how many bytes are requested for a page header that is not in the window. A header takes some tens
// of bytes, more with long statistics.
const headerEstimate = 1 << 10

// windowBytesFrom returns how many bytes the window has from chunk offset offset on.
func (t *taskState) windowBytesFrom(offset uint64) uint64 {
	end := t.task.WindowAt + uint64(len(t.window))
	if offset >= end || offset < t.task.WindowAt {
		return 0
	}
	return end - offset
}

// mustFitInt64 reports whether the task's values are unsigned integers that must be below 2^63.
func (t *taskState) mustFitInt64() bool {
	return t.column.fitsInt64 && t.columnType.Unsigned && t.columnType.Kind() == format.KindInt64
}

// windowReachesEnd reports whether the window reaches the chunk's end.
func (t *taskState) windowReachesEnd() bool {
	return t.task.WindowAt+uint64(len(t.window)) == t.task.ChunkLen
}

// readHeader reads the header of the page at a cursor, from the window or from scratch if the page lies unpacked there.
// ok is false if the window ends inside the header.
func (t *taskState) readHeader(at *program.Cursor, p *page) (ok bool, err error) {
	if t.isAbsent {
		t.readAbsentPage(at, p)
		return true, nil
	}
	if at.Unpacked = at.Unpacked && t.findPageInScratch(at, p); !at.Unpacked {
		*p = page{offset: at.Page}
		if have := t.windowBytesFrom(at.Page); have > 0 {
			b := t.window[uint64(len(t.window))-have:]
			p.header, p.headerSize, err = format.ParsePageHeader(b)
		} else {
			err = format.ErrMoreInput
		}
		if errors.Is(err, format.ErrMoreInput) && !(t.windowReachesEnd() && at.Page >= t.task.WindowAt) {
			return false, nil
		}
		if errors.Is(err, format.ErrMoreInput) {
			err = pageError("the page's header ends behind its chunk")
		}
		if err != nil {
			return false, t.errorAtPage(at, err)
		}
		p.size = uint64(p.headerSize) + uint64(p.header.Compressed)
	}
	if p.size > t.task.ChunkLen-at.Page {
		return false, t.errorAtPage(at, pageError("page of %d bytes, the chunk has %d left", p.size,
			t.task.ChunkLen-at.Page))
	}
	if p.holdsValues() && uint64(p.header.NumValues) > t.task.Chunk.Values-at.Seen {
		return false, t.errorAtPage(at, pageError("page of %d values, the chunk has %d left", p.header.NumValues,
			t.task.Chunk.Values-at.Seen))
	}
	return true, nil
}

// payload returns the page's bytes as they lie in the window, or nil if not all of them do.
func (t *taskState) payloadInWindow(p *page) []byte {
	if t.isAbsent {
		return p.unpacked
	}
	have := t.windowBytesFrom(p.offset)
	if have < p.size {
		return nil
	}
	b := t.window[uint64(len(t.window))-have:]
	return b[p.headerSize:p.size:p.size]
}

// chunkEnded reports whether no value is left behind the cursor.
func (t *taskState) chunkEnded(at *program.Cursor) bool {
	return at.Page >= t.task.ChunkLen && !t.isAbsent || at.Seen >= t.task.Chunk.Values
}

// chunkEndError is the error of a chunk that ends before the task's rows do.
func (t *taskState) chunkEndError(at *program.Cursor, rows uint64) error {
	if at.Seen < t.task.Chunk.Values {
		return t.errorAtPage(at, pageError("the chunk ends after %d of %d values", at.Seen, t.task.Chunk.Values))
	}
	return t.errorAtPage(at, pageError("the chunk ends, %d rows are wanted still", rows))
}

// errorAtPage wraps an error with the column and the page.
func (t *taskState) errorAtPage(at *program.Cursor, err error) error {
	if errors.Is(err, format.ErrLimit) {
		err = fmt.Errorf("%w: a drive decodes no more at once: leave the column out, or write shorter values or lists",
			err)
	}
	return fmt.Errorf("%v: %w", program.FaultLocation{Column: t.column.name, Page: at.Ordinal, Offset: at.Page}, err)
}
