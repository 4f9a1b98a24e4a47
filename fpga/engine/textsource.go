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
// whether the window holds the rows. Decoded columns lie in scratch until the chains have run over them.
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
	if need := w.layText(k, rows); need > uint64(len(k.scratch)) {
		k.want(program.MoreRoom, need)
		return nil
	}
	start := w.now()
	c, res, err := w.decodeText(k, rows)
	now := w.lap(program.UnitText, start, res.Rows*w.program.kept)
	w.result.Decode += now - start
	if err != nil || k.lack != program.Done {
		return err
	}
	w.result.BytesIn += c.Page - k.cur.Page
	w.result.Dropped += uint64(res.Dropped)
	written := w.out.written
	for i := range w.program.columns {
		if err := w.textColumn(&w.program.columns[i], uint64(k.task.Row), rows); err != nil {
			return fmt.Errorf("column %q: lines %d to %d: %w", w.program.columns[i].name, k.cur.Ordinal+1, c.Ordinal, err)
		}
	}
	if w.out.fixed {
		w.out.written += uint64(w.program.out.Keys) * uint64(rows)
	}
	w.result.Transform += w.now() - now
	r.Rows, r.Values = uint32(rows), w.out.written-written
	w.result.Values, w.result.BytesOut = w.out.written, w.out.bytes
	k.cur = c
	return nil
}

// layText points w.columns at the columns' places in scratch, if it has room, and returns the room that they take: 8 bytes
// a value and one of validity.
func (w *worker) layText(k *walk, rows int) uint64 {
	kept := uint64(w.program.kept)
	need := kept * uint64(rows) * 9
	w.columns = text.Columns{}
	if need > uint64(len(k.scratch)) {
		return need
	}
	values := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(k.scratch))), kept*uint64(rows))
	valid := k.scratch[kept*uint64(rows)*8:]
	for f, used := range w.program.fields {
		if used {
			v, ok := w.field(uint16(f))
			*v, values = values[:rows:rows], values[rows:]
			*ok, valid = valid[:rows:rows], valid[rows:]
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

// decodeText decodes the task's rows into w.columns, those that the cursor skips first.
func (w *worker) decodeText(k *walk, rows int) (program.Cursor, text.Result, error) {
	c := k.cur
	var total text.Result
	if c.Page > math.MaxInt64 || c.Skip > math.MaxInt32 {
		return c, total, badSlice("skip %d rows of text from offset %d: out of bounds", c.Skip, c.Page)
	}
	for c.Skip > 0 {
		res, err := w.decode(k, &c, &text.Columns{}, int(c.Skip))
		if err != nil {
			return c, total, err
		}
		c.Skip -= uint64(res.Rows)
		w.result.Dropped += uint64(res.Dropped)
		k.cur = c
		if c.Skip > 0 {
			return c, total, k.moreText(res, int(c.Skip)+rows)
		}
	}
	res, err := w.decode(k, &c, &w.columns, rows)
	if err != nil {
		return c, res, err
	}
	if res.Rows < rows {
		k.ready = uint32(res.Rows)
		return c, res, k.moreText(res, rows)
	}
	return c, res, nil
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

// textColumn runs one column's rows through its sinks.
func (w *worker) textColumn(col *column, row uint64, rows int) error {
	values, valid := w.field(col.field)
	for _, sinks := range col.passes {
		for at := 0; at < rows; at += w.engine.blockRows {
			end := min(at+w.engine.blockRows, rows)
			v := vec{kind: program.Int64, n: end - at, i64: (*values)[at:end]}
			if bytes.IndexByte((*valid)[at:end], 0) >= 0 {
				v.valid = (*valid)[at:end]
			}
			if err := w.sinks(sinks, row+uint64(at), v, false); err != nil {
				return err
			}
		}
	}
	return nil
}
