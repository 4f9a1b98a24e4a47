package engine

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// checkPages walks the page headers from the cursor on. It finds whether window, scratch and dictionary room hold
// the bytes that the task's rows need, and notes in the task's state what is lacking. It moves the task's cursor
// over pages that the cursor skips whole.
func (x *executor) checkPages(t *taskState) error {
	if t.lacking != program.Done {
		return nil
	}
	var (
		at            = t.cursor
		rows          = uint64(t.task.Count) // still to be found
		touched       bool                   // at has moved on from t.cursor, over pages that must be in the window
		room          uint64                 // scratch wanted
		estimate      pageEstimate           // of the pages touched
		onlyInScratch bool                   // the first page touched is in scratch and not in the window
		p             page
	)
	for rows > 0 {
		if t.chunkEnded(&at) {
			return t.shortChunk(&at, rows)
		}
		ok, err := t.readHeader(&at, &p)
		if err != nil {
			return err
		}
		if !touched {
			t.cursor.Unpacked = at.Unpacked
		}
		if !ok {
			guess := max(headerEstimate, 2*t.bytesFrom(at.Page))
			t.lackInput(at.Page+max(guess, estimate.estimateBytes(rows)), room)
			return nil
		}
		if p.header.Type == format.DictionaryPage {
			size, err := t.dictionaryBytes(&at, &p)
			if err != nil {
				return err
			}
			if size > uint64(len(t.dictRoom)) {
				t.setLacking(program.MoreDict, size)
				return nil
			}
			room = max(room, p.scratchNeeded(&t.columnType))
			if !touched && t.payload(&p) != nil && room <= uint64(len(t.scratch)) && x.ownsDictionaryRoom(t) {
				if err := x.loadDictionary(t, &at, &p); err != nil {
					return err
				}
				passPage(&at, &p)
				t.cursor, room = at, 0
				continue
			}
			touched = true
		}
		if !p.holdsValues() {
			passPage(&at, &p)
			if !touched {
				t.cursor = at
			}
			if touched && t.bytesFrom(p.offset) < p.size {
				t.lackInput(at.Page+headerEstimate, room)
				return nil
			}
			continue
		}
		n, known := p.rowCount(&t.columnType)
		if known && at.Skip >= n {
			at.Skip -= n
			passPage(&at, &p)
			if !touched {
				t.cursor = at
			}
			continue
		}
		if onlyInScratch && len(t.column.passes) > 1 {
			// The next pass begins at the first page again, but this page will have overwritten it in scratch.
			t.cursor.Unpacked, t.readyRows = false, 0
			t.lackInput(p.endOffset()+estimate.estimateBytes(rows), room)
			return nil
		}
		touched, onlyInScratch = true, p.unpacked != nil && t.payload(&p) == nil
		room = max(room, p.scratchNeeded(&t.columnType))
		if known {
			n = min(n-at.Skip, rows)
			rows -= n
			estimate.addPage(n, p.size)
		}
		if p.unpacked == nil && t.payload(&p) == nil {
			t.lackInput(p.endOffset()+estimate.estimateBytes(rows), room)
			return nil
		}
		if !known {
			break // only the page's levels say how many rows it has
		}
		t.readyRows += uint32(n)
		at.Skip = 0
		passPage(&at, &p)
	}
	if room > uint64(len(t.scratch)) {
		t.setLacking(program.MoreRoom, room)
	}
	return nil
}

// lackInput notes that the window should reach chunk offset to. If scratch lacks room as well, lackInput notes the
// lack of scratch instead.
func (t *taskState) lackInput(to, room uint64) {
	if room > uint64(len(t.scratch)) {
		t.setLacking(program.MoreRoom, room)
		return
	}
	t.setLacking(program.MoreInput, min(to, t.task.ChunkLen)-t.cursor.Page)
}

// pageEstimate estimates how many bytes further rows will take, from the pages seen.
type pageEstimate struct{ rows, bytes uint64 }

func (s *pageEstimate) addPage(rows, bytes uint64) {
	s.rows += rows
	s.bytes += bytes
}

// estimateBytes returns how many bytes a number of further rows may take. Pages are alike, so the estimate is whole
// pages.
func (s *pageEstimate) estimateBytes(rows uint64) uint64 {
	if s.rows == 0 || rows == 0 {
		return 0
	}
	pages := (rows + s.rows - 1) / s.rows
	if most := uint64(1) << 62; pages > most/max(1, s.bytes) {
		return most
	}
	return pages * s.bytes
}
