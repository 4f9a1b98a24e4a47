package wasm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// inputs are columns of random values, and a row's values.
type inputs struct {
	of      format.Signature
	columns []wasm.Column
	valid   []byte
	rows    int
}

func randomInputs(rng *rand.Rand, of format.Signature, rows int) *inputs {
	in := &inputs{of: of, rows: rows, columns: make([]wasm.Column, len(of.In))}
	for i, k := range of.In {
		c := &in.columns[i]
		for range rows {
			bits := floatBits[rng.IntN(len(floatBits))]
			switch k {
			case format.Int64:
				c.Int64s = append(c.Int64s, int64(rng.Uint64())>>rng.IntN(64))
			case format.Float32:
				c.Float32s = append(c.Float32s, math.Float32frombits(bits))
			case format.Float64:
				x := float64(math.Float32frombits(bits))
				if rng.IntN(4) == 0 {
					x = math.Float64frombits(0x7ff0000000000001 | uint64(rng.Uint32())<<20)
				}
				c.Float64s = append(c.Float64s, x)
			}
		}
	}
	if rng.IntN(2) == 0 {
		for range rows {
			in.valid = append(in.valid, byte(min(rng.IntN(4), 1)))
		}
	}
	return in
}

// row returns the values of a row.
func (in *inputs) row(r int) (values []any) {
	for i, k := range in.of.In {
		switch k {
		case format.Int64:
			values = append(values, in.columns[i].Int64s[r])
		case format.Float32:
			values = append(values, in.columns[i].Float32s[r])
		case format.Float64:
			values = append(values, in.columns[i].Float64s[r])
		}
	}
	return values
}

// from returns the rows from a row on.
func (in *inputs) from(first, rows int) *inputs {
	part := &inputs{of: in.of, rows: rows}
	for i := range in.columns {
		c := &in.columns[i]
		switch in.of.In[i] {
		case format.Int64:
			part.columns = append(part.columns, wasm.Column{Int64s: c.Int64s[first:][:rows]})
		case format.Float32:
			part.columns = append(part.columns, wasm.Column{Float32s: c.Float32s[first:][:rows]})
		case format.Float64:
			part.columns = append(part.columns, wasm.Column{Float64s: c.Float64s[first:][:rows]})
		}
	}
	if in.valid != nil {
		part.valid = in.valid[first:][:rows]
	}
	return part
}

// bitsOf returns a value's bits.
func bitsOf(v any) uint64 {
	switch x := v.(type) {
	case float32:
		return uint64(math.Float32bits(x))
	case float64:
		return math.Float64bits(x)
	}
	return uint64(v.(int64))
}

// run runs a function and returns the bits of its values.
func (in *inputs) run(f *wasm.Function) ([]uint64, error) {
	var to wasm.Column
	switch in.of.Out {
	case format.Int64:
		to.Int64s = make([]int64, in.rows)
	case format.Float32:
		to.Float32s = make([]float32, in.rows)
	case format.Float64:
		to.Float64s = make([]float64, in.rows)
	}
	if err := f.Run(to, in.columns, in.rows, in.valid); err != nil {
		return nil, err
	}
	bits := make([]uint64, in.rows)
	for r := range bits {
		switch in.of.Out {
		case format.Int64:
			bits[r] = uint64(to.Int64s[r])
		case format.Float32:
			bits[r] = uint64(math.Float32bits(to.Float32s[r]))
		case format.Float64:
			bits[r] = math.Float64bits(to.Float64s[r])
		}
	}
	return bits, nil
}

// reference returns the bits that the reference makes of the rows, or the first trap.
func (in *inputs) reference(t testing.TB, module []byte) (bits []uint64, trap string) {
	r, err := wasm.NewReference(module, "f", in.of)
	require.NoError(t, err)
	bits = []uint64{}
	for row := range in.rows {
		if in.valid != nil && in.valid[row] == 0 {
			bits = append(bits, 0)
			continue
		}
		v, err := r.Call(in.row(row))
		var fault *format.TrapError
		if errors.As(err, &fault) {
			return bits, fmt.Sprintf("row %d: %s", row, fault.Reason)
		}
		require.NoError(t, err)
		bits = append(bits, bitsOf(v))
	}
	return bits, ""
}

// TestKernelsAreTheReference compares compiler, interpreter and reference, whose instance is new for each row, on
// random functions that write globals and memory, make NaNs, loop and trap. Rows are also run in random cuts.
func TestKernelsAreTheReference(t *testing.T) {
	traps, values := 0, 0
	for seed := range uint64(250) {
		rng := rand.New(rand.NewPCG(seed, 1))
		module, of := randomModule(rng)
		all := randomInputs(rng, of, 20)
		want, trap := all.reference(t, module)
		for _, interpret := range []bool{false, true} {
			f, err := wasm.Compile(context.Background(), module, "f", of, wasm.Options{Interpret: interpret})
			require.NoError(t, err, "seed %d", seed)
			in := all
			got, err := in.run(f)
			if trap != "" {
				require.EqualError(t, err, trap, "seed %d, interpreter %t", seed, interpret)
				traps++
				in = all.from(0, len(want)) // the rows before the trap
				got, err = in.run(f)
			}
			require.NoError(t, err)
			require.Equal(t, want, got, "seed %d, interpreter %t", seed, interpret)
			values += len(got)
			for first := 0; first < in.rows; {
				n := 1 + rng.IntN(in.rows-first)
				part, err := in.from(first, n).run(f)
				require.NoError(t, err)
				require.Equal(t, want[first:][:n], part, "seed %d: rows %d+%d", seed, first, n)
				first += n
			}
		}
	}
	assert.Positive(t, traps)
	assert.Greater(t, values, 3000)
}

var integers = format.Signature{In: []format.Kind{format.Int64}, Out: format.Int64}

func integerFunction(code ...[]byte) []byte {
	return w.Module{Pages: 1, Data: []byte{5}, Globals: []w.Global{{Type: w.I64, Init: w.ConstI64(3)}},
		Functions: []w.Function{{Name: "f", Params: []byte{w.I64}, Results: []byte{w.I64}, Code: w.Code(code...)}}}.Bytes()
}

// TestNoRowSeesAnother counts calls in a global and in memory: every row is the first.
func TestNoRowSeesAnother(t *testing.T) {
	module := integerFunction(w.Op(0x23, 0), w.ConstI64(1), w.Op(0x7c, 0x24, 0),
		w.ConstI32(0), w.ConstI32(0), w.Access(0x29, 0), w.ConstI64(1), w.Op(0x7c), w.Access(0x37, 0),
		w.Get(0), w.Op(0x23, 0), w.Op(0x7c), w.ConstI32(0), w.Access(0x29, 0), w.Op(0x7c))
	for _, interpret := range []bool{false, true} {
		f, err := wasm.Compile(context.Background(), module, "f", integers, wasm.Options{Interpret: interpret})
		require.NoError(t, err)
		for range 2 {
			in := randomInputs(rand.New(rand.NewPCG(1, 2)), integers, 3*format.BlockRows+5)
			got, err := in.run(f)
			require.NoError(t, err)
			for r := range got {
				want := uint64(in.columns[0].Int64s[r]) + 4 + 6
				if in.valid != nil && in.valid[r] == 0 {
					want = 0
				}
				require.Equal(t, want, got[r], "row %d", r)
			}
		}
	}
}

// TestNeighboursAreOutside reads behind the module's own memory, where a block's columns lie.
func TestNeighboursAreOutside(t *testing.T) {
	inside := integerFunction(w.ConstI32(1<<16-8), w.Access(0x29, 0))
	for name, module := range map[string][]byte{
		"the last byte": integerFunction(w.ConstI32(1<<16-7), w.Access(0x29, 0)),
		"the offset":    integerFunction(w.ConstI32(0), w.Access(0x29, 1<<16-7)),
		"both":          integerFunction(w.ConstI32(-1), w.Access(0x29, 1)),
		"far":           integerFunction(w.ConstI32(0), w.Access(0x29, 1<<32-1)),
		"a store": integerFunction(w.ConstI32(1<<16-7), w.ConstI64(1), w.Access(0x37, 0),
			w.Get(0)),
		"a byte": integerFunction(w.ConstI32(1<<16), w.ConstI64(1), w.Access(0x3c, 0), w.Get(0)),
	} {
		for _, interpret := range []bool{false, true} {
			f, err := wasm.Compile(context.Background(), module, "f", integers, wasm.Options{Interpret: interpret})
			require.NoError(t, err, name)
			_, err = (&inputs{of: integers, rows: 2, columns: []wasm.Column{{Int64s: []int64{1, 2}}}}).run(f)
			require.EqualError(t, err, "row 0: reads or writes outside the module's memory", name)
		}
	}
	f, err := wasm.Compile(context.Background(), inside, "f", integers, wasm.Options{})
	require.NoError(t, err)
	got, err := (&inputs{of: integers, rows: 2, columns: []wasm.Column{{Int64s: []int64{1, 2}}}}).run(f)
	require.NoError(t, err)
	assert.Equal(t, []uint64{0, 0}, got)
}

// TestTraps runs functions that do not end for a row, and the same functions for other rows afterwards.
func TestTraps(t *testing.T) {
	isSeven := w.Code(w.Get(0), w.ConstI64(7), w.Op(0x51))
	for want, module := range map[string][]byte{
		"row 300: runs for more than 131072 instructions": integerFunction(
			w.Op(0x03, 0x40), isSeven, w.Op(0x0d, 0, 0x0b), w.Get(0)),
		"row 300: unreachable": integerFunction(isSeven, w.Op(0x04, 0x40, 0x00, 0x0b), w.Get(0)),
		"row 300: integer divide by zero": integerFunction(w.ConstI64(1), w.Get(0), w.ConstI64(7), w.Op(0x7d, 0x7f, 0x1a),
			w.Get(0)),
		// memory that grows without end: it never grows, and the loop runs out of fuel
		"row 300: runs for more than 131072 instructions ": integerFunction(isSeven, w.Op(0x04, 0x40),
			w.Op(0x03, 0x40), w.ConstI32(1), w.Op(0x40, 0, 0x1a, 0x0c, 0, 0x0b, 0x0b), w.Get(0)),
	} {
		for _, interpret := range []bool{false, true} {
			f, err := wasm.Compile(context.Background(), module, "f", integers, wasm.Options{Interpret: interpret})
			require.NoError(t, err)
			in := &inputs{of: integers, rows: 400, columns: []wasm.Column{{Int64s: make([]int64, 400)}}}
			in.columns[0].Int64s[300] = 7
			_, err = in.run(f)
			var trap *format.TrapError
			require.ErrorAs(t, err, &trap)
			assert.Contains(t, want, trap.Error())
			got, err := in.from(0, 300).run(f)
			require.NoError(t, err)
			assert.Equal(t, make([]uint64, 300), got)
		}
	}
}

// TestFuelIsExact gives a loop as many turns as the fuel suffices for, and one more.
func TestFuelIsExact(t *testing.T) {
	// A turn has seven instructions with its end; the function has twelve before its first turn, loop included.
	module := w.Module{Functions: []w.Function{{Name: "f", Params: []byte{w.I64}, Results: []byte{w.I64},
		Code: w.Code(w.Op(0x03, 0x40), w.Get(0), w.ConstI64(1), w.Op(0x7d, 0x22, 0), w.ConstI64(0), w.Op(0x55, 0x0d, 0, 0x0b),
			w.Get(0))}}}.Bytes()
	turns := func(interpret bool) int64 {
		f, err := wasm.Compile(context.Background(), module, "f", integers, wasm.Options{Interpret: interpret})
		require.NoError(t, err)
		low, high := int64(1), int64(format.Fuel)
		for low+1 < high {
			n := (low + high) / 2
			if _, err := (&inputs{of: integers, rows: 1, columns: []wasm.Column{{Int64s: []int64{n}}}}).run(f); err == nil {
				low = n
			} else {
				high = n
			}
		}
		return low
	}
	assert.Equal(t, turns(false), turns(true))
	assert.InDelta(t, format.Fuel/8, turns(false), 3000)
}

// TestInvalidTypes refuses a module whose code does not type, though its bytes can be read.
func TestInvalidTypes(t *testing.T) {
	_, err := wasm.Compile(context.Background(), integerFunction(w.ConstI32(1)), "f", integers, wasm.Options{})
	require.ErrorIs(t, err, format.ErrModule)
}

// TestManyThreads runs one function on several goroutines.
func TestManyThreads(t *testing.T) {
	module, of := randomModule(rand.New(rand.NewPCG(5, 1)))
	f, err := wasm.Compile(context.Background(), module, "f", of, wasm.Options{})
	require.NoError(t, err)
	in := randomInputs(rand.New(rand.NewPCG(6, 1)), of, 700)
	want, wantErr := in.run(f)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				got, err := in.run(f)
				assert.Equal(t, wantErr, err)
				assert.Equal(t, want, got)
			}
		})
	}
	all.Wait()
}

// FuzzCompile compiles any bytes that are refused or run: compiler, interpreter and reference agree.
func FuzzCompile(f *testing.F) {
	for seed := range uint64(20) {
		module, of := randomModule(rand.New(rand.NewPCG(seed, 1)))
		if len(of.In) == 1 && of.In[0] == format.Int64 && of.Out == format.Int64 {
			f.Add(module, int64(seed))
		}
	}
	f.Add(integerFunction(w.Get(0)), int64(1))
	for _, shape := range hostile {
		f.Add(hostileModule(min(shape.locals, 10), shape.code(3)), int64(7))
	}
	f.Fuzz(func(t *testing.T, module []byte, x int64) {
		compiled, err := wasm.Compile(context.Background(), module, "f", integers, wasm.Options{})
		if err != nil {
			require.ErrorIs(t, err, format.ErrModule)
			return
		}
		interpreted, err := wasm.Compile(context.Background(), module, "f", integers, wasm.Options{Interpret: true})
		require.NoError(t, err)
		in := &inputs{of: integers, rows: 3, columns: []wasm.Column{{Int64s: []int64{x, 0, ^x}}}}
		want, trap := in.reference(t, module)
		for _, f := range []*wasm.Function{compiled, interpreted} {
			got, err := in.run(f)
			if trap != "" {
				require.EqualError(t, err, trap)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

func Example() {
	// (a, b) -> a + b, as a compiler would write it
	module := w.Module{Functions: []w.Function{{Name: "add", Params: []byte{w.I64, w.I64}, Results: []byte{w.I64},
		Code: w.Code(w.Get(0), w.Get(1), w.Op(0x7c))}}}.Bytes()
	add, err := wasm.Compile(context.Background(), module, "add",
		format.Signature{In: []format.Kind{format.Int64, format.Int64}, Out: format.Int64}, wasm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	to := wasm.Column{Int64s: make([]int64, 3)}
	from := []wasm.Column{{Int64s: []int64{1, 2, 3}}, {Int64s: []int64{10, 20, 30}}}
	fmt.Println(add.Run(to, from, 3, []byte{1, 0, 1}), to.Int64s)
	// Output: <nil> [11 0 33]
}

func BenchmarkAddAndClamp(b *testing.B) {
	module := w.Module{Functions: []w.Function{{Name: "f", Params: []byte{w.I64, w.I64}, Results: []byte{w.I64},
		Locals: []byte{w.I64}, Code: w.Code(w.Get(0), w.Get(1), w.Op(0x7c, 0x22, 2), w.ConstI64(0), w.Get(2),
			w.ConstI64(0), w.Op(0x55, 0x1b))}}}.Bytes()
	of := format.Signature{In: []format.Kind{format.Int64, format.Int64}, Out: format.Int64}
	f, err := wasm.Compile(context.Background(), module, "f", of, wasm.Options{})
	require.NoError(b, err)
	const rows = 2048
	to := wasm.Column{Int64s: make([]int64, rows)}
	from := []wasm.Column{{Int64s: make([]int64, rows)}, {Int64s: make([]int64, rows)}}
	b.SetBytes(rows * 8)
	for b.Loop() {
		if err := f.Run(to, from, rows, nil); err != nil {
			b.Fatal(err)
		}
	}
}
