package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
)

// Options configure an Engine. The zero value is a whole one.
type Options struct {
	// Units are the units that the active image offers; nil means Units().
	Units []program.UnitRef
	// Programs is how many compiled programs are kept; 0 means 8.
	Programs int
	// BlockRows is how many rows are decoded and transformed at a time; 0 means 2048.
	BlockRows int
	// MaxList is the longest list of one row, in elements, that the engine reads; 0 means 2^20. It bounds the engine's own
	// memory: three times so many values of 8 bytes a thread.
	MaxList int
}

const (
	defaultPrograms  = 8
	defaultBlockRows = 2048
	defaultMaxList   = 1 << 20
	maxBlockRows     = 1 << 16
)

// Units lists every unit that this engine has, in order: what a stock image offers.
func Units() []program.UnitRef { return program.Known() }

// Memory is the six memory ranges of an execution. They must not overlap. Input, Program are only read.
type Memory struct {
	Program, Input, Dict, Scratch, Output, Result []byte
}

// Engine executes slices. It is safe for concurrent use.
type Engine struct {
	units     []program.UnitRef
	blockRows int
	maxList   int
	programs  cache

	mu   sync.Mutex
	free []*worker // guarded by mu: idle working memory, one a thread that ran at the same time
}

// New returns an engine.
func New(o Options) *Engine {
	pick := func(v, def int) int {
		if v <= 0 {
			return def
		}
		return v
	}
	e := &Engine{units: o.Units, blockRows: min(pick(o.BlockRows, defaultBlockRows), maxBlockRows), maxList: pick(o.MaxList, defaultMaxList)}
	if e.units == nil {
		e.units = Units()
	}
	e.programs.size = pick(o.Programs, defaultPrograms)
	return e
}

// Execute runs one marshalled program.Slice and writes a marshalled program.Result to the start of mem.Result, which must
// hold program.ResultSize(tasks) bytes (else BadSlice, and nothing is written). It returns the result's state, which is
// also the command's 64-bit return value. When ctx ends the
// engine stops before the next page: that task and those behind it are Idle, and so is the slice.
func (e *Engine) Execute(ctx context.Context, mem Memory, args []byte) program.State {
	return e.Measure(ctx, mem, args, nil)
}

// Measure is Execute, and sets p, if it is not nil, to what each unit did.
func (e *Engine) Measure(ctx context.Context, mem Memory, args []byte, p *Profile) program.State {
	w := e.worker()
	defer e.release(w)
	if p != nil {
		defer func() { *p = w.profile }()
	}
	w.ctx, w.mem, w.profile = ctx, mem, Profile{}
	w.result = program.Result{Tasks: w.result.Tasks[:0]}
	if err := w.slice.DecodeFrom(args); err != nil {
		w.fail(program.BadSlice, err)
		w.result.Tasks = w.result.Tasks[:0]
		return w.answer()
	}
	if len(mem.Result) < program.ResultSize(len(w.slice.Tasks)) {
		return program.BadSlice
	}
	w.run()
	return w.answer()
}

// worker returns idle working memory, or new.
func (e *Engine) worker() *worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.free); n > 0 {
		w := e.free[n-1]
		e.free = e.free[:n-1]
		return w
	}
	return newWorker(e)
}

// maxKept is how many bytes of buffers an idle worker may keep; long lists can make them larger for a while.
const maxKept = 8 << 20

func (e *Engine) release(w *worker) {
	w.ctx, w.mem = nil, Memory{}
	w.program, w.page.bytes, w.walks = nil, nil, clearWalks(w.walks)
	w.dict.open, w.result.Message, w.late = false, "", lateSum{}
	w.parts.release()
	w.block.Reset(w.block.Kind) // what a page lent it is gone
	if w.bytes() > maxKept {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.free = append(e.free, w)
}

// answer writes the result.
func (w *worker) answer() program.State {
	size := program.ResultHeader + program.ResultTask*len(w.result.Tasks) + min(len(w.result.Message), program.MaxMessage)
	if len(w.mem.Result) < size {
		return program.BadSlice
	}
	w.result.AppendTo(w.mem.Result[:0:len(w.mem.Result)])
	return w.result.State
}

// run takes a decoded slice through check and execution.
func (w *worker) run() {
	for i := range w.slice.Tasks {
		w.result.Tasks = append(w.result.Tasks, program.TaskResult{State: program.Idle, Cursor: w.slice.Tasks[i].Cursor})
	}
	w.result.Values = w.slice.Values
	prog, err := w.engine.programs.get(&w.slice, w.mem.Program, w.engine.units)
	if err != nil {
		w.fault(err)
		return
	}
	w.program = prog
	if err := w.checkSlice(); err != nil {
		w.fault(err)
		return
	}
	if prog.source == program.Parquet {
		w.runParquet()
	} else {
		w.runText()
	}
	w.out.flushDense()
}

func (w *worker) runParquet() {
	lacks := false
	for i := range w.walks {
		k := &w.walks[i]
		r := &w.result.Tasks[i]
		if err := w.checkPages(k); err != nil {
			r.Cursor = k.cur
			r.State = w.fault(err)
			return
		}
		r.Cursor = k.cur
		if k.lack != program.Done {
			r.State, r.Need = k.lack, k.need
			if k.lack == program.MoreInput {
				r.Ready = k.ready
			}
			if !lacks {
				w.result.State, lacks = k.lack, true
			}
		}
	}
	if lacks {
		return
	}
	for i := 0; i < len(w.walks); i++ {
		k := &w.walks[i]
		if plan := k.col.plan; plan != nil {
			if lacks, err := w.runMap(plan, i); err != nil {
				w.fault(err)
				return
			} else if lacks {
				return
			}
			i += plan.parts - 1
			continue
		}
		r := &w.result.Tasks[i]
		err := w.runTask(k, r)
		r.Cursor, r.Page = k.cur, uint32(k.inside)
		if err != nil {
			r.State = w.fault(err)
			return
		}
		r.State, r.Need = k.lack, k.need
		if k.lack != program.Done {
			w.result.State = k.lack
			return
		}
	}
}

// fault ends the slice with an error's state and message, and returns the state.
func (w *worker) fault(err error) program.State {
	state := stateOf(err)
	w.fail(state, err)
	return state
}

func (w *worker) fail(state program.State, err error) {
	w.result.State, w.result.Message = state, fmt.Sprint(err)
}
