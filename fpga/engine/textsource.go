package engine

import (
	"bytes"
	"fmt"
	"math"
	"unsafe"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
)

// executeText executes the one task of a slice over text or binary rows. Decoding is part of the check, because only
// decoding shows whether the window holds the rows.
//
// Where every value's place is known beforehand, as it is with fixed lengths, rows are decoded and transformed in
// blocks that stay in the second-level cache. A slice that turns out to lack input has then written rows. They do
// not count: the next slice writes the same values again.
//
// Otherwise a key's values lie behind all values of the key before, and all rows are decoded first. Decoded columns lie
// in scratch until the chains have run over them.
func (x *executor) executeText() {
	t := &x.tasks[0]
	result := &x.result.Tasks[0]
	err := x.executeTextRows(t, result)
	result.Cursor = t.Cursor
	if err != nil {
		result.State = x.failWith(err)
		return
	}
	result.State, result.Need = t.StopState, t.StopNeed
	if t.StopState == program.MoreInput {
		result.RowsInWindow = t.RowsInWindow
	}
	x.result.State = t.StopState
}

// executeTextRows decodes the task's rows and runs them through the chains.
func (x *executor) executeTextRows(t *chunk.Task, result *program.TaskResult) error {
	if t.Stopped() {
		return nil
	}
	rows := int(t.Asked.Count)
	block := rows
	if x.output.Fixed || x.program.output.Keys == 0 {
		block = min(rows, x.engine.blockRows)
	}
	if need := x.layOutScratch(t, block); need > uint64(len(t.Scratch)) {
		t.StopEarly(program.MoreScratch, need)
		return nil
	}
	at, err := x.skipTextRows(t, rows)
	if err != nil || t.Stopped() {
		return err
	}
	written := x.output.Written
	var total text.Result
	for total.Rows < rows {
		n := min(block, rows-total.Rows)
		start := x.ReadClock()
		first := at
		res, err := x.decodeText(t, &at, &x.textColumns, n)
		now := x.RecordRun(program.UnitText, start, res.Rows*x.program.fieldCount)
		x.result.Decode += now - start
		if err != nil {
			return err
		}
		total.Consumed += res.Consumed
		total.Dropped += res.Dropped
		total.Rows += res.Rows
		if res.Rows < n {
			total.More = res.More
			t.RowsInWindow = uint32(total.Rows)
			return requestText(t, total, rows)
		}
		err = x.transformText(uint64(t.Asked.Row)+uint64(total.Rows-n), n)
		x.result.Transform += x.ReadClock() - now
		if err != nil {
			return fmt.Errorf("lines %d to %d: %w", first.Ordinal+1, at.Ordinal, err)
		}
	}
	trailing, err := x.countTrailing(t, at)
	if err != nil {
		return err
	}
	x.result.BytesIn += at.Page - t.Cursor.Page
	x.result.Dropped += uint64(total.Dropped + trailing)
	if x.output.Fixed {
		x.output.Written += uint64(x.program.output.Keys) * uint64(rows)
	}
	result.Rows, result.Values = uint32(rows), x.output.Written-written
	x.result.Values, x.result.BytesOut = x.output.Written, x.output.BytesWritten
	t.Cursor = at
	return nil
}

// countTrailing returns how many malformed lines are dropped between a cursor and the end of the partition, if no row
// follows: they count with the last row. All other dropped lines count with the row that follows them.
func (x *executor) countTrailing(t *chunk.Task, at program.Cursor) (int64, error) {
	if x.program.source != program.CriteoTSV || x.program.textOptions.Policy != text.Drop || !t.WindowReachesEnd() {
		return 0, nil
	}
	res, err := x.decodeText(t, &at, &text.Columns{}, 1)
	if res.Rows > 0 {
		return 0, err
	}
	return res.Dropped, err
}

// textColumnPadding is how many elements lie between two columns in scratch: a cache line, so that the rows of all
// columns do not fall into the same sets of the cache.
const textColumnPadding = 8

// layOutScratch points x.textColumns at the columns' places in scratch, if scratch has room. It returns the bytes
// that they need: 8 for each value and, for text, one more for its validity.
func (x *executor) layOutScratch(t *chunk.Task, rows int) uint64 {
	kept, each := uint64(x.program.fieldCount), uint64(rows+textColumnPadding)
	need := kept * each * 8
	nulls := x.program.source == program.CriteoTSV
	if nulls {
		need += kept * each
	}
	x.textColumns = text.Columns{}
	if need > uint64(len(t.Scratch)) {
		return need
	}
	values := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(t.Scratch))), kept*each)
	valid := t.Scratch[kept*each*8:]
	for f, used := range x.program.usedFields {
		if !used {
			continue
		}
		v, ok := x.fieldColumn(uint16(f))
		*v, values = values[:rows:rows], values[each:]
		if nulls {
			*ok, valid = valid[:rows:rows], valid[each:]
		}
	}
	return need
}

// fieldColumn returns where a field's decoded values and their validity are kept.
func (x *executor) fieldColumn(f uint16) (*[]int64, *[]byte) {
	switch {
	case f == 0:
		return &x.textColumns.Label, &x.textColumns.LabelValid
	case f <= text.Dense:
		return &x.textColumns.Dense[f-1], &x.textColumns.DenseValid[f-1]
	}
	return &x.textColumns.Sparse[f-1-text.Dense], &x.textColumns.SparseValid[f-1-text.Dense]
}

// skipTextRows skips the rows that the cursor skips, and returns where the task's rows begin.
func (x *executor) skipTextRows(t *chunk.Task, rows int) (program.Cursor, error) {
	at := t.Cursor
	if at.Page > math.MaxInt64 || at.Skip > math.MaxInt32 {
		return at, failure.Slice("skip %d rows of text from offset %d: out of bounds", at.Skip, at.Page)
	}
	for at.Skip > 0 {
		start := x.ReadClock()
		res, err := x.decodeText(t, &at, &text.Columns{}, int(at.Skip))
		x.result.Decode += x.RecordRun(program.UnitText, start, 0) - start
		if err != nil {
			return at, err
		}
		at.Skip -= uint64(res.Rows)
		t.Cursor = at // The lines that were dropped here count with the rows before which they lie, which others read.
		if at.Skip > 0 {
			return at, requestText(t, res, int(at.Skip)+rows)
		}
	}
	return at, nil
}

// requestText requests a window that holds a number of rows. res is the result of decoding the rows that the window
// has.
func requestText(t *chunk.Task, res text.Result, rows int) error {
	if !res.More {
		return failure.Data("the text ends, %d rows are wanted still", rows-res.Rows)
	}
	have := t.WindowBytesFrom(t.Cursor.Page)
	// A row of text takes some 250 bytes. The rows seen give a better estimate, and an eighth more makes a second
	// request unlikely.
	guess := uint64(256)
	if res.Rows > 0 {
		guess = uint64(res.Consumed)/uint64(res.Rows) + 1
	}
	need := uint64(rows) * guess
	need = max(need+need/8, have+4096)
	t.StopEarly(program.MoreInput, min(need, t.Asked.ChunkLen-t.Cursor.Page))
	return nil
}

// decodeText decodes up to n rows at a cursor and moves the cursor behind them.
func (x *executor) decodeText(t *chunk.Task, at *program.Cursor, to *text.Columns, n int) (res text.Result, err error) {
	window := t.Window[uint64(len(t.Window))-t.WindowBytesFrom(at.Page):]
	position := text.Position{Offset: int64(at.Page), Line: int64(at.Ordinal)}
	if x.program.source == program.CriteoBinary {
		res, err = text.DecodeBinary(to, 0, n, window, position, t.WindowReachesEnd())
		position.Line += int64(res.Rows)
	} else {
		if x.textDecoder == nil || x.textOptions != x.program.textOptions {
			if x.textDecoder, err = text.NewDecoder(x.program.textOptions); err != nil {
				return res, err
			}
			x.textOptions = x.program.textOptions
		}
		x.textDecoder.Reset(position)
		res, err = x.textDecoder.Decode(to, 0, n, window, t.WindowReachesEnd())
		position = x.textDecoder.Position()
	}
	if err != nil {
		return res, err
	}
	at.Page += uint64(res.Consumed)
	at.Ordinal = uint32(position.Line)
	return res, nil
}

// transformText runs the decoded rows through the chains, as rows row, row+1, ... of the mini-batch.
func (x *executor) transformText(row uint64, rows int) error {
	var lastColumn [textFields]int // by field: the last column that reads it
	for i := range x.program.columns {
		lastColumn[x.program.columns[i].field] = i
	}
	for i := range x.program.columns {
		col := &x.program.columns[i]
		if plan, ok := col.group.(*graphPlan); ok {
			if col.part.Continues() {
				continue // with the first column of the graph
			}
			if err := x.transformGraph(plan, x.program.columns[i:][:plan.leaves], row, rows); err != nil {
				return fmt.Errorf("graph of column %q: %w", col.Name, err)
			}
			continue
		}
		if err := x.transformField(col, row, rows, lastColumn[col.field] == i); err != nil {
			return fmt.Errorf("column %q: %w", col.Name, err)
		}
	}
	x.output.FlushDense()
	return nil
}

// transformField runs one column's rows through its sinks. spent reports that nothing reads the field afterwards.
func (x *executor) transformField(col *column, row uint64, rows int, lastUse bool) error {
	values, valid := x.fieldColumn(col.field)
	for i, sinks := range col.passes {
		for at := 0; at < rows; at += x.engine.blockRows {
			end := min(at+x.engine.blockRows, rows)
			v := block.Values{Kind: program.Int64, Count: end - at, Int64s: (*values)[at:end]}
			if *valid != nil && bytes.IndexByte((*valid)[at:end], 0) >= 0 {
				v.Valid = (*valid)[at:end]
			}
			if err := x.writeScalars(sinks, row+uint64(at), v, lastUse && i == len(col.passes)-1); err != nil {
				return err
			}
		}
	}
	return nil
}
