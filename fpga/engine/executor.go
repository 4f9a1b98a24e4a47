package engine

import (
	"context"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/chain"
	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/engine/tensors"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
)

// executor executes one slice at a time. It owns the working memory of one engine thread: the block memory of its
// processing elements, and the state of the slice.
type executor struct {
	engine *Engine
	*profile.Stopwatch

	ctx     context.Context
	memory  Memory
	slice   program.Slice
	result  program.Result
	program *compiledProgram
	tasks   []chunk.Task
	output  tensors.Output
	staged  tensors.Staging

	reader  *chunk.Reader
	buffers block.Buffers
	values  block.Values // What the current chain takes and makes; on the heap, as steps are called by interface.

	textDecoder *text.Decoder
	textOptions text.Options
	textColumns text.Columns

	mapReader   mapReader
	graphValues graphValues
}

func newExecutor(e *Engine) *executor {
	clock := profile.NewStopwatch()
	return &executor{engine: e, Stopwatch: clock, reader: chunk.NewReader(clock, e.maxBlockValues())}
}

// releaseTasks drops the tasks' references to the memory of their slice. It returns an empty list that reuses tasks.
func releaseTasks(tasks []chunk.Task) []chunk.Task {
	clear(tasks[:cap(tasks)])
	return tasks[:0]
}

// runChain passes v through a chain. Afterwards no list holds a null.
func (x *executor) runChain(c chain.Chain, v *block.Values) error {
	return c.Run(&x.buffers, x.Stopwatch, v)
}

// columnOf returns the column of a task over Parquet.
func (x *executor) columnOf(t *chunk.Task) *column { return &x.program.columns[t.Asked.Column] }

// BufferBytes returns the size of the buffers that grow with the data.
func (x *executor) bufferBytes() int {
	return x.reader.BufferBytes() + x.buffers.Size() + x.staged.BufferBytes() +
		x.mapReader.bufferBytes() + x.graphValues.bufferBytes()
}
