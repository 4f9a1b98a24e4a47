package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// writeLastRow writes the last row of a page of lists. A page may end inside a row. The row is complete where the
// next page begins with another row.
func (x *executor) writeLastRow(s *rowScan) error {
	last, err := x.readLastRow(s)
	if err != nil || s.stopped() {
		return err
	}
	written, err := x.writeBlock(s)
	if err != nil {
		return err
	}
	if written == 0 { // the output lacks room
		last.keepCursorBeforeRow(s)
		return nil
	}
	s.rowsWritten++
	last.moveCursorBehindRow(s)
	return nil
}

// lastRow is the end of the last row of a page. The row may end in a later page.
type lastRow struct {
	endCursor      program.Cursor // behind the row
	pageInScratch  page           // the page that lies unpacked in scratch
	nextPageLoaded bool           // the decoder holds the page at endCursor
}

// moveCursorBehindRow moves the cursor behind the row.
func (l *lastRow) moveCursorBehindRow(s *rowScan) {
	s.cursor, s.pageLoaded = l.endCursor, l.nextPageLoaded
}

// keepCursorBeforeRow leaves the cursor before the row, and notes whether the cursor's page lies unpacked in scratch.
func (l *lastRow) keepCursorBeforeRow(s *rowScan) {
	s.notePageInScratch(s.cursorPageUnpacked(&l.pageInScratch), &l.pageInScratch)
}

// readLastRow decodes the last row of a page of lists into the block, including the row's values that lie in the
// following pages. The cursor stays at the row's beginning.
func (x *executor) readLastRow(s *rowScan) (last lastRow, err error) {
	x.block.Reset(s.columnType.Kind())
	x.block.Lend = false // the row may continue in a page that takes this page's memory
	if n, err := x.decoder.Next(&x.block, 1); err != nil {
		return last, s.errorAtPage(&s.cursor, err)
	} else if n != 1 {
		return last, s.errorAtPage(&s.cursor, pageError("a row is missing"))
	}
	at := s.cursor
	last.pageInScratch = x.page
	for {
		s.movePastPage(&at, &x.page)
		at.Skip = 0
		if x.ctx.Err() != nil { // there may be millions of pages that hold no values
			s.stopEarly(program.Idle, 0)
			last.keepCursorBeforeRow(s)
			return last, nil
		}
		if s.chunkEnded(&at) {
			if at.Seen < s.task.Chunk.Values {
				return last, s.chunkEndError(&at, 0)
			}
			break
		}
		ok, err := s.readHeader(&at, &x.page)
		if err != nil {
			return last, err
		}
		if !ok {
			s.stopEarly(program.MoreInput, min(at.Page+max(headerEstimate, 2*s.windowBytesFrom(at.Page)),
				s.task.ChunkLen)-s.cursor.Page)
			last.keepCursorBeforeRow(s)
			return last, nil
		}
		if x.page.header.Type == format.DictionaryPage {
			return last, s.errorAtPage(&at, pageError("a dictionary page behind the chunk's first page"))
		}
		if !x.page.holdsValues() {
			continue
		}
		if !x.page.header.MayContinue(&s.columnType) {
			break // the page begins with a row
		}
		ok, err = x.loadPage(s, &at)
		if err != nil {
			return last, err
		}
		if !ok {
			last.keepCursorBeforeRow(s)
			return last, nil
		}
		if x.page.isPacked(&s.columnType) {
			last.pageInScratch = x.page
		}
		if x.decoder.Continues() {
			if err := x.decoder.Continue(&x.block); err != nil {
				return last, s.errorAtPage(&at, err)
			}
		}
		if last.nextPageLoaded = x.decoder.Rows() > 0; last.nextPageLoaded {
			break
		}
	}
	last.endCursor = at
	return last, nil
}

// cursorPageUnpacked reports whether last, the page that was unpacked last, is the page at the cursor.
func (s *rowScan) cursorPageUnpacked(last *page) bool {
	return last.offset == s.cursor.Page && last.isPacked(&s.columnType)
}
