package format

import "math"

// Locals that the rewriting adds to a function, counted from its own.
const (
	localAddress = iota // i32
	localI32
	localI64
	localF32
	localF64
)

// code is instructions that are written.
type code struct{ b []byte }

// op appends an instruction without an immediate.
func (c *code) op(ops ...byte) { c.b = append(c.b, ops...) }

// indexed appends an instruction with an index.
func (c *code) indexed(op byte, index uint32) { c.b = appendU32(append(c.b, op), index) }

// i32 appends a constant.
func (c *code) i32(n uint32) { c.b = appendI32(append(c.b, opI32Const), n) }

// i64 appends a constant.
func (c *code) i64(n int64) { c.b = appendI64(append(c.b, opI64Const), n) }

// access appends a load or a store.
func (c *code) access(op byte, align, offset uint32) { c.b = appendU32(append(c.b, op), align, offset) }

// body returns a function's body.
func (w *rewriter) body(fn *body) []byte {
	c := &code{}
	c.b = append(appendU32(c.b, fn.groups+4), fn.declarations...)
	c.op(2, typeI32, 1, typeI64, 1, typeF32, 1, typeF64)
	w.charge(c, len(fn.code))
	for i := range fn.code {
		w.instruction(c, fn, &fn.code[i])
	}
	return c.b
}

// instruction writes an instruction as it is, or what stands in its place.
func (w *rewriter) instruction(c *code, fn *body, i *instruction) {
	same := w.module.source[i.start:i.end]
	switch op := i.op; {
	case op == opLoop:
		c.op(same...)
		w.charge(c, i.length)
	case op == opCall:
		c.indexed(op, w.places[i.index])
	case op >= opFirstLoad && op < opFirstStore:
		w.access(c, i)
	case op >= opFirstStore && op <= opLastStore:
		w.store(c, fn, i)
	case op == opMemorySize:
		c.i32(w.module.pages)
	case op == opMemoryGrow:
		c.indexed(opLocalSet, fn.locals+localI32)
		c.i32(1<<32 - 1)
	case op == opF32Abs:
		c.op(opI32FromF32)
		c.i32(1<<31 - 1)
		c.op(opI32And, opF32FromI32)
	case op == opF32Neg:
		c.op(opI32FromF32)
		c.i32(1 << 31)
		c.op(opI32Xor, opF32FromI32)
	case op == opF64Abs:
		c.op(opI64FromF64)
		c.i64(1<<63 - 1)
		c.op(opI64And, opF64FromI64)
	case op == opF64Neg:
		c.op(opI64FromF64)
		c.i64(-1 << 63)
		c.op(opI64Xor, opF64FromI64)
	case op == opF32Copysign:
		copySignF32(c, fn.locals+localI32)
	case op == opF64Copysign:
		copySignF64(c, fn.locals+localI64)
	default:
		c.op(same...)
		canonicalize(c, fn, op)
	}
}

// canonicalize makes the NaN of the operation before it the canonical one.
func canonicalize(c *code, fn *body, op byte) {
	switch {
	case op > opF32Neg && op < opF32Copysign, op == opF32Demote:
		c.indexed(opLocalTee, fn.locals+localF32)
		c.op(opF32Const, 0, 0, 0xc0, 0x7f)
		c.indexed(opLocalGet, fn.locals+localF32)
		c.indexed(opLocalGet, fn.locals+localF32)
		c.op(opF32Eq, opSelect)
	case op > opF64Neg && op < opF64Copysign, op == opF64Promote:
		c.indexed(opLocalTee, fn.locals+localF64)
		c.op(opF64Const, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)
		c.indexed(opLocalGet, fn.locals+localF64)
		c.indexed(opLocalGet, fn.locals+localF64)
		c.op(opF64Eq, opSelect)
	}
}

// copySignF32 writes copysign as operations of integers.
func copySignF32(c *code, kept uint32) {
	c.op(opI32FromF32)
	c.i32(1 << 31)
	c.op(opI32And)
	c.indexed(opLocalSet, kept)
	c.op(opI32FromF32)
	c.i32(1<<31 - 1)
	c.op(opI32And)
	c.indexed(opLocalGet, kept)
	c.op(opI32Or, opF32FromI32)
}

// copySignF64 writes copysign as operations of integers.
func copySignF64(c *code, kept uint32) {
	c.op(opI64FromF64)
	c.i64(-1 << 63)
	c.op(opI64And)
	c.indexed(opLocalSet, kept)
	c.op(opI64FromF64)
	c.i64(1<<63 - 1)
	c.op(opI64And)
	c.indexed(opLocalGet, kept)
	c.op(opI64Or, opF64FromI64)
}

// charge takes the work of some instructions from the fuel, and traps if the fuel does not suffice.
func (w *rewriter) charge(c *code, work int) {
	if !w.reach.metered {
		return
	}
	fuel := w.global(globalFuel)
	c.indexed(opGlobalGet, fuel)
	c.i64(int64(work))
	c.op(opI64Sub)
	c.indexed(opGlobalSet, fuel)
	c.indexed(opGlobalGet, fuel)
	c.i64(0)
	c.op(opI64LtS, opIf, emptyBlock, opUnreachable, opEnd)
}

// access writes a load or a store of the module's own memory. A constant part that is too large is outside the memory
// with every address.
func (w *rewriter) access(c *code, i *instruction) {
	c.access(i.op, i.align, uint32(min(uint64(i.index)+uint64(w.out.Base), math.MaxUint32)))
}

// store writes a store, and notes the bytes that it writes.
func (w *rewriter) store(c *code, fn *body, i *instruction) {
	address := fn.locals + localAddress
	value := fn.locals + map[byte]uint32{typeI32: localI32, typeI64: localI64, typeF32: localF32,
		typeF64: localF64}[storedTypes[i.op-opFirstStore]]
	c.indexed(opLocalSet, value)
	c.indexed(opLocalSet, address)
	w.noteWrite(c, address, i)
	c.indexed(opLocalGet, address)
	c.indexed(opLocalGet, value)
	w.access(c, i)
}

// noteWrite extends the range of the written bytes. It has no branches, which would slow the compiler down. The sums
// may be wrong for an address outside the memory, for which the store traps.
func (w *rewriter) noteWrite(c *code, address uint32, i *instruction) {
	extend := func(global, place uint32, compare byte) {
		for range 2 {
			c.indexed(opLocalGet, address)
			c.i32(w.out.Base + place)
			c.op(opI32Add)
			c.indexed(opGlobalGet, global)
		}
		c.op(compare, opSelect)
		c.indexed(opGlobalSet, global)
	}
	extend(w.global(globalLow), i.index, opI32LtU)
	extend(w.global(globalHigh), i.index+accessBytes[i.op-opFirstLoad], opI32GtU)
}

// Locals of the function that runs a block: its parameter, and a row.
const (
	runRows = iota
	runRow
)

// run returns the body of the function that calls the operator for each row of a block.
func (w *rewriter) run() []byte {
	c := &code{}
	c.op(1, 1, typeI32) // the row
	c.indexed(opLocalGet, runRows)
	c.op(opI32Eqz, opIf, emptyBlock, opReturn, opEnd, opLoop, emptyBlock)
	c.indexed(opLocalGet, runRow)
	c.indexed(opGlobalSet, w.global(globalRow))
	if w.reach.metered {
		c.i64(Fuel)
		c.indexed(opGlobalSet, w.global(globalFuel))
	}
	out := kindTypes[w.out.Signature.Out]
	place := func(shift byte) {
		c.indexed(opLocalGet, runRow)
		c.i32(uint32(shift))
		c.op(opI32Shl)
	}
	place(out.shift)
	for i, k := range w.out.Signature.In {
		in := kindTypes[k]
		place(in.shift)
		c.access(in.opLoad, uint32(in.shift), w.out.Inputs[i])
	}
	c.indexed(opCall, w.operator())
	c.access(out.opStore, uint32(out.shift), w.out.Output)
	w.restore(c)
	c.indexed(opLocalGet, runRow)
	c.i32(1)
	c.op(opI32Add)
	c.indexed(opLocalTee, runRow)
	c.indexed(opLocalGet, runRows)
	c.op(opI32LtU)
	c.indexed(opBrIf, 0)
	c.op(opEnd, opEnd)
	return c.b
}

// restore makes memory and globals what they were before the row.
func (w *rewriter) restore(c *code) {
	for i, g := range w.module.globals {
		if w.reach.sets[uint32(i)] {
			c.op(g.init[:len(g.init)-1]...)
			c.indexed(opGlobalSet, uint32(i))
		}
	}
	if !w.reach.writes {
		return
	}
	low, high := w.global(globalLow), w.global(globalHigh)
	c.indexed(opGlobalGet, low)
	c.indexed(opGlobalGet, high)
	c.op(opI32LtU, opIf, emptyBlock)
	c.indexed(opGlobalGet, low)
	c.indexed(opGlobalGet, low)
	c.i32(w.out.Memory)
	c.op(opI32Sub)
	c.indexed(opGlobalGet, high)
	c.indexed(opGlobalGet, low)
	c.op(opI32Sub, opPrefix, memoryCopy, 0, 0)
	c.i32(w.out.end())
	c.indexed(opGlobalSet, low)
	c.i32(0)
	c.indexed(opGlobalSet, high)
	c.op(opEnd)
}
