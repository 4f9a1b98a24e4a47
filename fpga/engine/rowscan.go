package engine

import (
	"errors"
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// listValues is how many elements of lists a block should hold, so that the block stays in the first-level cache as
// flat blocks do.
const listValues = 4096

// Values that one operator takes directly from the page to their destination need no room in the cache in between.
// Blocks of such values are longer, so that there are fewer blocks.
const (
	directRows   = 4 // times the rows of other flat blocks
	directValues = 8 // times the elements of other blocks of lists
)

// rowScan is one pass over a task's rows.
type rowScan struct {
	*taskState
	sinks     []sink
	done      uint32 // rows written
	pageOpen  bool   // the decoder holds the page at the cursor, cursor.Skip rows behind its beginning
	blockRows int    // rows of the next block
	clock     uint64 // when the current stage (decode or transform) began
}

// executeTask executes one task: every pass over its rows. Afterwards t.cursor is where to continue, and t.lacking is
// why the task stopped.
func (x *executor) executeTask(t *taskState, result *program.TaskResult) error {
	x.resident.open = false
	start, written, output := t.cursor, x.output.written, x.output.bytesWritten
	defer func() {
		result.Values += x.output.written - written
		x.result.Values = x.output.written
		x.result.BytesOut += x.output.bytesWritten - output
	}()
	// The room that the lists of earlier tasks take is known only now.
	if need := written + uint64(t.column.sparseKeys)*uint64(t.task.Count); !t.columnType.List && !x.output.fixed &&
		need > x.output.capacity {
		t.setLacking(program.MoreOutput, need)
		return nil
	}
	for i, sinks := range t.column.passes {
		t.cursor = start
		read := x.result.BytesIn
		s := rowScan{taskState: t, sinks: sinks, blockRows: x.engine.blockRows, clock: x.readClock()}
		if t.columnType.List {
			s.blockRows = max(1, s.blockRows/32)
		}
		t.verifyLate = true
		err := x.scanRows(&s)
		t.verifyLate = false
		if wrong := x.pending.verifyPage(); wrong != nil {
			err = wrong
		}
		if err != nil {
			t.cursor.Checked = false
		}
		if i > 0 {
			x.result.BytesIn = read
		}
		result.Rows = s.done
		if err != nil || t.lacking != program.Done {
			return err
		}
	}
	if x.output.fixed {
		// Values of keys with fixed lengths are not appended. They are counted nevertheless.
		x.output.written += uint64(t.column.sparseKeys) * uint64(t.task.Count)
	}
	return nil
}

// scanRows runs a pass until its rows are written, or until memory or bytes lack.
func (x *executor) scanRows(s *rowScan) error {
	count := s.task.Count
	for s.done < count {
		if !s.pageOpen {
			if err := x.openRow(s); err != nil || s.lacking != program.Done {
				return err
			}
		}
		n := x.decoder.Rows()
		if n == 0 {
			s.leavePage(x)
			continue
		}
		if s.mayContinue(x) {
			if n--; n == 0 {
				if err := x.writeLastRow(s); err != nil || s.lacking != program.Done {
					return err
				}
				continue
			}
		}
		if err := x.decodeRows(s, min(n, int(count-s.done))); err != nil || s.lacking != program.Done {
			return err
		}
	}
	if s.pageOpen && x.decoder.Rows() == 0 {
		s.leavePage(x)
	}
	s.noteUnpacked(s.pageOpen, &x.page)
	return nil
}

// noteUnpacked notes whether the page at the cursor lies unpacked where the next slice will look for it. inPage reports
// whether the cursor is inside p.
func (s *rowScan) noteUnpacked(inPage bool, p *page) {
	s.cursor.Unpacked, s.pageBytes = inPage && p.isPacked(&s.columnType), 0
	if inPage && p.size <= math.MaxUint32 {
		s.pageBytes = p.size
	}
}

// leavePage moves the cursor behind the open page.
func (s *rowScan) leavePage(x *executor) {
	passPage(&s.cursor, &x.page)
	s.cursor.Skip = 0
	s.pageOpen = false
}

// mayContinue reports whether the page's last row may continue in the next page: pages of lists need not end where a
// row does.
func (s *rowScan) mayContinue(x *executor) bool {
	if !x.page.header.MayContinue(&s.columnType) {
		return false
	}
	c := s.cursor
	passPage(&c, &x.page)
	return !s.chunkEnded(&c)
}

// openRow finds the page of the cursor's row, opens it and skips the rows before that row.
func (x *executor) openRow(s *rowScan) error {
	for {
		if x.ctx.Err() != nil {
			s.setLacking(program.Idle, 0)
			return nil
		}
		if s.chunkEnded(&s.cursor) {
			return s.shortChunk(&s.cursor, uint64(s.task.Count-s.done))
		}
		ok, err := s.readHeader(&s.cursor, &x.page)
		if err != nil {
			return err
		}
		if !ok {
			s.setLacking(program.MoreInput, min(max(headerEstimate, 2*s.bytesFrom(s.cursor.Page)),
				s.task.ChunkLen-s.cursor.Page))
			return nil
		}
		if x.page.header.Type == format.DictionaryPage {
			if err := x.passDictionary(s); err != nil || s.lacking != program.Done {
				return err
			}
			continue
		}
		if !x.page.holdsValues() {
			passPage(&s.cursor, &x.page)
			continue
		}
		if n, known := x.page.rowCount(&s.columnType); known && s.cursor.Skip >= n {
			s.cursor.Skip -= n
			passPage(&s.cursor, &x.page)
			continue
		}
		if ok, err := x.openPage(s, &s.cursor); err != nil || !ok {
			return err
		}
		if x.decoder.Continues() && s.cursor.Seen == 0 {
			return s.atPage(&s.cursor, pageError("the chunk begins inside a row"))
		}
		n := uint64(x.decoder.Rows())
		if s.cursor.Skip >= n && (s.columnType.List || n > 0) {
			s.cursor.Skip -= n
			passPage(&s.cursor, &x.page)
			continue
		}
		if err := x.decoder.Skip(int(s.cursor.Skip)); err != nil {
			return s.atPage(&s.cursor, err)
		}
		s.pageOpen = true
		return nil
	}
}

// openPage puts the page that x.page describes into the decoder. ok is false if memory or bytes lack. at is the
// cursor of the page. The number of bytes that lack counts from s.cursor's page, which may lie before at's.
func (x *executor) openPage(s *rowScan, at *program.Cursor) (ok bool, err error) {
	p := &x.page
	payload := s.payload(p)
	if payload == nil && p.unpacked == nil {
		s.setLacking(program.MoreInput, p.endOffset()-s.cursor.Page)
		return false, nil
	}
	if err := x.pending.verifyPage(); err != nil { // the page before this one
		return false, err
	}
	if ok, err := x.unpackPage(s.taskState, at, p, payload); err != nil {
		return false, s.atPage(at, err)
	} else if !ok {
		s.setLacking(program.MoreRoom, p.scratchNeeded(&s.columnType))
		return false, nil
	}
	dict, err := x.openResident(s.taskState, at)
	if err != nil {
		return false, err
	}
	if err := x.decoder.Reset(&s.columnType, &p.header, p.unpacked, dict); err != nil {
		return false, s.atPage(at, err)
	}
	return true, nil
}

// decodeRows decodes up to n rows of the open page in blocks and writes them.
func (x *executor) decodeRows(s *rowScan, n int) error {
	for n > 0 {
		ask := min(n, s.blockRows)
		x.block.Reset(s.columnType.Kind())
		x.block.Lend = true // the page stays where it is until the block is written
		got, err := x.decoder.Next(&x.block, ask)
		if errors.Is(err, format.ErrLimit) && ask > 1 {
			// The rows are longer than the rows before them: decode fewer at a time. After an error the decoder must be
			// reset.
			s.blockRows = max(1, ask/16)
			if err := x.reopen(s); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return s.atPage(&s.cursor, err)
		}
		if got <= 0 {
			return s.atPage(&s.cursor, pageError("%d rows are missing", n))
		}
		written, err := x.writeBlock(s)
		if err != nil {
			return err
		}
		s.cursor.Skip += uint64(written)
		s.done += uint32(written)
		if s.lacking != program.Done {
			s.noteUnpacked(true, &x.page)
			return nil
		}
		s.sizeNextBlock(x, got)
		n -= got
	}
	return nil
}

// sizeNextBlock sets the rows of the next block from those of the block that is done.
func (s *rowScan) sizeNextBlock(x *executor, got int) {
	straight := x.block.Lent && singleStep(s.sinks)
	switch {
	case s.columnType.List:
		values := listValues
		if straight {
			values *= directValues
		}
		s.blockRows = min(max(1, got*values/max(1, x.block.Values())), x.engine.blockRows)
	case straight:
		s.blockRows = min(directRows*x.engine.blockRows, x.block.MaxValues)
	}
}

// singleStep reports whether the values of every sink pass at most one operator between the block and their
// destination.
func singleStep(sinks []sink) bool {
	for i := range sinks {
		work := 0
		for k := range sinks[i].steps {
			if t := &sinks[i].steps[k]; !t.mergedIntoLog && !t.fillsZeros {
				work++
			}
		}
		if work > 1 {
			return false
		}
	}
	return true
}

// reopen sets the decoder back to the cursor's row in the open page.
func (x *executor) reopen(s *rowScan) error {
	dict, err := x.openResident(s.taskState, &s.cursor)
	if err != nil {
		return err
	}
	err = x.decoder.Reset(&s.columnType, &x.page.header, x.page.unpacked, dict)
	if err == nil {
		err = x.decoder.Skip(int(s.cursor.Skip))
	}
	if err != nil {
		return s.atPage(&s.cursor, err)
	}
	return nil
}
