package engine

import (
	"context"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/text"
)

// worker is the working memory of one engine thread: the block memory of its processing elements, and the state of
// the slice that it executes.
type worker struct {
	engine *Engine
	stopwatch

	ctx     context.Context
	mem     Memory
	slice   program.Slice
	result  program.Result
	program *compiled
	walks   []walk
	out     tensors

	block   decoder.Block
	buffers buffers
	decoder decoder.Decoder
	page    page
	late    lateSum
	dict    dictionary

	text        *text.Decoder
	textOptions text.Options
	columns     text.Columns

	parts parts // of maps
}

func newWorker(e *Engine) *worker {
	w := &worker{engine: e, stopwatch: stopwatch{epoch: time.Now()}}
	w.block.MaxValues = e.maxList + e.blockRows
	w.block.MaxData = maxBlockData
	return w
}

// maxBlockData bounds the bytes of a block of byte strings. Operators take short tokens only.
const maxBlockData = 16 << 20

// bytes is the size of the buffers that grow with the data.
func (w *worker) bytes() int {
	b, u := &w.block, &w.buffers
	return 8*(cap(b.I64)+cap(b.F64)+cap(u.i64)+cap(u.f64)) + 4*(cap(b.F32)+cap(b.Offsets)+cap(b.Lengths)+cap(u.f32)+cap(u.lengths)) +
		cap(b.Data) + cap(b.Valid) + cap(b.RowValid) + cap(u.valid) + cap(u.drop) + w.parts.bytes()
}
