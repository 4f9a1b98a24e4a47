package wasm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// Options choose how a function is run. The zero value works.
type Options struct {
	// Interpret runs the function by the interpreter also where there is a compiler.
	Interpret bool
}

// Function is an operator made ready.
type Function struct {
	module   *format.Rewritten
	runtime  wazero.Runtime
	compiled wazero.CompiledModule

	mu   sync.Mutex
	idle []*instance // guarded by mu; at most as many as ran at once
}

// Column is values of one kind. The slice of the kind is set.
type Column struct {
	Int64s   []int64
	Float32s []float32
	Float64s []float64
}

// Compile makes the exported function of a name ready. The runtime cannot be stopped while it compiles, which takes it
// no longer than format.MaxWork allows; if ctx has ended by then, the function is given up.
func Compile(ctx context.Context, module []byte, name string, of format.Signature, o Options) (*Function, error) {
	rewritten, err := format.Rewrite(module, name, of)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	config := wazero.NewRuntimeConfig()
	if o.Interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	f := &Function{module: rewritten}
	f.runtime = wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(rewritten.Pages).
		WithDebugInfoEnabled(false))
	if f.compiled, err = compileModule(ctx, f.runtime, rewritten.Bytes); err != nil {
		return nil, err
	}
	first, err := f.newInstance()
	if err != nil {
		return nil, err
	}
	f.keep(first)
	return f, nil
}

// Rewritten returns the module that the function was compiled from.
func (f *Function) Rewritten() *format.Rewritten { return f.module }

// takeInstance returns an idle instance, or a new one.
func (f *Function) takeInstance() (*instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		x := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return x, nil
	}
	return f.newInstance()
}

// keep keeps an instance for the next block.
func (f *Function) keep(x *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = append(f.idle, x)
}

// maxChecked bounds the functions of a module whose types Check looks at.
const maxChecked = 64

// Check checks a module of which no function is called yet: its structure, and the types of its first exported
// functions that can be operators, maxChecked of them. [Compile] checks those that a program calls.
func Check(module []byte) error {
	m, err := format.Parse(module)
	if err != nil {
		return err
	}
	names, signatures := m.Exports()
	for i := range min(len(names), maxChecked) {
		rewritten, err := m.Rewrite(names[i], signatures[i])
		if err != nil {
			continue // it is outside the limits of an operator
		}
		ctx := context.Background()
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
		_, err = compileModule(ctx, r, rewritten.Bytes)
		if err := errors.Join(err, r.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// compileModule compiles a module. Should the runtime panic, the fault stays with the module.
func compileModule(ctx context.Context, r wazero.Runtime, module []byte) (c wazero.CompiledModule, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = &format.ModuleError{Offset: -1, Detail: fmt.Sprintf("the runtime fails on it: %v", fault)}
		}
	}()
	if c, err = r.CompileModule(ctx, module); err != nil {
		return nil, &format.ModuleError{Offset: -1, Detail: err.Error()}
	}
	return c, nil
}

// instance is a module with memory of its own, for one block at a time.
type instance struct {
	module         api.Module
	run, fuel, row uint64Source
	inputs         [][]byte // the columns of a block
	output         []byte
	rows           []int // They are a block's rows in the columns.
}

// uint64Source calls a function or reads a global.
type uint64Source func(parameter uint64) (uint64, error)

// newInstance makes an instance.
func (f *Function) newInstance() (*instance, error) {
	ctx := context.Background()
	m, err := f.runtime.InstantiateModule(ctx, f.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, &format.ModuleError{Offset: -1, Detail: err.Error()}
	}
	global := func(name string) uint64Source {
		g := m.ExportedGlobal(name)
		return func(uint64) (uint64, error) { return g.Get(), nil }
	}
	x := &instance{module: m, fuel: global(format.ExportFuel), row: global(format.ExportRow)}
	run, stack := m.ExportedFunction(format.ExportRun), make([]uint64, 1)
	x.run = func(rows uint64) (uint64, error) {
		stack[0] = rows
		return 0, run.CallWithStack(ctx, stack)
	}
	memory := m.Memory()
	if at := f.module.Pristine; at != 0 {
		own, _ := memory.Read(f.module.Base, f.module.Memory)
		memory.Write(at, own)
	}
	for i, k := range f.module.Signature.In {
		x.inputs = append(x.inputs, view(memory, f.module.Inputs[i], k))
	}
	x.output = view(memory, f.module.Output, f.module.Signature.Out)
	return x, nil
}

// view returns the bytes of a column of a block. They stay where they are, since the memory does not grow.
func view(memory api.Memory, at uint32, k format.Kind) []byte {
	b, _ := memory.Read(at, k.Bytes()*format.BlockRows)
	return b
}

// Run computes the function for rows rows of the inputs. The row of a zero in valid is left out, and its value is zero;
// a nil valid leaves no row out. A function that traps for a row is a *format.TrapError.
func (f *Function) Run(to Column, from []Column, rows int, valid []byte) error {
	x, err := f.takeInstance()
	if err != nil {
		return err
	}
	for first := 0; first < rows; {
		x.rows = x.rows[:0]
		for ; first < rows && len(x.rows) < format.BlockRows; first++ {
			if valid == nil || valid[first] != 0 {
				x.rows = append(x.rows, first)
			}
		}
		for i := range from {
			x.put(x.inputs[i], f.module.Signature.In[i], from[i])
		}
		if err := x.runBlock(); err != nil {
			return errors.Join(err, x.module.Close(context.Background())) // a trap may have left anything in it
		}
		x.take(f.module.Signature.Out, to)
	}
	for row, ok := range valid[:min(rows, len(valid))] {
		if ok == 0 {
			to.clear(row)
		}
	}
	f.keep(x)
	return nil
}

// runBlock calls the function for the rows of the block.
func (x *instance) runBlock() error {
	_, err := x.run(uint64(len(x.rows)))
	if err == nil {
		return nil
	}
	row, _ := x.row(0)
	fuel, _ := x.fuel(0)
	return &format.TrapError{Row: x.rows[min(row, uint64(len(x.rows)-1))], Reason: format.TrapReason(err, int64(fuel))}
}

// put copies the block's rows of a column into memory.
func (x *instance) put(b []byte, k format.Kind, from Column) {
	le := binary.LittleEndian
	switch k {
	case format.Int64:
		for i, row := range x.rows {
			le.PutUint64(b[8*i:], uint64(from.Int64s[row]))
		}
	case format.Float32:
		for i, row := range x.rows {
			le.PutUint32(b[4*i:], math.Float32bits(from.Float32s[row]))
		}
	case format.Float64:
		for i, row := range x.rows {
			le.PutUint64(b[8*i:], math.Float64bits(from.Float64s[row]))
		}
	}
}

// take copies the block's values out of memory.
func (x *instance) take(k format.Kind, to Column) {
	le := binary.LittleEndian
	switch k {
	case format.Int64:
		for i, row := range x.rows {
			to.Int64s[row] = int64(le.Uint64(x.output[8*i:]))
		}
	case format.Float32:
		for i, row := range x.rows {
			to.Float32s[row] = math.Float32frombits(le.Uint32(x.output[4*i:]))
		}
	case format.Float64:
		for i, row := range x.rows {
			to.Float64s[row] = math.Float64frombits(le.Uint64(x.output[8*i:]))
		}
	}
}

// clear makes a row's value zero.
func (c Column) clear(row int) {
	switch {
	case c.Int64s != nil:
		c.Int64s[row] = 0
	case c.Float32s != nil:
		c.Float32s[row] = 0
	case c.Float64s != nil:
		c.Float64s[row] = 0
	}
}
