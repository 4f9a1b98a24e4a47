package chunk

import (
	"context"
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Reader reads the rows of a task: it finds the pages, verifies and unpacks them, and decodes blocks of rows. It
// keeps its memory from task to task.
type Reader struct {
	*Task
	*profile.Stopwatch

	ctx         context.Context
	Block       decoder.Block // The rows that were decoded last.
	decoder     decoder.Decoder
	RowsWritten uint32 // The rows of the task that are behind the cursor.
	pageLoaded  bool   // The decoder holds the page at the cursor, and stands cursor.Skip rows behind its beginning.
	StageStart  uint64 // It is when the current stage (decode or transform) began.
	BytesIn     uint64 // The bytes of the pages that were read.
	DecodeTime  uint64 // The nanoseconds that dictionaries took.

	page         page
	pageChecksum pendingChecksum
	resident     residentDictionary
	last         lastRow
}

// NewReader returns a reader of blocks of a number of values at most, which times its work with clock.
func NewReader(clock *profile.Stopwatch, maxValues int) *Reader {
	r := &Reader{Stopwatch: clock}
	r.Block.MaxValues, r.Block.MaxData = maxValues, maxBlockData
	return r
}

// maxBlockData bounds the bytes of a block of byte strings. Operators take short tokens only.
const maxBlockData = 16 << 20

// BeginSlice makes the reader ready for the tasks of a slice, and sets its counters to 0.
func (r *Reader) BeginSlice(ctx context.Context) {
	r.ctx, r.BytesIn, r.DecodeTime, r.resident.opened = ctx, 0, 0, false
}

// BeginTask makes the reader ready for a task, at the task's cursor.
func (r *Reader) BeginTask(t *Task) {
	r.Task, r.resident.opened, r.last = t, false, lastRow{}
	r.RowsWritten, r.pageLoaded, r.StageStart = 0, false, r.ReadClock()
}

// BeginPass begins a pass over the rows of the task, at the task's cursor. The checksums of uncompressed pages are
// verified while the pages are read, until VerifyPass.
func (r *Reader) BeginPass() {
	r.RowsWritten, r.pageLoaded, r.StageStart = 0, false, r.ReadClock()
	r.verifyWhileReading = true
}

// VerifyPass verifies the checksum of the page that was read last. err is the error that ended the pass, if one did.
// VerifyPass returns the checksum's error before it.
func (r *Reader) VerifyPass(err error) error {
	r.verifyWhileReading = false
	if checksumErr := r.pageChecksum.verifyPage(); checksumErr != nil {
		err = checksumErr
	}
	if err != nil {
		r.Cursor.Checked = false
	}
	return err
}

// BeginBlockSum adds the bytes of the page before the block's values to the page's checksum, and returns where the
// values end. If the values themselves are to be added next, sum is the checksum, which an operator that reads the
// values may continue.
func (r *Reader) BeginBlockSum() (end int, sum *block.RunningSum) {
	from, end := r.pageChecksum.blockSpan(&r.Block)
	r.pageChecksum.sumUpTo(from)
	if from < end && r.pageChecksum.Summed == from {
		sum = &r.pageChecksum.RunningSum
	}
	return end, sum
}

// SumUpTo adds the bytes of the page before an offset to the page's checksum, unless they were added before.
func (r *Reader) SumUpTo(end int) { r.pageChecksum.sumUpTo(end) }

// ReleaseMemory drops the references to the slice's memory.
func (r *Reader) ReleaseMemory() {
	r.Task, r.ctx, r.page.unpacked, r.resident.opened = nil, nil, nil, false
	r.pageChecksum, r.last = pendingChecksum{}, lastRow{}
	r.Block.Reset(r.Block.Kind) // a page may have lent the block its bytes
}

// BufferBytes returns the size of the buffers that grow with the data.
func (r *Reader) BufferBytes() int {
	b := &r.Block
	return 8*(cap(b.I64)+cap(b.F64)) + 4*(cap(b.F32)+cap(b.Offsets)+cap(b.Lengths)) + cap(b.Data) + cap(b.Valid) +
		cap(b.RowValid)
}

// EndPass ends a pass whose rows are all written: it moves the cursor behind a page whose rows were all read, and notes
// whether the cursor's page lies unpacked in scratch.
func (r *Reader) EndPass() {
	if r.pageLoaded && r.decoder.Rows() == 0 {
		r.finishPage()
	}
	r.notePageInScratch(r.pageLoaded, &r.page)
}

// NoteValuePlace notes in the cursor at which byte of the page the value of the next row lies, of columns without
// lists.
func (r *Reader) NoteValuePlace() {
	if r.pageLoaded && !r.ColumnType.List {
		if at := r.decoder.ValueAt(); at <= program.MaxValueAt {
			r.Cursor.ValueAt = uint32(at)
		}
	}
}

// MoveBehindBlock moves the cursor behind rows of the block, which were written. lastRow reports that the block is that
// of ReadLastRow.
func (r *Reader) MoveBehindBlock(rows int, lastRow bool) {
	r.RowsWritten += uint32(rows)
	if lastRow {
		r.Cursor, r.pageLoaded = r.last.endCursor, r.last.nextPageLoaded
	} else {
		r.Cursor.Skip += uint64(rows)
	}
}

// StayBeforeBlock leaves the cursor before the rows that were decoded last, and notes which page lies unpacked in
// scratch, where the next slice will look for it.
func (r *Reader) StayBeforeBlock(lastRow bool) {
	switch {
	case lastRow && r.last.pageInScratch.size > 0:
		r.stayBeforeLastRow()
	case r.pageLoaded:
		r.notePageInScratch(true, &r.page)
	}
}

// OpenPage opens the page of the next row, and returns how many rows of that page can be read without another page. It
// returns 0 if only the page's last row is left and may continue in the next page, and if the task has stopped.
func (r *Reader) OpenPage() (rows int, err error) {
	for {
		if !r.pageLoaded {
			if err := r.seekCursorRow(); err != nil || r.Stopped() {
				return 0, err
			}
		}
		n := r.decoder.Rows()
		if n == 0 {
			r.finishPage()
			continue
		}
		if r.lastRowMayContinue() {
			n--
		}
		return n, nil
	}
}

// FirstRow returns the row of the mini-batch that the block begins with.
func (r *Reader) FirstRow() uint64 { return uint64(r.Asked.Row) + uint64(r.RowsWritten) }

// DecodeBlock decodes up to n rows of the loaded page into the block. After an error the decoder must be reset.
func (r *Reader) DecodeBlock(n int) (rows int, err error) {
	r.Block.Reset(r.ColumnType.Kind())
	r.Block.Lend = r.values.mayLend() // The page stays in place until the block is written.
	return r.decoder.Next(&r.Block, n)
}

// BringBlock checks the block's values and converts them to the kind of the column.
func (r *Reader) BringBlock() error {
	if r.mustFitInt64() {
		if err := rejectLargeUnsigned(r.FirstRow(), &r.Block); err != nil {
			return r.ErrorAtCursor(err)
		}
	}
	if r.brings {
		if err := r.values.bring(&r.Block, r.FirstRow()); err != nil {
			return r.ErrorAtCursor(err)
		}
	}
	return nil
}

// notePageInScratch notes in the cursor whether the cursor's page lies unpacked in scratch, where the next slice will
// look for it. inPage reports whether the cursor is inside p.
func (r *Reader) notePageInScratch(inPage bool, p *page) {
	r.Cursor.Unpacked, r.PageBytes = inPage && p.isPacked(&r.ColumnType), 0
	if inPage && p.size <= math.MaxUint32 {
		r.PageBytes = p.size
	}
}

// finishPage moves the cursor behind the loaded page.
func (r *Reader) finishPage() {
	r.movePastPage(&r.Cursor, &r.page)
	r.Cursor.Skip = 0
	r.pageLoaded = false
}

// lastRowMayContinue reports whether the page's last row may continue in the next page: pages of lists need not end
// where a row does.
func (r *Reader) lastRowMayContinue() bool {
	if !r.page.header.MayContinue(&r.ColumnType) {
		return false
	}
	c := r.Cursor
	r.movePastPage(&c, &r.page)
	return !r.chunkEnded(&c)
}

// seekCursorRow moves the cursor to the page that holds the cursor's row. It loads that page into the decoder, and
// skips the rows before the row.
func (r *Reader) seekCursorRow() error {
	for {
		if r.ctx.Err() != nil {
			r.StopEarly(program.Idle, 0)
			return nil
		}
		if r.chunkEnded(&r.Cursor) {
			return r.chunkEndError(&r.Cursor, uint64(r.Asked.Count-r.RowsWritten))
		}
		ok, err := r.readHeader(&r.Cursor, &r.page)
		if err != nil {
			return err
		}
		if !ok {
			r.StopEarly(program.MoreInput, min(max(headerEstimate, 2*r.WindowBytesFrom(r.Cursor.Page)),
				r.Asked.ChunkLen-r.Cursor.Page))
			return nil
		}
		if r.page.header.Type == format.DictionaryPage {
			if err := r.loadDictionaryAtCursor(); err != nil || r.Stopped() {
				return err
			}
			continue
		}
		if !r.page.holdsValues() {
			r.movePastPage(&r.Cursor, &r.page)
			continue
		}
		if n, known := r.page.rowCount(&r.ColumnType); known && r.Cursor.Skip >= n {
			r.Cursor.Skip -= n
			r.movePastPage(&r.Cursor, &r.page)
			continue
		}
		if ok, err := r.loadPage(&r.Cursor); err != nil || !ok {
			return err
		}
		if r.decoder.Continues() && r.Cursor.Seen == 0 {
			return r.ErrorAtCursor(failure.Page("the chunk begins inside a row"))
		}
		if r.decoder.Continues() && r.Cursor.ValueAt == program.PageBeginsRow {
			return r.ErrorAtCursor(failure.Page("the page begins inside a row that the page before ended"))
		}
		n := uint64(r.decoder.Rows())
		if r.Cursor.Skip >= n && (r.ColumnType.List || n > 0) {
			r.Cursor.Skip -= n
			r.movePastPage(&r.Cursor, &r.page)
			continue
		}
		if err := r.skipToCursor(); err != nil {
			return r.ErrorAtCursor(err)
		}
		r.pageLoaded = true
		return nil
	}
}

// skipToCursor skips the rows of the loaded page that lie before the cursor's. The cursor loses the place of the value,
// which is that of the task's first row.
func (r *Reader) skipToCursor() error {
	at := r.Cursor.ValueAt
	if at == 0 || r.ColumnType.List {
		return r.decoder.Skip(int(r.Cursor.Skip))
	}
	r.Cursor.ValueAt = 0
	return r.decoder.SkipTo(int(r.Cursor.Skip), int(at))
}

// loadPage unpacks the page that r.page describes, and loads it into the decoder. at is the cursor of the page. If
// memory or bytes lack, ok is false and the task has stopped; missing bytes count from r.cursor's page, which may lie
// before at's.
func (r *Reader) loadPage(at *program.Cursor) (ok bool, err error) {
	p := &r.page
	payload := r.payloadInWindow(p)
	if payload == nil && p.unpacked == nil {
		r.StopEarly(program.MoreInput, p.endOffset()-r.Cursor.Page)
		return false, nil
	}
	if err := r.pageChecksum.verifyPage(); err != nil { // the page before this one
		return false, err
	}
	if ok, err := r.unpackPage(r.Task, at, p, payload); err != nil {
		return false, r.errorAtPage(at, err)
	} else if !ok {
		r.StopEarly(program.MoreScratch, p.scratchNeeded(&r.ColumnType))
		return false, nil
	}
	dict, err := r.openDictionary(r.Task, at)
	if err != nil {
		return false, err
	}
	if err := r.decoder.Reset(&r.ColumnType, &p.header, p.unpacked, dict); err != nil {
		return false, r.errorAtPage(at, err)
	}
	return true, nil
}

// RewindDecoder sets the decoder back to the cursor's row in the loaded page.
func (r *Reader) RewindDecoder() error {
	dict, err := r.openDictionary(r.Task, &r.Cursor)
	if err != nil {
		return err
	}
	err = r.decoder.Reset(&r.ColumnType, &r.page.header, r.page.unpacked, dict)
	if err == nil {
		err = r.decoder.Skip(int(r.Cursor.Skip))
	}
	if err != nil {
		return r.ErrorAtCursor(err)
	}
	return nil
}
