package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// Options configure an Engine. The zero value works.
type Options struct {
	// Units are the units that the active image offers; nil means Units().
	Units []program.UnitRef
	// Programs is how many compiled programs the engine keeps; 0 means 8.
	Programs int
	// BlockRows is how many rows are decoded and transformed at a time; 0 means 2048.
	BlockRows int
	// MaxList is the longest list of one row, in elements, that the engine reads; 0 means 2^20. It bounds the engine's
	// own memory: three times MaxList values of 8 bytes a thread.
	MaxList int
	// Modules are the WebAssembly modules that programs may name; nil: none. They are only read.
	Modules program.Modules
}

const (
	defaultPrograms  = 8
	defaultBlockRows = 2048
	defaultMaxList   = 1 << 20
	maxBlockRows     = 1 << 16
)

// Units lists every unit that this engine has, in order. A stock image offers them.
func Units() []program.UnitRef { return program.Known() }

// Memory is the memory ranges of an execution. They must not overlap. Program, Input and Tables are only read. Tables
// is empty for programs without lookup tables.
type Memory struct {
	Program, Input, Dict, Scratch, Output, Result, Tables []byte
	// Lent has the bytes of the input range if some of them do not lie in Input; nil: all do.
	Lent LentInput
}

// LentInput is an input range of which some bytes lie elsewhere.
type LentInput interface {
	// Bytes returns bytes [off, off+n) of the input range, which lie inside it. They stay as they are until the execution
	// ends.
	Bytes(off, n uint64) []byte
}

// window returns the bytes of a window, if it lies inside the input range.
func (m *Memory) window(s program.Span) ([]byte, bool) {
	b, ok := s.In(m.Input)
	if ok && m.Lent != nil && s.Len > 0 {
		b = m.Lent.Bytes(s.Off, s.Len)
	}
	return b, ok
}

// Engine executes slices. It is safe for concurrent use.
type Engine struct {
	units     []program.UnitRef
	modules   program.Modules
	blockRows int
	maxList   int
	programs  programCache

	mu   sync.Mutex
	idle []*executor // guarded by mu; at most as many as executed slices at once
}

// New returns an engine.
func New(o Options) *Engine {
	orDefault := func(v, def int) int {
		if v <= 0 {
			return def
		}
		return v
	}
	e := &Engine{units: o.Units, modules: o.Modules,
		blockRows: min(orDefault(o.BlockRows, defaultBlockRows), maxBlockRows),
		maxList:   orDefault(o.MaxList, defaultMaxList)}
	if e.units == nil {
		e.units = Units()
	}
	e.programs.size = orDefault(o.Programs, defaultPrograms)
	return e
}

// Execute runs one marshalled program.Slice and writes a marshalled program.Result to the start of mem.Result, which
// must hold program.ResultSize(tasks) bytes; if it does not, the state is BadSlice and nothing is written. Execute
// returns the result's state, which is also the command's 64-bit return value. When ctx ends, the engine stops before
// the next page: that task and those behind it are Idle, and so is the slice.
func (e *Engine) Execute(ctx context.Context, mem Memory, args []byte) program.State {
	return e.Measure(ctx, mem, args, nil)
}

// Measure executes a slice as Execute does. If p is not nil, it also sets *p to the work of each unit.
func (e *Engine) Measure(ctx context.Context, mem Memory, args []byte, p *profile.Profile) program.State {
	x := e.takeExecutor()
	defer e.returnExecutor(x)
	if p != nil {
		defer func() { *p = x.Profile }()
	}
	x.ctx, x.memory, x.Profile = ctx, mem, profile.Profile{}
	x.reader.BeginSlice(ctx)
	x.result = program.Result{Tasks: x.result.Tasks[:0]}
	if err := wire.DecodeSlice(&x.slice, args); err != nil {
		x.setFailure(program.BadSlice, err)
		x.result.Tasks = x.result.Tasks[:0]
		return x.writeResult()
	}
	if len(mem.Result) < wire.ResultSize(len(x.slice.Tasks)) {
		return program.BadSlice
	}
	x.executeSlice()
	return x.writeResult()
}

// takeExecutor returns an idle executor, or a new one.
func (e *Engine) takeExecutor() *executor {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.idle); n > 0 {
		x := e.idle[n-1]
		e.idle = e.idle[:n-1]
		return x
	}
	return newExecutor(e)
}

// maxIdleBytes bounds the buffers of an executor that is kept. Long lists make them larger for a while.
const maxIdleBytes = 8 << 20

// returnExecutor drops the executor's references to the slice's memory and keeps the executor for the next slice,
// unless its buffers have grown too large.
func (e *Engine) returnExecutor(x *executor) {
	x.ctx, x.memory = nil, Memory{}
	x.program, x.tasks = nil, releaseTasks(x.tasks)
	x.buffers.ReleaseLookups()
	x.values = block.Values{}
	x.result.Message = ""
	x.reader.ReleaseMemory()
	x.mapReader.releaseMemory()
	x.graphValues.releaseMemory()
	if x.bufferBytes() > maxIdleBytes {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, x)
}

// maxBlockValues is how many values a block has at most.
func (e *Engine) maxBlockValues() int { return e.maxList + e.blockRows }

// writeResult writes the result to the result range and returns its state.
func (x *executor) writeResult() program.State {
	x.result.BytesIn += x.reader.BytesIn
	x.result.Decode += x.reader.DecodeTime
	size := wire.ResultHeader + wire.ResultTask*len(x.result.Tasks) +
		min(len(x.result.Message), program.MaxMessage)
	if len(x.memory.Result) < size {
		return program.BadSlice
	}
	wire.AppendResult(x.memory.Result[:0:len(x.memory.Result)], &x.result)
	return x.result.State
}

// executeSlice takes a decoded slice through check and execution.
func (x *executor) executeSlice() {
	for i := range x.slice.Tasks {
		x.result.Tasks = append(x.result.Tasks, program.TaskResult{State: program.Idle,
			Cursor: x.slice.Tasks[i].Cursor})
	}
	x.result.Values = x.slice.Values
	compiled, err := x.engine.programs.compiledFor(x.ctx, &x.slice, x.memory.Program, x.engine)
	if err != nil {
		x.failWith(err)
		return
	}
	x.program = compiled
	if err := x.openTables(); err != nil {
		x.failWith(err)
		return
	}
	if err := x.checkSlice(); err != nil {
		x.failWith(err)
		return
	}
	if compiled.source == program.Parquet {
		x.executeParquet()
	} else {
		x.executeText()
	}
	x.output.FlushDense()
}

// executeParquet checks and then executes every task of a slice over Parquet. If one task lacks memory or bytes, no
// task is executed.
func (x *executor) executeParquet() {
	if x.checkTasks() {
		x.executeTasks()
	}
}

// checkTasks checks the pages of every task and sets the tasks' results. It reports whether all tasks can be executed.
func (x *executor) checkTasks() bool {
	stopped := false
	for i := range x.tasks {
		t := &x.tasks[i]
		result := &x.result.Tasks[i]
		if err := x.reader.CheckPages(t, x.slice.Tasks); err != nil {
			result.Cursor = t.Cursor
			result.State = x.failWith(err)
			return false
		}
		result.Cursor = t.Cursor
		if t.Stopped() {
			result.State, result.Need = t.StopState, t.StopNeed
			if t.StopState == program.MoreInput {
				result.RowsInWindow = t.RowsInWindow
			}
			if !stopped {
				x.result.State, stopped = t.StopState, true
			}
		}
	}
	return !stopped
}

// executeTasks executes the tasks in order, until one fails or stops early.
func (x *executor) executeTasks() {
	for i := 0; i < len(x.tasks); i++ {
		t := &x.tasks[i]
		if plan := x.columnOf(t).group; plan != nil {
			if stopped, err := x.executeGroup(plan, i); err != nil {
				x.failWith(err)
				return
			} else if stopped {
				return
			}
			i += plan.base().leaves - 1
			continue
		}
		result := &x.result.Tasks[i]
		err := x.executeTask(t, result)
		result.Cursor, result.Page = t.Cursor, uint32(t.PageBytes)
		if err != nil {
			result.State = x.failWith(err)
			return
		}
		result.State, result.Need = t.StopState, t.StopNeed
		if t.Stopped() {
			x.result.State = t.StopState
			return
		}
	}
}

// failWith ends the slice with an error's state and message, and returns the state.
func (x *executor) failWith(err error) program.State {
	state := failure.StateOf(err)
	x.setFailure(state, err)
	return state
}

// setFailure sets the result's state and message.
func (x *executor) setFailure(state program.State, err error) {
	x.result.State, x.result.Message = state, fmt.Sprint(err)
	if e := (*block.AbsentKeyError)(nil); errors.As(err, &e) {
		x.result.AbsentKey = e.Located
	}
}
