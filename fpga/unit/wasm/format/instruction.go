package format

// Instructions that the rewriting looks at.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opFirstLoad    = 0x28
	opFirstStore   = 0x36
	opLastStore    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32LtS       = 0x48
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI64Eqz       = 0x50
	opI64LtS       = 0x53
	opF32Eq        = 0x5b
	opF64Eq        = 0x61
	opI32Clz       = 0x67
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32DivS      = 0x6d
	opI32RemU      = 0x70
	opI32And       = 0x71
	opI32Or        = 0x72
	opI32Xor       = 0x73
	opI32Shl       = 0x74
	opI64Clz       = 0x79
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64DivS      = 0x7f
	opI64RemU      = 0x82
	opI64And       = 0x83
	opI64Or        = 0x84
	opI64Xor       = 0x85
	opF32Abs       = 0x8b
	opF32Neg       = 0x8c
	opF32Add       = 0x92
	opF32Copysign  = 0x98
	opF64Abs       = 0x99
	opF64Neg       = 0x9a
	opF64Add       = 0xa0
	opF64Copysign  = 0xa6
	opI32TruncF32S = 0xa8
	opI32TruncF64U = 0xab
	opI64TruncF32S = 0xae
	opI64TruncF64U = 0xb1
	opF32Demote    = 0xb6
	opF64Promote   = 0xbb
	opI32FromF32   = 0xbc // reinterpret
	opI64FromF64   = 0xbd
	opF32FromI32   = 0xbe
	opF64FromI64   = 0xbf
	opLastPlain    = 0xc4
	opPrefix       = 0xfc
)

const (
	lastSaturating = 7  // of the prefix: the conversions that do not trap
	memoryCopy     = 10 // of the prefix
	emptyBlock     = 0x40
)

// accessBytes is how many bytes the instructions from opFirstLoad to opLastStore read or write.
var accessBytes = [...]uint32{4, 8, 4, 8, 1, 1, 2, 2, 1, 1, 2, 2, 4, 4, 4, 8, 4, 8, 1, 2, 1, 2, 4}

// storedTypes are the types of the values of the instructions from opFirstStore to opLastStore.
var storedTypes = [...]byte{typeI32, typeI64, typeF32, typeF64, typeI32, typeI32, typeI64, typeI64, typeI64}

// instruction is one instruction of a function.
type instruction struct {
	op         byte
	start, end int    // bytes of the module
	index      uint32 // A local, global or function; the constant part of an address; the results of a block.
	align      uint32 // Loads and stores have it.
	length     int    // A loop has as many instructions.
}

// body is a function that an operator reaches.
type body struct {
	index        uint32
	declarations []byte // They declare the locals.
	groups       uint32 // There are as many groups of declarations.
	locals       uint32 // parameters and locals
	code         []instruction
	calls        []uint32
	loops        bool
	reads        bool // memory
	writes       bool
	sets         []uint32 // globals
	effort       *effort  // nil once steps is known
	steps        uint64   // The effort has these steps.
}

// readBody reads the body of a function.
func (m *Module) readBody(index uint32) (*body, error) {
	f := &m.functions[index]
	r := &reader{b: m.source, at: f.at, end: f.end}
	fn := &body{index: index}
	fn.declarations, fn.groups, fn.locals = readLocals(r, uint32(len(m.types[f.typ].params)))
	if r.err != nil {
		return nil, r.err
	}
	fn.effort = newEffort(fn.locals)
	m.readCode(r, fn)
	r.finish(r, "function's end")
	if fn.steps = fn.effort.steps(); r.err == nil && fn.steps > MaxWork {
		r.fail("function %d takes about %d steps to compile, want at most %d: it has %d blocks, and %d locals that one "+
			"block sets and another reads", index, fn.steps, MaxWork, fn.effort.blocks, fn.effort.variables)
	}
	fn.effort = nil
	return fn, r.err
}

// readCode reads instructions up to the function's end.
func (m *Module) readCode(r *reader, fn *body) {
	open := []int{-1} // blocks: the place of a loop, or -1
	for len(open) > 0 && r.err == nil {
		i := instruction{start: r.at}
		i.op = r.byte()
		m.readImmediates(r, fn, &i)
		i.end = r.at
		switch i.op {
		case opBlock, opIf:
			open = append(open, -1)
		case opLoop:
			open, fn.loops = append(open, len(fn.code)), true
		case opEnd:
			if loop := open[len(open)-1]; loop >= 0 {
				fn.code[loop].length = len(fn.code) - loop
			}
			open = open[:len(open)-1]
		}
		if len(open) > MaxNesting {
			r.fail("more than %d blocks in blocks", MaxNesting)
		}
		if r.err == nil {
			fn.effort.add(m, &i)
		}
		fn.code = append(fn.code, i)
	}
}

// readImmediates reads what follows an instruction's number, and notes what the function does.
func (m *Module) readImmediates(r *reader, fn *body, i *instruction) {
	switch op := i.op; {
	case op <= 0x01, op == opElse, op == opEnd, op == opReturn, op == opDrop, op == opSelect:
	case op == opBlock, op == opLoop, op == opIf:
		if t := r.byte(); t != emptyBlock {
			checkValueType(r, t)
			i.index = 1
		}
	case op == opBr, op == opBrIf:
		r.u32()
	case op == opBrTable:
		i.index = uint32(r.count(MaxCode, "targets"))
		for range i.index {
			r.u32()
		}
		r.u32()
	case op == opCall:
		i.index = checkIndex(r, len(m.functions), "function")
		fn.calls = append(fn.calls, i.index)
	case op == opLocalGet, op == opLocalSet, op == opLocalTee:
		i.index = checkIndex(r, int(fn.locals), "local")
	case op == opGlobalGet, op == opGlobalSet:
		if i.index = checkIndex(r, len(m.globals), "global"); op == opGlobalSet {
			fn.sets = append(fn.sets, i.index)
		}
	case op >= opFirstLoad && op <= opLastStore:
		if i.align, i.index = r.u32(), r.u32(); i.align > 3 {
			r.fail("an alignment of 2^%d bytes", i.align)
		}
		fn.reads = true
		fn.writes = fn.writes || op >= opFirstStore
		m.requireMemory(r)
	case op == opMemorySize, op == opMemoryGrow:
		if r.byte() != 0 {
			r.fail("a second memory")
		}
		m.requireMemory(r)
	case op == opI32Const:
		r.signed(5)
	case op == opI64Const:
		r.signed(10)
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op >= opI32Eqz && op <= opLastPlain:
	case op == opPrefix:
		if sub := r.u32(); sub > lastSaturating {
			r.fail("instruction fch %d: bulk memory and tables are not for operators; build with -mno-bulk-memory", sub)
		}
	default:
		r.fail("instruction %#x: operators may not use it, or it is unknown", op)
	}
}

func (m *Module) requireMemory(r *reader) {
	if !m.memory {
		r.fail("an instruction that uses memory, and the module has none")
	}
}

// checkIndex reads an index below n.
func checkIndex(r *reader, n int, what string) uint32 {
	i := r.u32()
	if r.err == nil && uint64(i) >= uint64(n) {
		r.fail("%s %d of %d", what, i, n)
	}
	return i
}
