package chunk

import (
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// lastRow is the end of the last row of a page. The row may end in a later page.
type lastRow struct {
	endCursor      program.Cursor // behind the row
	pageInScratch  page           // the page that lies unpacked in scratch
	nextPageLoaded bool           // the decoder holds the page at endCursor
}

// stayBeforeLastRow leaves the cursor before the row that ReadLastRow has read, and notes whether the cursor's page
// lies unpacked in scratch.
func (r *Reader) stayBeforeLastRow() {
	r.notePageInScratch(r.cursorPageUnpacked(&r.last.pageInScratch), &r.last.pageInScratch)
}

// ReadLastRow decodes the last row of a page of lists into the block, including the row's values that lie in the
// following pages. The cursor stays at the row's beginning, until MoveBehindBlock.
func (r *Reader) ReadLastRow() error {
	last := &r.last
	*last = lastRow{}
	r.Block.Reset(r.ColumnType.Kind())
	r.Block.Lend = false // the row may continue in a page that takes this page's memory
	if n, err := r.decoder.Next(&r.Block, 1); err != nil {
		return r.ErrorAtCursor(err)
	} else if n != 1 {
		return r.ErrorAtCursor(failure.Page("a row is missing"))
	}
	at := r.Cursor
	last.pageInScratch = r.page
	for {
		r.movePastPage(&at, &r.page)
		at.Skip = 0
		if r.ctx.Err() != nil { // there may be millions of pages that hold no values
			r.StopEarly(program.Idle, 0)
			r.stayBeforeLastRow()
			return nil
		}
		if r.chunkEnded(&at) {
			if at.Seen < r.Asked.Chunk.Values {
				return r.chunkEndError(&at, 0)
			}
			break
		}
		ok, err := r.readHeader(&at, &r.page)
		if err != nil {
			return err
		}
		if !ok {
			r.StopEarly(program.MoreInput, min(at.Page+max(headerEstimate, 2*r.WindowBytesFrom(at.Page)),
				r.Asked.ChunkLen)-r.Cursor.Page)
			r.stayBeforeLastRow()
			return nil
		}
		if r.page.header.Type == format.DictionaryPage {
			return r.errorAtPage(&at, failure.Page("a dictionary page behind the chunk's first page"))
		}
		if !r.page.holdsValues() {
			continue
		}
		if !r.page.header.MayContinue(&r.ColumnType) {
			break // the page begins with a row
		}
		ok, err = r.loadPage(&at)
		if err != nil {
			return err
		}
		if !ok {
			r.stayBeforeLastRow()
			return nil
		}
		if r.page.isPacked(&r.ColumnType) {
			last.pageInScratch = r.page
		}
		if r.decoder.Continues() {
			if err := r.decoder.Continue(&r.Block); err != nil {
				return r.errorAtPage(&at, err)
			}
		}
		if last.nextPageLoaded = r.decoder.Rows() > 0; last.nextPageLoaded {
			break
		}
	}
	last.endCursor = at
	return nil
}

// cursorPageUnpacked reports whether last, the page that was unpacked last, is the page at the cursor.
func (r *Reader) cursorPageUnpacked(last *page) bool {
	return last.offset == r.Cursor.Page && last.isPacked(&r.ColumnType)
}
