package chunk

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// CheckPages walks the page headers from the cursor on. It finds whether window, scratch and dictionary room hold
// the bytes that the task's rows need. If they do not, it ends the task early. It moves the task's cursor over pages
// that the cursor skips whole. tasks are those of the slice.
func (r *Reader) CheckPages(t *Task, tasks []program.Task) error {
	if t.Stopped() {
		return nil
	}
	var (
		at            = t.Cursor
		rowsLeft      = uint64(t.Asked.Count) // still to be found
		touched       bool                    // at has moved on from t.cursor, over pages that must be in the window
		scratchBytes  uint64                  // scratch wanted
		estimate      pageEstimate            // of the pages touched
		onlyInScratch bool                    // the first page touched is in scratch and not in the window
		p             page
	)
	for rowsLeft > 0 {
		if r.ctx.Err() != nil { // a chunk may have millions of pages without rows
			t.StopEarly(program.Idle, 0)
			return nil
		}
		if t.chunkEnded(&at) {
			return t.chunkEndError(&at, rowsLeft)
		}
		ok, err := t.readHeader(&at, &p)
		if err != nil {
			return err
		}
		if !touched {
			t.Cursor.Unpacked = at.Unpacked
		}
		if !ok {
			guess := max(headerEstimate, 2*t.WindowBytesFrom(at.Page))
			t.requestMemory(at.Page+max(guess, estimate.estimateBytes(rowsLeft)), scratchBytes)
			return nil
		}
		if p.header.Type == format.DictionaryPage {
			size, err := t.checkDictionaryPage(&at, &p)
			if err != nil {
				return err
			}
			if size > uint64(len(t.DictRoom)) {
				t.StopEarly(program.MoreDict, size)
				return nil
			}
			scratchBytes = max(scratchBytes, p.scratchNeeded(&t.ColumnType))
			if !touched && t.payloadInWindow(&p) != nil && scratchBytes <= uint64(len(t.Scratch)) &&
				ownsDictionaryRoom(t, tasks) {
				if err := r.loadDictionary(t, &at, &p); err != nil {
					return err
				}
				t.movePastPage(&at, &p)
				t.Cursor, scratchBytes = at, 0
				continue
			}
			touched = true
		}
		if !p.holdsValues() {
			t.movePastPage(&at, &p)
			if !touched {
				t.Cursor = at
			}
			if touched && t.WindowBytesFrom(p.offset) < p.size {
				t.requestMemory(at.Page+headerEstimate, scratchBytes)
				return nil
			}
			continue
		}
		n, known := p.rowCount(&t.ColumnType)
		if known && at.Skip >= n {
			at.Skip -= n
			t.movePastPage(&at, &p)
			if !touched {
				t.Cursor = at
			}
			continue
		}
		if onlyInScratch && t.Column.Rereads {
			// The next pass begins at the first page again, but this page will have overwritten it in scratch.
			t.Cursor.Unpacked, t.RowsInWindow = false, 0
			t.requestMemory(p.endOffset()+estimate.estimateBytes(rowsLeft), scratchBytes)
			return nil
		}
		touched, onlyInScratch = true, p.unpacked != nil && t.payloadInWindow(&p) == nil
		scratchBytes = max(scratchBytes, p.scratchNeeded(&t.ColumnType))
		if known {
			n = min(n-at.Skip, rowsLeft)
			rowsLeft -= n
			estimate.addPage(n, p.size)
		}
		if p.unpacked == nil && t.payloadInWindow(&p) == nil {
			t.requestMemory(p.endOffset()+estimate.estimateBytes(rowsLeft), scratchBytes)
			return nil
		}
		if !known {
			break // only the page's levels say how many rows it has
		}
		t.RowsInWindow += uint32(n)
		at.Skip = 0
		t.movePastPage(&at, &p)
	}
	if scratchBytes > uint64(len(t.Scratch)) {
		t.StopEarly(program.MoreScratch, scratchBytes)
	}
	return nil
}

// requestMemory ends the task until scratch has scratchBytes bytes and the window reaches chunk offset windowEnd. If
// both lack, it asks for scratch first.
func (t *Task) requestMemory(windowEnd, scratchBytes uint64) {
	if scratchBytes > uint64(len(t.Scratch)) {
		t.StopEarly(program.MoreScratch, scratchBytes)
		return
	}
	t.StopEarly(program.MoreInput, min(windowEnd, t.Asked.ChunkLen)-t.Cursor.Page)
}

// pageEstimate estimates how many bytes further rows will take, from the pages seen.
type pageEstimate struct{ rows, bytes uint64 }

func (e *pageEstimate) addPage(rows, bytes uint64) {
	e.rows += rows
	e.bytes += bytes
}

// estimateBytes returns how many bytes a number of further rows may take. Pages are alike, so the estimate is whole
// pages.
func (e *pageEstimate) estimateBytes(rows uint64) uint64 {
	if e.rows == 0 || rows == 0 {
		return 0
	}
	pages := (rows + e.rows - 1) / e.rows
	if most := uint64(1) << 62; pages > most/max(1, e.bytes) {
		return most
	}
	return pages * e.bytes
}
