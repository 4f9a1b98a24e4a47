package format

// effort estimates how much work the runtime's compiler has with a function, in steps. A step takes at most about 250
// ns and 40 bytes on a processor of 2.8 GHz; the tests of package wasm measure both. What makes the compiler slow is
// not the length of the code: it walks from block to block for every value that it looks up, keeps lists of the values
// that live into each block, and compares the variables of a loop with each other. So the estimate multiplies blocks
// with what is carried through them.
type effort struct {
	instructions uint64 // after the rewriting, the slow ones counted several times
	blocks       uint64 // The compiler makes them of the flow of control.
	stacked      uint64 // values on the stack, at the beginning of each block
	lookups      uint64 // reads of values that another block has set
	accesses     uint64 // They are loads and stores.
	variables    uint64 // locals that a block reads and another sets
	loops        uint64 // loops in loops

	block  uint32   // the number of the block being read
	setIn  []uint32 // for each local the block that set it last
	shared []bool   // for each local whether it is one of variables
	height uint64   // The stack is as high.
	open   []openBlock
}

// openBlock is a block that has not ended.
type openBlock struct {
	height uint64 // The stack was as high where the block began.
	yields uint64
	loops  uint64 // with this one
}

// Weights of instructions and of what they are multiplied with. They were found by compiling functions that have much
// of one thing.
const (
	stepsOfInstruction = 40
	stepsOfFunction    = 400
	stepsOfLocal       = 4
	stepsOfReload      = 5   // of a global after a call
	floatInstructions  = 6   // that a float operation becomes
	storeInstructions  = 14  // that a store becomes
	slowInstructions   = 4   // that divisions, loads and calls are worth
	truncInstructions  = 8   // that conversions of floats to integers are worth
	blocksOfBranch     = 3   // of if, loop and br_if
	stackedSteps       = 2   // of a value on the stack, at the beginning of a block
	variableSteps      = 3   // of a variable in a block
	accessesPerStep    = 3   // accesses that are one step in each block
	lookupsPerStep     = 20  // lookups, and blocks, that are one step in each block
	pairsPerStep       = 512 // pairs of variables that are one step in each block
	passes             = 3   // over pairs of variables, and one for each loop in a loop
)

// newEffort returns the effort of a function of a number of locals, without its instructions.
func newEffort(locals uint32) *effort {
	e := &effort{setIn: make([]uint32, locals), shared: make([]bool, locals), open: []openBlock{{}}}
	e.addBlocks(1 + blocksOfBranch) // the check of the fuel
	return e
}

// addBlocks begins n blocks.
func (e *effort) addBlocks(n uint64) {
	e.block++
	e.blocks += n
	e.stacked += n * e.height
}

// move pops and pushes values. In code that is never reached, the stack has as many values as are popped.
func (e *effort) move(pops, pushes uint64) {
	if floor := e.open[len(e.open)-1].height; e.height < floor+pops {
		e.height = floor + pops
	}
	e.height += pushes - pops
}

// add counts an instruction.
func (e *effort) add(m *Module, i *instruction) {
	e.instructions++
	top := &e.open[len(e.open)-1]
	switch op := i.op; {
	case op == opBlock, op == opLoop, op == opIf:
		inside := openBlock{yields: uint64(i.index), loops: top.loops}
		switch op {
		case opBlock:
			e.addBlocks(1)
		case opLoop:
			inside.loops++
			e.loops = max(e.loops, inside.loops)
			e.addBlocks(2 * blocksOfBranch) // with the check of the fuel
		default:
			e.move(1, 0)
			e.addBlocks(blocksOfBranch)
		}
		inside.height = e.height
		e.open = append(e.open, inside)
	case op == opElse:
		e.height = top.height
		e.addBlocks(0)
	case op == opEnd:
		e.height = top.height + top.yields
		e.addBlocks(0)
		if e.open = e.open[:len(e.open)-1]; len(e.open) == 0 {
			e.open = append(e.open, openBlock{})
		}
	case op == opBrIf:
		e.move(1, 0)
		e.addBlocks(blocksOfBranch)
	case op == opBrTable:
		e.addBlocks(uint64(i.index) + 1)
		e.height = top.height
	case op == opBr, op == opReturn, op == opUnreachable:
		e.height = top.height
		e.addBlocks(0)
	case op == opCall:
		t := m.types[m.functions[i.index].typ]
		e.instructions += slowInstructions
		e.move(uint64(len(t.params)), uint64(len(t.results)))
	case op == opLocalGet:
		if e.setIn[i.index] != e.block {
			e.lookups++
			if !e.shared[i.index] {
				e.shared[i.index] = true
				e.variables++
			}
		}
		e.move(0, 1)
	case op == opLocalSet, op == opLocalTee:
		e.setIn[i.index] = e.block
		e.move(1, uint64(op-opLocalSet))
	case op == opGlobalGet:
		e.lookups++
		e.move(0, 1)
	case op == opGlobalSet:
		e.move(1, 0)
	case op >= opFirstLoad && op <= opLastStore:
		e.accesses++
		e.lookups += 2 // the memory's place and its size
		if op < opFirstStore {
			e.instructions += slowInstructions
			e.move(1, 1)
		} else {
			e.instructions += storeInstructions
			e.lookups += 2 // the range of the written bytes
			e.move(2, 0)
		}
	default:
		pops, pushes, worth := operands(op)
		e.instructions += worth - 1
		e.move(pops, pushes)
	}
}

// operands returns how many values an instruction without an index pops and pushes, and how many instructions it is
// worth.
func operands(op byte) (pops, pushes, worth uint64) {
	switch {
	case op == opDrop:
		return 1, 0, 1
	case op == opSelect:
		return 3, 1, 1
	case op == opMemorySize, op >= opI32Const && op <= opF64Const:
		return 0, 1, 1
	case op < opDrop:
		return 0, 0, 0
	case op >= opI32DivS && op <= opI32RemU, op >= opI64DivS && op <= opI64RemU:
		return 2, 1, slowInstructions
	case op >= opI32TruncF32S && op <= opI32TruncF64U, op >= opI64TruncF32S && op <= opI64TruncF64U, op == opPrefix:
		return 1, 1, truncInstructions
	case op >= opF32Abs && op < opF32Add, op >= opF64Abs && op < opF64Add, op == opF32Demote, op == opF64Promote:
		return 1, 1, floatInstructions
	case op >= opF32Add && op <= opF32Copysign, op >= opF64Add && op <= opF64Copysign:
		return 2, 1, floatInstructions
	case op > opI32Eqz && op < opI64Eqz, op > opI64Eqz && op < opI32Clz, op >= opI32Add && op < opI64Clz,
		op >= opI64Add && op < opF32Abs:
		return 2, 1, 1
	}
	return 1, 1, 1
}

// steps returns the estimate.
func (e *effort) steps() uint64 {
	through := variableSteps*e.variables + e.accesses/accessesPerStep + (e.lookups+e.blocks)/lookupsPerStep +
		e.variables*e.variables*(e.loops+passes)/pairsPerStep
	return stepsOfFunction + stepsOfLocal*uint64(len(e.setIn)) + stepsOfInstruction*e.instructions +
		stackedSteps*e.stacked + e.blocks*through
}
