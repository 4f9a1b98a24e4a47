package engine

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// taskState is a task on its way through check and execution.
type taskState struct {
	task       *program.Task
	column     *column // nil for text
	columnType format.ColumnType
	window     []byte // the bytes of the chunk from task.WindowAt on
	dictRoom   []byte
	scratch    []byte
	cursor     program.Cursor // how far the task has come
	lacking    program.State  // Done, or the state that names what is missing
	needed     uint64         // how much of it the task needs
	readyRows  uint32         // rows that the window holds, if it lacks more
	pageBytes  uint64         // size of the page that the cursor is inside of, else 0
	verifyLate bool           // verify the checksums of uncompressed pages while reading them
}

// clearTasks empties the slice and drops what its elements refer to.
func clearTasks(walks []taskState) []taskState {
	clear(walks[:cap(walks)])
	return walks[:0]
}

// setLacking notes that memory or bytes lack: the state that names which, and how much is needed.
func (t *taskState) setLacking(state program.State, need uint64) { t.lacking, t.needed = state, need }

// headerEstimate is how many bytes are requested for a page header that is not in the window. A header takes some tens
// of bytes, more with long statistics.
const headerEstimate = 1 << 10

// bytesFrom returns how many bytes the window has from chunk offset offset on.
func (t *taskState) bytesFrom(offset uint64) uint64 {
	end := t.task.WindowAt + uint64(len(t.window))
	if offset >= end || offset < t.task.WindowAt {
		return 0
	}
	return end - offset
}

// reachesEnd reports whether the window reaches the chunk's end.
func (t *taskState) reachesEnd() bool {
	return t.task.WindowAt+uint64(len(t.window)) == t.task.ChunkLen
}

// readHeader reads the header of the page at a cursor, from the window or from scratch if the page lies unpacked there.
// ok is false if the window ends inside the header.
func (t *taskState) readHeader(at *program.Cursor, p *page) (ok bool, err error) {
	if at.Unpacked = at.Unpacked && t.findUnpacked(at, p); !at.Unpacked {
		*p = page{offset: at.Page}
		if have := t.bytesFrom(at.Page); have > 0 {
			b := t.window[uint64(len(t.window))-have:]
			p.header, p.headerSize, err = format.ParsePageHeader(b)
		} else {
			err = format.ErrMoreInput
		}
		if errors.Is(err, format.ErrMoreInput) && !(t.reachesEnd() && at.Page >= t.task.WindowAt) {
			return false, nil
		}
		if errors.Is(err, format.ErrMoreInput) {
			err = pageError("the page's header ends behind its chunk")
		}
		if err != nil {
			return false, t.atPage(at, err)
		}
		p.size = uint64(p.headerSize) + uint64(p.header.Compressed)
	}
	if p.size > t.task.ChunkLen-at.Page {
		return false, t.atPage(at, pageError("page of %d bytes, the chunk has %d left", p.size,
			t.task.ChunkLen-at.Page))
	}
	if p.holdsValues() && uint64(p.header.NumValues) > t.task.Chunk.Values-at.Seen {
		return false, t.atPage(at, pageError("page of %d values, the chunk has %d left", p.header.NumValues,
			t.task.Chunk.Values-at.Seen))
	}
	return true, nil
}

// payload returns the page's bytes as they lie in the window, or nil if not all of them do.
func (t *taskState) payload(p *page) []byte {
	have := t.bytesFrom(p.offset)
	if have < p.size {
		return nil
	}
	b := t.window[uint64(len(t.window))-have:]
	return b[p.headerSize:p.size:p.size]
}

// chunkEnded reports whether no value is left behind the cursor.
func (t *taskState) chunkEnded(at *program.Cursor) bool {
	return at.Page >= t.task.ChunkLen || at.Seen >= t.task.Chunk.Values
}

// shortChunk is the error of a chunk that ends before the task's rows do.
func (t *taskState) shortChunk(at *program.Cursor, rows uint64) error {
	if at.Seen < t.task.Chunk.Values {
		return t.atPage(at, pageError("the chunk ends after %d of %d values", at.Seen, t.task.Chunk.Values))
	}
	return t.atPage(at, pageError("the chunk ends, %d rows are wanted still", rows))
}

// atPage wraps an error with the column and the page.
func (t *taskState) atPage(at *program.Cursor, err error) error {
	return fmt.Errorf("%v: %w", program.FaultLocation{Column: t.column.name, Page: at.Ordinal, Offset: at.Page}, err)
}
