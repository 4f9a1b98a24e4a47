package engine

import (
	"context"
	"time"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/text"
)

// executor executes one slice at a time. It owns the working memory of one engine thread: the block memory of its
// processing elements, and the state of the slice.
type executor struct {
	engine *Engine
	stopwatch

	ctx     context.Context
	memory  Memory
	slice   program.Slice
	result  program.Result
	program *compiledProgram
	tasks   []taskState
	output  tensors

	block        decoder.Block
	buffers      block.Buffers
	values       block.Values // What the current chain takes and makes; on the heap, as steps are called by interface.
	decoder      decoder.Decoder
	page         page
	pageChecksum pendingChecksum
	resident     residentDictionary

	textDecoder *text.Decoder
	textOptions text.Options
	textColumns text.Columns

	mapReader   mapReader
	graphValues graphValues
}

func newExecutor(e *Engine) *executor {
	x := &executor{engine: e, stopwatch: stopwatch{epoch: time.Now()}}
	x.block.MaxValues = e.maxList + e.blockRows
	x.block.MaxData = maxBlockData
	return x
}

// maxBlockData bounds the bytes of a block of byte strings. Operators take short tokens only.
const maxBlockData = 16 << 20

// bufferBytes returns the size of the buffers that grow with the data.
func (x *executor) bufferBytes() int {
	b := &x.block
	return 8*(cap(b.I64)+cap(b.F64)) + 4*(cap(b.F32)+cap(b.Offsets)+cap(b.Lengths)) + cap(b.Data) + cap(b.Valid) +
		cap(b.RowValid) + x.buffers.Size() + x.mapReader.bufferBytes() + x.graphValues.bufferBytes()
}
