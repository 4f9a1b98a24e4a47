package chunk

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Task is a task on its way through check and execution.
type Task struct {
	Asked              *program.Task // The task of the slice.
	Column             *Column       // It is nil for text.
	ColumnType         format.ColumnType
	Window             []byte // The bytes of the chunk from Asked.WindowAt on.
	DictRoom           []byte
	Scratch            []byte
	Cursor             program.Cursor // It says how far the task has come.
	StopState          program.State  // Done, or why the task cannot reach its last row in this slice.
	StopNeed           uint64         // It is program.TaskResult.Need, which belongs to StopState.
	RowsInWindow       uint32         // The window is known to hold as many of the task's rows.
	PageBytes          uint64         // The size of the page that the cursor is inside of, else 0.
	verifyWhileReading bool           // verify the checksums of uncompressed pages while reading them
	values             chunkReading   // converts the chunk's values to the column's
	brings             bool           // values has to convert them
	isAbsent           bool           // the partition lacks the column; see setAbsentType
	absentLevels       [absentPageBytes]byte
}

// StopEarly ends the task before its last row. state says why, and need says how much memory or how many bytes the
// task needs to continue.
func (t *Task) StopEarly(state program.State, need uint64) {
	t.StopState, t.StopNeed = state, need
}

// Stopped reports whether StopEarly ended the task.
func (t *Task) Stopped() bool { return t.StopState != program.Done }

// headerEstimate is how many bytes are requested for a page header that is not in the window. A header takes some tens
// of bytes, more with long statistics.
const headerEstimate = 1 << 10

// WindowBytesFrom returns how many bytes the window has from chunk offset offset on.
func (t *Task) WindowBytesFrom(offset uint64) uint64 {
	end := t.Asked.WindowAt + uint64(len(t.Window))
	if offset >= end || offset < t.Asked.WindowAt {
		return 0
	}
	return end - offset
}

// mustFitInt64 reports whether the task's values are unsigned integers that must be below 2^63.
func (t *Task) mustFitInt64() bool {
	return t.Column.FitsInt64 && t.ColumnType.Unsigned && t.ColumnType.Kind() == format.KindInt64
}

// WindowReachesEnd reports whether the window reaches the chunk's end.
func (t *Task) WindowReachesEnd() bool {
	return t.Asked.WindowAt+uint64(len(t.Window)) == t.Asked.ChunkLen
}

// readHeader reads the header of the page at a cursor, from the window or from scratch if the page lies unpacked there.
// ok is false if the window ends inside the header.
func (t *Task) readHeader(at *program.Cursor, p *page) (ok bool, err error) {
	if t.isAbsent {
		t.readAbsentPage(at, p)
		return true, nil
	}
	if at.Unpacked = at.Unpacked && t.findPageInScratch(at, p); !at.Unpacked {
		*p = page{offset: at.Page}
		if have := t.WindowBytesFrom(at.Page); have > 0 {
			b := t.Window[uint64(len(t.Window))-have:]
			p.header, p.headerSize, err = format.ParsePageHeader(b)
		} else {
			err = format.ErrMoreInput
		}
		if errors.Is(err, format.ErrMoreInput) && !(t.WindowReachesEnd() && at.Page >= t.Asked.WindowAt) {
			return false, nil
		}
		if errors.Is(err, format.ErrMoreInput) {
			err = failure.Page("the page's header ends behind its chunk")
		}
		if err != nil {
			return false, t.errorAtPage(at, err)
		}
		p.size = uint64(p.headerSize) + uint64(p.header.Compressed)
	}
	if p.size > t.Asked.ChunkLen-at.Page {
		return false, t.errorAtPage(at, failure.Page("page of %d bytes, the chunk has %d left", p.size,
			t.Asked.ChunkLen-at.Page))
	}
	if p.holdsValues() && uint64(p.header.NumValues) > t.Asked.Chunk.Values-at.Seen {
		return false, t.errorAtPage(at, failure.Page("page of %d values, the chunk has %d left", p.header.NumValues,
			t.Asked.Chunk.Values-at.Seen))
	}
	return true, nil
}

// payload returns the page's bytes as they lie in the window, or nil if not all of them do.
func (t *Task) payloadInWindow(p *page) []byte {
	if t.isAbsent {
		return p.unpacked
	}
	have := t.WindowBytesFrom(p.offset)
	if have < p.size {
		return nil
	}
	b := t.Window[uint64(len(t.Window))-have:]
	return b[p.headerSize:p.size:p.size]
}

// chunkEnded reports whether no value is left behind the cursor.
func (t *Task) chunkEnded(at *program.Cursor) bool {
	return at.Page >= t.Asked.ChunkLen && !t.isAbsent || at.Seen >= t.Asked.Chunk.Values
}

// chunkEndError is the error of a chunk that ends before the task's rows do.
func (t *Task) chunkEndError(at *program.Cursor, rows uint64) error {
	if at.Seen < t.Asked.Chunk.Values {
		return t.errorAtPage(at, failure.Page("the chunk ends after %d of %d values", at.Seen, t.Asked.Chunk.Values))
	}
	return t.errorAtPage(at, failure.Page("the chunk ends, %d rows are wanted still", rows))
}

// ErrorAtCursor wraps an error with the column and the page at the task's cursor.
func (t *Task) ErrorAtCursor(err error) error { return t.errorAtPage(&t.Cursor, err) }

// errorAtPage wraps an error with the column and the page.
func (t *Task) errorAtPage(at *program.Cursor, err error) error {
	if errors.Is(err, format.ErrLimit) {
		err = fmt.Errorf("%w: a drive decodes no more at once: leave the column out, or write shorter values or lists",
			err)
	}
	return fmt.Errorf("%v: %w", program.FaultLocation{Column: t.Column.Name, Page: at.Ordinal, Offset: at.Page}, err)
}
