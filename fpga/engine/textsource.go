package engine

import (
	"bytes"
	"fmt"
	"math"
	"unsafe"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
)

// runText executes the one task of a slice over text or binary rows. The decoding is part of the check: only it tells
// whether the window holds the rows. Where every value's place is known beforehand, as where lengths are fixed, rows are decoded
// and transformed in blocks that stay in the second-level cache, and a slice that lacks input at last has written rows that count for nothing: they
// are written again, the same. Else a key's values lie behind all of the key's before, and all rows are decoded first. Decoded columns lie in
// scratch until the chains have run over them.
func (w *worker) runText() {
	k := &w.walks[0]
	r := &w.result.Tasks[0]
	err := w.textRows(k, r)
	r.Cursor = k.cur
	if err != nil {
		r.State = w.fault(err)
		return
	}
	r.State, r.Need = k.lack, k.need
	if k.lack == program.MoreInput {
		r.Ready = k.ready
	}
	w.result.State = k.lack
}

func (w *worker) textRows(k *walk, r *program.TaskResult) error {
	if k.lack != program.Done {
		return nil
	}
	rows := int(k.task.Count)
	block := rows
	if w.out.fixed || w.program.out.Keys == 0 {
		block = min(rows, w.engine.blockRows)
	}
	if need := w.layText(k, block); need > uint64(len(k.scratch)) {
		k.want(program.MoreRoom, need)
		return nil
	}
	c, err := w.skipText(k, rows)
	if err != nil || k.lack != program.Done {
		return err
	}
	written := w.out.written
	var total text.Result
	for total.Rows < rows {
		n := min(block, rows-total.Rows)
		start := w.now()
		from := c
		res, err := w.decode(k, &c, &w.columns, n)
		now := w.lap(program.UnitText, start, res.Rows*w.program.kept)
		w.result.Decode += now - start
		if err != nil {
			return err
		}
		total.Consumed += res.Consumed
		total.Dropped += res.Dropped
		total.Rows += res.Rows
		if res.Rows < n {
			total.More = res.More
			k.ready = uint32(total.Rows)
			return k.moreText(total, rows)
		}
		err = w.textColumns(uint64(k.task.Row)+uint64(total.Rows-n), n)
		w.result.Transform += w.now() - now
		if err != nil {
			return fmt.Errorf("lines %d to %d: %w", from.Ordinal+1, c.Ordinal, err)
		}
	}
	w.result.BytesIn += c.Page - k.cur.Page
	w.result.Dropped += uint64(total.Dropped)
	if w.out.fixed {
		w.out.written += uint64(w.program.out.Keys) * uint64(rows)
	}
	r.Rows, r.Values = uint32(rows), w.out.written-written
	w.result.Values, w.result.BytesOut = w.out.written, w.out.bytes
	k.cur = c
	return nil
}

// textPad is how many elements lie between two columns, a cache line, so that their rows do not all fall into the same sets of the cache.
const textPad = 8

// layText points w.columns at the columns' places in scratch, if it has room, and returns the room that they take: 8 bytes
// a value and, of text, one of validity.
func (w *worker) layText(k *walk, rows int) uint64 {
	kept, each := uint64(w.program.kept), uint64(rows+textPad)
	need := kept * each * 8
	nulls := w.program.source == program.CriteoTSV
	if nulls {
		need += kept * each
	}
	w.columns = text.Columns{}
	if need > uint64(len(k.scratch)) {
		return need
	}
	values := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(k.scratch))), kept*each)
	valid := k.scratch[kept*each*8:]
	for f, used := range w.program.fields {
		if !used {
			continue
		}
		v, ok := w.field(uint16(f))
		*v, values = values[:rows:rows], values[each:]
		if nulls {
			*ok, valid = valid[:rows:rows], valid[each:]
		}
	}
	return need
}

// field is where a field's decoded values are kept.
func (w *worker) field(f uint16) (*[]int64, *[]byte) {
	switch {
	case f == 0:
		return &w.columns.Label, &w.columns.LabelValid
	case f <= text.Dense:
		return &w.columns.Dense[f-1], &w.columns.DenseValid[f-1]
	}
	return &w.columns.Sparse[f-1-text.Dense], &w.columns.SparseValid[f-1-text.Dense]
}

// skipText passes the rows that the cursor skips, and returns where the task's begin.
func (w *worker) skipText(k *walk, rows int) (program.Cursor, error) {
	c := k.cur
	if c.Page > math.MaxInt64 || c.Skip > math.MaxInt32 {
		return c, badSlice("skip %d rows of text from offset %d: out of bounds", c.Skip, c.Page)
	}
	for c.Skip > 0 {
		start := w.now()
		res, err := w.decode(k, &c, &text.Columns{}, int(c.Skip))
		w.result.Decode += w.lap(program.UnitText, start, 0) - start
		if err != nil {
			return c, err
		}
		c.Skip -= uint64(res.Rows)
		w.result.Dropped += uint64(res.Dropped)
		k.cur = c
		if c.Skip > 0 {
			return c, k.moreText(res, int(c.Skip)+rows)
		}
	}
	return c, nil
}

// moreText asks for a window that holds so many rows, of which the last call decoded some.
func (k *walk) moreText(res text.Result, rows int) error {
	if !res.More {
		return badData("the text ends, %d rows are wanted still", rows-res.Rows)
	}
	have := k.have(k.cur.Page)
	// A row of text takes some 250 bytes; the rows seen tell better, and an eighth more makes a second time unlikely.
	guess := uint64(256)
	if res.Rows > 0 {
		guess = uint64(res.Consumed)/uint64(res.Rows) + 1
	}
	need := uint64(rows) * guess
	need = max(need+need/8, have+4096)
	k.want(program.MoreInput, min(need, k.task.ChunkLen-k.cur.Page))
	return nil
}

// decode decodes up to n rows at c and moves c behind what was consumed.
func (w *worker) decode(k *walk, c *program.Cursor, to *text.Columns, n int) (res text.Result, err error) {
	window := k.window[uint64(len(k.window))-k.have(c.Page):]
	at := text.Position{Offset: int64(c.Page), Line: int64(c.Ordinal)}
	if w.program.source == program.CriteoBinary {
		res, err = text.DecodeBinary(to, 0, n, window, at, k.last())
		at.Line += int64(res.Rows)
	} else {
		if w.text == nil || w.textOptions != w.program.text {
			if w.text, err = text.NewDecoder(w.program.text); err != nil {
				return res, err
			}
			w.textOptions = w.program.text
		}
		w.text.Reset(at)
		res, err = w.text.Decode(to, 0, n, window, k.last())
		at = w.text.Position()
	}
	if err != nil {
		return res, err
	}
	c.Page += uint64(res.Consumed)
	c.Ordinal = uint32(at.Line)
	return res, nil
}

// textColumns runs the decoded rows through the chains, as rows row, row+1, ... of the mini-batch.
func (w *worker) textColumns(row uint64, rows int) error {
	var last [textFields]int // column that reads a field
	for i := range w.program.columns {
		last[w.program.columns[i].field] = i
	}
	for i := range w.program.columns {
		col := &w.program.columns[i]
		if err := w.textColumn(col, row, rows, last[col.field] == i); err != nil {
			return fmt.Errorf("column %q: %w", col.name, err)
		}
	}
	w.out.flushDense()
	return nil
}

// textColumn runs one column's rows through its sinks. spent tells that nobody reads the field afterwards.
func (w *worker) textColumn(col *column, row uint64, rows int, spent bool) error {
	values, valid := w.field(col.field)
	for i, sinks := range col.passes {
		for at := 0; at < rows; at += w.engine.blockRows {
			end := min(at+w.engine.blockRows, rows)
			v := vec{kind: program.Int64, n: end - at, i64: (*values)[at:end]}
			if *valid != nil && bytes.IndexByte((*valid)[at:end], 0) >= 0 {
				v.valid = (*valid)[at:end]
			}
			if err := w.sinks(sinks, row+uint64(at), v, spent && i == len(col.passes)-1); err != nil {
				return err
			}
		}
	}
	return nil
}
