package engine

import (
	"errors"

	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// listBlockValues is how many elements of lists a block should hold, so that the block stays in the first-level cache
// as flat blocks do.
const listBlockValues = 4096

// Values that one operator takes directly from the page to their destination need no room in the cache in between.
// Blocks of such values are longer, so that there are fewer blocks.
const (
	directRowsFactor   = 4 // times the rows of other flat blocks
	directValuesFactor = 8 // times the elements of other blocks of lists
)

// rowScan is one pass over a task's rows.
type rowScan struct {
	*chunk.Reader
	sinks         []sink
	nextBlockRows int
}

// executeTask executes one task: every pass over its rows. Afterwards t.cursor is where to continue, and t.StopState
// says why the task stopped.
func (x *executor) executeTask(t *chunk.Task, result *program.TaskResult) error {
	reader, c := x.reader, x.columnOf(t)
	reader.BeginTask(t)
	start, written, output := t.Cursor, x.output.Written, x.output.BytesWritten
	defer func() {
		result.Values += x.output.Written - written
		x.result.Values = x.output.Written
		x.result.BytesOut += x.output.BytesWritten - output
	}()
	// The room that the lists of earlier tasks take is known only now.
	if need := written + uint64(c.sparseKeys)*uint64(t.Asked.Count); !t.ColumnType.List && !x.output.Fixed &&
		need > x.output.Capacity {
		t.StopEarly(program.MoreOutput, need)
		return nil
	}
	for i, sinks := range c.passes {
		t.Cursor = start
		bytesIn := reader.BytesIn
		reader.BeginPass()
		s := rowScan{Reader: reader, sinks: sinks, nextBlockRows: x.engine.blockRows}
		if t.ColumnType.List {
			s.nextBlockRows = max(1, s.nextBlockRows/32)
		}
		err := reader.VerifyPass(x.scanRows(&s))
		if i > 0 {
			reader.BytesIn = bytesIn
		}
		result.Rows = s.RowsWritten
		if err != nil || t.Stopped() {
			return err
		}
	}
	if x.output.Fixed {
		// Values of keys with fixed lengths are not appended. They are counted nevertheless.
		x.output.Written += uint64(c.sparseKeys) * uint64(t.Asked.Count)
	}
	return nil
}

// scanRows runs a pass until its rows are written, or until memory or bytes lack.
func (x *executor) scanRows(s *rowScan) error {
	count := s.Asked.Count
	for s.RowsWritten < count {
		n, err := s.OpenPage()
		if err != nil || s.Stopped() {
			return err
		}
		if n == 0 {
			if err := x.writeLastRow(s); err != nil || s.Stopped() {
				return err
			}
			continue
		}
		if err := x.decodeRows(s, min(n, int(count-s.RowsWritten))); err != nil || s.Stopped() {
			return err
		}
	}
	s.EndPass()
	s.NoteValuePlace()
	return nil
}

// writeLastRow writes the last row of a page of lists. A page may end inside a row. The row is complete where the
// next page begins with another row.
func (x *executor) writeLastRow(s *rowScan) error {
	if err := s.ReadLastRow(); err != nil || s.Stopped() {
		return err
	}
	written, err := x.writeBlock(s)
	if err != nil {
		return err
	}
	if written == 0 { // the output lacks room
		s.StayBeforeBlock(true)
	} else {
		s.MoveBehindBlock(1, true)
	}
	return nil
}

// decodeRows decodes up to n rows of the loaded page in blocks and writes them.
func (x *executor) decodeRows(s *rowScan, n int) error {
	for n > 0 {
		rows := min(n, s.nextBlockRows)
		got, err := s.DecodeBlock(rows)
		if errors.Is(err, format.ErrLimit) && rows > 1 {
			// The rows are longer than the rows before them: decode fewer at a time.
			s.nextBlockRows = max(1, rows/16)
			if err := s.RewindDecoder(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return s.ErrorAtCursor(err)
		}
		if got <= 0 {
			return s.ErrorAtCursor(failure.Page("%d rows are missing", n))
		}
		written, err := x.writeBlock(s)
		if err != nil {
			return err
		}
		s.MoveBehindBlock(written, false)
		if s.Stopped() {
			s.StayBeforeBlock(false)
			return nil
		}
		s.sizeNextBlock(x, got)
		n -= got
	}
	return nil
}

// sizeNextBlock sets the number of rows of the next block from the values of the last block, which had got rows. A
// block is direct if one operator takes its values from the page to their destination.
func (s *rowScan) sizeNextBlock(x *executor, got int) {
	direct := s.Block.Lent && atMostOneStep(s.sinks)
	switch {
	case s.ColumnType.List:
		values := listBlockValues
		if direct {
			values *= directValuesFactor
		}
		s.nextBlockRows = min(max(1, got*values/max(1, s.Block.Values())), x.engine.blockRows)
	case direct:
		s.nextBlockRows = min(directRowsFactor*x.engine.blockRows, s.Block.MaxValues)
	}
}

// atMostOneStep reports whether the values of every sink pass at most one operator between the block and their
// destination.
func atMostOneStep(sinks []sink) bool {
	for i := range sinks {
		if sinks[i].chain.StepCount() > 1 {
			return false
		}
	}
	return true
}
