package wasm_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// repeat joins the code of n numbers.
func repeat(n int, code func(i int) []byte) (b []byte) {
	for i := range n {
		b = append(b, code(i)...)
	}
	return b
}

// set returns local.set.
func set(local int) []byte { return w.Unsigned([]byte{0x21}, uint64(local)) }

// isOdd is the condition of a branch.
var isOdd = w.Op(0x20, 0, 0xa7)

// readAll reads locals.
func readAll(locals int) []byte {
	return repeat(locals, func(i int) []byte { return w.Code(w.Get(uint64(i)), w.Op(0x1a)) })
}

// leave is n branches out of the block around them, if a condition holds.
func leave(n int) []byte { return bytes.Repeat(w.Code(isOdd, w.Op(0x0d, 0)), n) }

// hostile makes functions of one integer that have much of one thing, n times, beside a number of locals.
var hostile = map[string]struct {
	locals int
	code   func(n int) []byte
}{
	"additions":  {0, func(n int) []byte { return w.Code(w.Get(0), bytes.Repeat(w.Op(0x20, 0, 0x7c), n)) }},
	"expression": {0, func(n int) []byte { return w.Code(bytes.Repeat(w.Get(0), n), bytes.Repeat(w.Op(0x7c), n-1)) }},
	"floats": {0, func(n int) []byte {
		return w.Code(w.ConstF64(3), bytes.Repeat(w.Op(0x9c), n), w.Op(0xbd))
	}},
	"divisions":   {0, func(n int) []byte { return w.Code(w.Get(0), bytes.Repeat(w.Op(0x20, 0, 0x7f), n)) }},
	"conversions": {0, func(n int) []byte { return w.Code(w.Get(0), bytes.Repeat(w.Op(0xb9, 0xb0), n)) }},
	"loads": {0, func(n int) []byte {
		return w.Code(isOdd, bytes.Repeat(w.Op(0x28, 0, 0), n), w.Op(0xac))
	}},
	"stores":   {0, func(n int) []byte { return w.Code(bytes.Repeat(w.Op(0x41, 0, 0x20, 0, 0x37, 0, 0), n), w.Get(0)) }},
	"calls":    {0, func(n int) []byte { return w.Code(w.Get(0), bytes.Repeat(w.Op(0x10, 0), n)) }},
	"branches": {0, func(n int) []byte { return w.Code(w.Op(2, 0x40), leave(n), w.Op(0x0b), w.Get(0)) }},
	"conditions": {0, func(n int) []byte {
		return w.Code(bytes.Repeat(w.Code(isOdd, w.Op(0x04, 0x40, 0x0b)), n), w.Get(0))
	}},
	"table of branches": {0, func(n int) []byte {
		return w.Code(w.Op(2, 0x40), isOdd, w.Unsigned([]byte{0x0e}, uint64(n)), make([]byte, n+1), w.Op(0x0b), w.Get(0))
	}},
	"tables of branches in loops": {30, func(n int) []byte {
		return w.Code(w.Op(2, 0x40, 3, 0x40), readAll(30), isOdd, w.Unsigned([]byte{0x0e}, uint64(n)), make([]byte, n),
			w.Op(1, 0x0b, 0x0b), w.Get(0))
	}},
	"values on the stack": {0, func(n int) []byte {
		return w.Code(bytes.Repeat(w.Op(0x20, 0, 0x7a), n), bytes.Repeat(w.Code(isOdd, w.Op(0x04, 0x40, 0x0b)), n),
			bytes.Repeat(w.Op(0x7c), n-1))
	}},
	"addresses before branches": {0, func(n int) []byte {
		return w.Code(w.Op(2, 0x40), bytes.Repeat(w.Code(isOdd, w.Op(0x45, 0x28, 0, 0, 0x1a)), n), leave(n), w.Op(0x0b),
			w.Get(0))
	}},
	"reads behind branches": {0, func(n int) []byte {
		return w.Code(w.Op(2, 0x40), leave(n), bytes.Repeat(w.Op(0x20, 0, 0x1a), n), w.Op(0x0b), w.Get(0))
	}},
	"locals that conditions set": {500, func(n int) []byte {
		return w.Code(repeat(n, func(i int) []byte {
			return w.Code(isOdd, w.Op(0x04, 0x40), w.Get(0), set(i%500), w.Op(0x0b))
		}), readAll(500), w.Get(0))
	}},
	"all locals across branches": {2000, func(n int) []byte {
		return w.Code(repeat(n, func(i int) []byte {
			return w.Code(isOdd, w.Op(0x04, 0x40), w.Get(0), set(i%2000), w.Op(0x0b))
		}), readAll(2000), w.Get(0))
	}},
	"locals in loops": {300, func(n int) []byte {
		return w.Code(repeat(n, func(i int) []byte {
			return w.Code(w.Op(3, 0x40), w.Get(uint64(i%300)), set((i+1)%300), isOdd, w.Op(0x0d, 0, 0x0b))
		}), readAll(300), w.Get(0))
	}},
	"locals in loops in loops": {200, func(n int) []byte {
		n = min(n, format.MaxNesting-2)
		return w.Code(bytes.Repeat(w.Op(3, 0x40), n), readAll(200), bytes.Repeat(w.Code(isOdd, w.Op(0x0d, 0, 0x0b)), n),
			w.Get(0))
	}},
	"loops in loops": {0, func(n int) []byte {
		return w.Code(bytes.Repeat(w.Op(3, 0x40), n), bytes.Repeat(w.Code(isOdd, w.Op(0x0d, 0, 0x0b)), n), w.Get(0))
	}},
	"blocks in blocks": {400, func(n int) []byte {
		return w.Code(bytes.Repeat(w.Op(2, 0x40), n), repeat(n, func(i int) []byte {
			return w.Code(isOdd, w.Op(0x0d, 0), w.Get(0), set(i%400), w.Op(0x0b))
		}), readAll(400), w.Get(0))
	}},
}

// hostileModule is a module of a hostile function, and of one that it can call. Its globals change, so that the
// compiler reads them again after each call.
func hostileModule(locals int, code []byte) []byte {
	first := w.Function{Params: []byte{w.I64}, Results: []byte{w.I64}, Code: w.Get(0)}
	m := w.Module{Pages: format.MaxPages}
	if bytes.Contains(code, w.Op(0x10, 0, 0x10, 0)) {
		for i := range 100 {
			m.Globals = append(m.Globals, w.Global{Type: w.I64, Init: w.ConstI64(0)})
			first.Code = w.Code(first.Code, w.Get(0), w.Unsigned([]byte{0x24}, uint64(i)))
		}
	}
	m.Functions = []w.Function{first, {Name: "f", Params: []byte{w.I64}, Results: []byte{w.I64},
		Locals: bytes.Repeat([]byte{w.I64}, locals), Code: code}}
	return m.Bytes()
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileModulesAreBounded compiles the largest module of each hostile shape that is within the limits, and holds
// the memory that this takes against a bound. The module of one more is refused.
func TestHostileModulesAreBounded(t *testing.T) {
	const most = 1 << 16
	for name, shape := range hostile {
		t.Run(name, func(t *testing.T) {
			module := func(n int) []byte { return hostileModule(shape.locals, shape.code(n)) }
			refused := func(n int) error {
				_, err := format.Rewrite(module(n), "f", integers)
				return err
			}
			n := sort.Search(most, func(i int) bool { return refused(i+1) != nil })
			tooMuch := refused(n + 1)
			require.ErrorIs(t, tooMuch, format.ErrModule)
			require.Positive(t, n)
			rewritten, err := format.Rewrite(module(n), "f", integers)
			require.NoError(t, err)
			require.LessOrEqual(t, rewritten.Steps, uint64(format.MaxWork))
			for _, interpret := range []bool{false, true} {
				start := time.Now()
				var err error
				bytes := allocated(func() {
					_, err = wasm.Compile(context.Background(), module(n), "f", integers, wasm.Options{Interpret: interpret})
				})
				require.NoError(t, err)
				t.Logf("%d times, %d bytes, interpreter %t: %d steps, %v, %d MiB; one more: %v", n, len(module(n)), interpret,
					rewritten.Steps, time.Since(start).Round(time.Millisecond), bytes>>20, tooMuch)
				assert.Less(t, bytes, uint64(96<<20))
			}
		})
	}
}

// TestUnreachedFunctions compiles an operator beside functions that it does not reach. They cost nothing, and those
// with too many locals are refused.
func TestUnreachedFunctions(t *testing.T) {
	with := func(functions, locals int) []byte {
		m := w.Module{Functions: []w.Function{{Name: "f", Params: []byte{w.I64}, Results: []byte{w.I64}, Code: w.Get(0)}}}
		body := w.Code(w.Op(1), w.Unsigned(nil, uint64(locals)), w.Op(w.I64, 0x0b))
		m.Bodies = slices.Repeat([][]byte{body}, functions)
		return m.Bytes()
	}
	for want, module := range map[string][]byte{
		"more than 2048 locals":                   with(1, format.MaxLocals+1),
		"more than 65536 locals of all functions": with(format.MaxModuleLocals/format.MaxLocals+1, format.MaxLocals),
		"more than 2048 locals ":                  with(600, 50_000),
	} {
		var err, checked error
		bytes := allocated(func() {
			_, err = wasm.Compile(context.Background(), module, "f", integers, wasm.Options{})
			checked = wasm.Check(module)
		})
		require.ErrorIs(t, err, format.ErrModule, want)
		assert.Contains(t, err.Error()+" ", want)
		require.ErrorIs(t, checked, format.ErrModule, want)
		assert.Less(t, bytes, uint64(1<<20), want)
	}
	module := with(format.MaxModuleLocals/format.MaxLocals, format.MaxLocals)
	bytes := allocated(func() {
		for _, interpret := range []bool{false, true} {
			_, err := wasm.Compile(context.Background(), module, "f", integers, wasm.Options{Interpret: interpret})
			require.NoError(t, err)
		}
		require.NoError(t, wasm.Check(module))
	})
	assert.Less(t, bytes, uint64(8<<20))
}

// TestCompilingEndsWithItsContext compiles with a context that has ended.
func TestCompilingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(context.DeadlineExceeded)
	_, err := wasm.Compile(ctx, integerFunction(w.Get(0)), "f", integers, wasm.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
