package wasm_test

import (
	"math"
	"math/rand/v2"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// writer writes a random function. The types of its instructions always fit.
type writer struct {
	rng    *rand.Rand
	params []byte
	locals []byte // behind the parameters
	states []byte // types of the globals
	pages  bool
	depth  int
}

var valueTypes = []byte{w.I32, w.I64, w.F32, w.F64}

// operations are instructions by the type that they yield, with the types that they take. Floats that are no numbers
// come out of many of them.
var operations = map[byte][]struct {
	op    byte
	takes []byte
}{}

func init() {
	add := func(yields, first, last byte, takes ...byte) {
		for op := int(first); op <= int(last); op++ {
			operations[yields] = append(operations[yields], struct {
				op    byte
				takes []byte
			}{byte(op), takes})
		}
	}
	add(w.I32, 0x45, 0x45, w.I32)
	add(w.I32, 0x46, 0x4f, w.I32, w.I32)
	add(w.I32, 0x50, 0x50, w.I64)
	add(w.I32, 0x51, 0x5a, w.I64, w.I64)
	add(w.I32, 0x5b, 0x60, w.F32, w.F32)
	add(w.I32, 0x61, 0x66, w.F64, w.F64)
	add(w.I32, 0x67, 0x69, w.I32)
	add(w.I32, 0x6a, 0x6c, w.I32, w.I32)
	add(w.I32, 0x71, 0x78, w.I32, w.I32)
	add(w.I32, 0xa7, 0xa7, w.I64)
	add(w.I32, 0xbc, 0xbc, w.F32)
	add(w.I32, 0xc0, 0xc1, w.I32)
	add(w.I64, 0x79, 0x7b, w.I64)
	add(w.I64, 0x7c, 0x7e, w.I64, w.I64)
	add(w.I64, 0x80, 0x80, w.I64, w.I64) // div_u, which traps for 0
	add(w.I64, 0x83, 0x8a, w.I64, w.I64)
	add(w.I64, 0xac, 0xad, w.I32)
	add(w.I64, 0xb0, 0xb0, w.F64) // trunc, which traps for what does not fit
	add(w.I64, 0xbd, 0xbd, w.F64)
	add(w.I64, 0xc2, 0xc4, w.I64)
	add(w.F32, 0x8b, 0x91, w.F32)
	add(w.F32, 0x92, 0x98, w.F32, w.F32)
	add(w.F32, 0xb2, 0xb3, w.I32)
	add(w.F32, 0xb4, 0xb5, w.I64)
	add(w.F32, 0xb6, 0xb6, w.F64)
	add(w.F32, 0xbe, 0xbe, w.I32)
	add(w.F64, 0x99, 0x9f, w.F64)
	add(w.F64, 0xa0, 0xa6, w.F64, w.F64)
	add(w.F64, 0xb9, 0xba, w.I64)
	add(w.F64, 0xbb, 0xbb, w.F32)
	add(w.F64, 0xbf, 0xbf, w.I64)
}

// expression returns code that leaves a value of a type.
func (r *writer) expression(typ byte) []byte {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > 6 || r.rng.IntN(6) == 0 {
		return r.leaf(typ)
	}
	switch r.rng.IntN(12) {
	case 0:
		return w.Code(r.expression(typ), r.expression(typ), r.expression(w.I32), w.Op(0x1b)) // select
	case 1:
		return w.Code(r.expression(w.I32), w.Op(0x04, typ), r.expression(typ), w.Op(0x05), r.expression(typ), w.Op(0x0b))
	case 2:
		return w.Code(r.statement(), r.expression(typ))
	case 3:
		if r.pages {
			load := map[byte]byte{w.I32: 0x28, w.I64: 0x29, w.F32: 0x2a, w.F64: 0x2b}[typ]
			return w.Code(r.address(), w.Access(load, uint64(r.rng.IntN(64))))
		}
	case 4:
		if typ == w.I32 {
			if r.pages {
				return w.Code(r.expression(w.I32), w.Op(0x40, 0)) // memory.grow
			}
		}
	}
	o := operations[typ][r.rng.IntN(len(operations[typ]))]
	var code []byte
	for _, t := range o.takes {
		code = append(code, r.expression(t)...)
	}
	return append(code, o.op)
}

// address returns an i32 that is seldom outside the memory.
func (r *writer) address() []byte {
	if r.rng.IntN(60) == 0 {
		return r.expression(w.I32)
	}
	return w.Code(r.expression(w.I32), w.ConstI32(0xff8), w.Op(0x71))
}

func (r *writer) leaf(typ byte) []byte {
	var places [][]byte
	for i, t := range append(append([]byte{}, r.params...), r.locals...) {
		if t == typ {
			places = append(places, w.Get(uint64(i)))
		}
	}
	for i, t := range r.states {
		if t == typ {
			places = append(places, w.Unsigned([]byte{0x23}, uint64(i)))
		}
	}
	if len(places) > 0 && r.rng.IntN(3) > 0 {
		return places[r.rng.IntN(len(places))]
	}
	switch typ {
	case w.I32:
		return w.ConstI32(int32(r.rng.Uint32()) >> r.rng.IntN(32))
	case w.I64:
		return w.ConstI64(int64(r.rng.Uint64()) >> r.rng.IntN(64))
	case w.F32:
		return w.ConstF32(floatBits[r.rng.IntN(len(floatBits))])
	}
	return w.ConstF64(float64(math.Float32frombits(floatBits[r.rng.IntN(len(floatBits))])))
}

// floatBits are numbers, infinities, and NaNs of several bits.
var floatBits = []uint32{0, 1 << 31, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
	0x7fa12345, 0xffffffff, 1, 0x7f7fffff, 0x4b000001, 0x3f000000, 0x40490fdb}

// statement returns code that leaves nothing, and writes a local, a global or memory.
func (r *writer) statement() []byte {
	switch n := r.rng.IntN(4); {
	case n == 0 && r.pages:
		typ := valueTypes[r.rng.IntN(4)]
		store := map[byte]byte{w.I32: 0x36, w.I64: 0x37, w.F32: 0x38, w.F64: 0x39}[typ]
		return w.Code(r.address(), r.expression(typ), w.Access(store, uint64(r.rng.IntN(64))))
	case n == 1 && len(r.states) > 0:
		i := r.rng.IntN(len(r.states))
		return w.Code(r.expression(r.states[i]), w.Unsigned([]byte{0x24}, uint64(i)))
	case n == 2:
		// A loop that may run for ever: it goes on while a random condition holds.
		return w.Code(w.Op(0x03, 0x40), r.statement(), r.expression(w.I32), w.ConstI32(3), w.Op(0x71, 0x45, 0x0d, 0, 0x0b))
	case len(r.locals) > 0:
		i := r.rng.IntN(len(r.locals))
		return w.Code(r.expression(r.locals[i]), w.Unsigned([]byte{0x21}, uint64(len(r.params)+i)))
	}
	return w.Op(0x01)
}

// randomModule returns a module whose function f has a random signature.
func randomModule(rng *rand.Rand) ([]byte, format.Signature) {
	kinds := []format.Kind{format.Int64, format.Float32, format.Float64}
	types := map[format.Kind]byte{format.Int64: w.I64, format.Float32: w.F32, format.Float64: w.F64}
	r := &writer{rng: rng, pages: rng.IntN(2) == 0}
	of := format.Signature{Out: kinds[rng.IntN(3)]}
	for range 1 + rng.IntN(4) {
		k := kinds[rng.IntN(3)]
		of.In, r.params = append(of.In, k), append(r.params, types[k])
	}
	for range rng.IntN(4) {
		r.locals = append(r.locals, valueTypes[rng.IntN(4)])
	}
	m := w.Module{}
	for range rng.IntN(3) {
		typ := valueTypes[rng.IntN(4)]
		r.states = append(r.states, typ)
		init := map[byte][]byte{w.I32: w.ConstI32(7), w.I64: w.ConstI64(-9), w.F32: w.ConstF32(0x7f800001),
			w.F64: w.ConstF64(math.Inf(-1))}[typ]
		m.Globals = append(m.Globals, w.Global{Type: typ, Init: init})
	}
	if r.pages {
		m.Pages, m.Data = 1, []byte("what lies in memory at first")
	}
	m.Functions = []w.Function{{Name: "f", Params: r.params, Results: []byte{types[of.Out]}, Locals: r.locals,
		Code: w.Code(r.statement(), r.statement(), r.expression(types[of.Out]))}}
	return m.Bytes(), of
}
