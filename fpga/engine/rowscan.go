package engine

import (
	"errors"
	"math"

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
	*taskState
	sinks         []sink
	rowsWritten   uint32
	pageLoaded    bool // the decoder holds the page at the cursor, and stands cursor.Skip rows behind its beginning
	nextBlockRows int
	stageStart    uint64 // when the current stage (decode or transform) began
}

// executeTask executes one task: every pass over its rows. Afterwards t.cursor is where to continue, and t.stopState
// says why the task stopped.
func (x *executor) executeTask(t *taskState, result *program.TaskResult) error {
	x.resident.opened = false
	start, written, output := t.cursor, x.output.written, x.output.bytesWritten
	defer func() {
		result.Values += x.output.written - written
		x.result.Values = x.output.written
		x.result.BytesOut += x.output.bytesWritten - output
	}()
	// The room that the lists of earlier tasks take is known only now.
	if need := written + uint64(t.column.sparseKeys)*uint64(t.task.Count); !t.columnType.List && !x.output.fixed &&
		need > x.output.capacity {
		t.stopEarly(program.MoreOutput, need)
		return nil
	}
	for i, sinks := range t.column.passes {
		t.cursor = start
		bytesIn := x.result.BytesIn
		s := rowScan{taskState: t, sinks: sinks, nextBlockRows: x.engine.blockRows, stageStart: x.readClock()}
		if t.columnType.List {
			s.nextBlockRows = max(1, s.nextBlockRows/32)
		}
		t.verifyWhileReading = true
		err := x.scanRows(&s)
		t.verifyWhileReading = false
		if checksumErr := x.pageChecksum.verifyPage(); checksumErr != nil {
			err = checksumErr
		}
		if err != nil {
			t.cursor.Checked = false
		}
		if i > 0 {
			x.result.BytesIn = bytesIn
		}
		result.Rows = s.rowsWritten
		if err != nil || t.stopped() {
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
	for s.rowsWritten < count {
		if !s.pageLoaded {
			if err := x.seekCursorRow(s); err != nil || s.stopped() {
				return err
			}
		}
		n := x.decoder.Rows()
		if n == 0 {
			s.finishPage(x)
			continue
		}
		if s.lastRowMayContinue(x) {
			if n--; n == 0 {
				if err := x.writeLastRow(s); err != nil || s.stopped() {
					return err
				}
				continue
			}
		}
		if err := x.decodeRows(s, min(n, int(count-s.rowsWritten))); err != nil || s.stopped() {
			return err
		}
	}
	if s.pageLoaded && x.decoder.Rows() == 0 {
		s.finishPage(x)
	}
	if s.pageLoaded && !s.columnType.List {
		if at := x.decoder.ValueAt(); at <= program.MaxValueAt {
			s.cursor.ValueAt = uint32(at)
		}
	}
	s.notePageInScratch(s.pageLoaded, &x.page)
	return nil
}

// notePageInScratch notes in the cursor whether the cursor's page lies unpacked in scratch, where the next slice will
// look for it. inPage reports whether the cursor is inside p.
func (s *rowScan) notePageInScratch(inPage bool, p *page) {
	s.cursor.Unpacked, s.cursorPageBytes = inPage && p.isPacked(&s.columnType), 0
	if inPage && p.size <= math.MaxUint32 {
		s.cursorPageBytes = p.size
	}
}

// finishPage moves the cursor behind the loaded page.
func (s *rowScan) finishPage(x *executor) {
	s.movePastPage(&s.cursor, &x.page)
	s.cursor.Skip = 0
	s.pageLoaded = false
}

// lastRowMayContinue reports whether the page's last row may continue in the next page: pages of lists need not end
// where a row does.
func (s *rowScan) lastRowMayContinue(x *executor) bool {
	if !x.page.header.MayContinue(&s.columnType) {
		return false
	}
	c := s.cursor
	s.movePastPage(&c, &x.page)
	return !s.chunkEnded(&c)
}

// seekCursorRow moves the cursor to the page that holds the cursor's row. It loads that page into the decoder, and
// skips the rows before the row.
func (x *executor) seekCursorRow(s *rowScan) error {
	for {
		if x.ctx.Err() != nil {
			s.stopEarly(program.Idle, 0)
			return nil
		}
		if s.chunkEnded(&s.cursor) {
			return s.chunkEndError(&s.cursor, uint64(s.task.Count-s.rowsWritten))
		}
		ok, err := s.readHeader(&s.cursor, &x.page)
		if err != nil {
			return err
		}
		if !ok {
			s.stopEarly(program.MoreInput, min(max(headerEstimate, 2*s.windowBytesFrom(s.cursor.Page)),
				s.task.ChunkLen-s.cursor.Page))
			return nil
		}
		if x.page.header.Type == format.DictionaryPage {
			if err := x.loadDictionaryAtCursor(s); err != nil || s.stopped() {
				return err
			}
			continue
		}
		if !x.page.holdsValues() {
			s.movePastPage(&s.cursor, &x.page)
			continue
		}
		if n, known := x.page.rowCount(&s.columnType); known && s.cursor.Skip >= n {
			s.cursor.Skip -= n
			s.movePastPage(&s.cursor, &x.page)
			continue
		}
		if ok, err := x.loadPage(s, &s.cursor); err != nil || !ok {
			return err
		}
		if x.decoder.Continues() && s.cursor.Seen == 0 {
			return s.errorAtPage(&s.cursor, pageError("the chunk begins inside a row"))
		}
		if x.decoder.Continues() && s.cursor.ValueAt == program.PageBeginsRow {
			return s.errorAtPage(&s.cursor, pageError("the page begins inside a row that the page before ended"))
		}
		n := uint64(x.decoder.Rows())
		if s.cursor.Skip >= n && (s.columnType.List || n > 0) {
			s.cursor.Skip -= n
			s.movePastPage(&s.cursor, &x.page)
			continue
		}
		if err := x.skipToCursor(s); err != nil {
			return s.errorAtPage(&s.cursor, err)
		}
		s.pageLoaded = true
		return nil
	}
}

// skipToCursor skips the rows of the loaded page that lie before the cursor's. The cursor loses the place of the value,
// which is that of the task's first row.
func (x *executor) skipToCursor(s *rowScan) error {
	at := s.cursor.ValueAt
	if at == 0 || s.columnType.List {
		return x.decoder.Skip(int(s.cursor.Skip))
	}
	s.cursor.ValueAt = 0
	return x.decoder.SkipTo(int(s.cursor.Skip), int(at))
}

// loadPage unpacks the page that x.page describes, and loads it into the decoder. at is the cursor of the page. If
// memory or bytes lack, ok is false and the task has stopped; missing bytes count from s.cursor's page, which may lie
// before at's.
func (x *executor) loadPage(s *rowScan, at *program.Cursor) (ok bool, err error) {
	p := &x.page
	payload := s.payloadInWindow(p)
	if payload == nil && p.unpacked == nil {
		s.stopEarly(program.MoreInput, p.endOffset()-s.cursor.Page)
		return false, nil
	}
	if err := x.pageChecksum.verifyPage(); err != nil { // the page before this one
		return false, err
	}
	if ok, err := x.unpackPage(s.taskState, at, p, payload); err != nil {
		return false, s.errorAtPage(at, err)
	} else if !ok {
		s.stopEarly(program.MoreScratch, p.scratchNeeded(&s.columnType))
		return false, nil
	}
	dict, err := x.openDictionary(s.taskState, at)
	if err != nil {
		return false, err
	}
	if err := x.decoder.Reset(&s.columnType, &p.header, p.unpacked, dict); err != nil {
		return false, s.errorAtPage(at, err)
	}
	return true, nil
}

// decodeRows decodes up to n rows of the loaded page in blocks and writes them.
func (x *executor) decodeRows(s *rowScan, n int) error {
	for n > 0 {
		rows := min(n, s.nextBlockRows)
		x.block.Reset(s.columnType.Kind())
		x.block.Lend = s.values.mayLend() // The page stays in place until the block is written.
		got, err := x.decoder.Next(&x.block, rows)
		if errors.Is(err, format.ErrLimit) && rows > 1 {
			// The rows are longer than the rows before them: decode fewer at a time. After an error the decoder must be
			// reset.
			s.nextBlockRows = max(1, rows/16)
			if err := x.rewindDecoder(s); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return s.errorAtPage(&s.cursor, err)
		}
		if got <= 0 {
			return s.errorAtPage(&s.cursor, pageError("%d rows are missing", n))
		}
		written, err := x.writeBlock(s)
		if err != nil {
			return err
		}
		s.cursor.Skip += uint64(written)
		s.rowsWritten += uint32(written)
		if s.stopped() {
			s.notePageInScratch(true, &x.page)
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
	direct := x.block.Lent && atMostOneStep(s.sinks)
	switch {
	case s.columnType.List:
		values := listBlockValues
		if direct {
			values *= directValuesFactor
		}
		s.nextBlockRows = min(max(1, got*values/max(1, x.block.Values())), x.engine.blockRows)
	case direct:
		s.nextBlockRows = min(directRowsFactor*x.engine.blockRows, x.block.MaxValues)
	}
}

// atMostOneStep reports whether the values of every sink pass at most one operator between the block and their
// destination.
func atMostOneStep(sinks []sink) bool {
	for i := range sinks {
		if sinks[i].chain.stepCount() > 1 {
			return false
		}
	}
	return true
}

// rewindDecoder sets the decoder back to the cursor's row in the loaded page.
func (x *executor) rewindDecoder(s *rowScan) error {
	dict, err := x.openDictionary(s.taskState, &s.cursor)
	if err != nil {
		return err
	}
	err = x.decoder.Reset(&s.columnType, &x.page.header, x.page.unpacked, dict)
	if err == nil {
		err = x.decoder.Skip(int(s.cursor.Skip))
	}
	if err != nil {
		return s.errorAtPage(&s.cursor, err)
	}
	return nil
}
