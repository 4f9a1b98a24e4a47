package format

import "math"

// reach is the functions that an operator reaches, and what they do together.
type reach struct {
	bodies  map[uint32]*body
	order   []uint32 // callees before callers
	code    int      // bytes of the bodies
	steps   uint64   // Compiling them takes these steps.
	calls   uint64   // instructions that call
	sets    map[uint32]bool
	reads   bool
	writes  bool
	metered bool // a call may need more than Fuel
}

// reachFrom reads the function of an index, and those that it calls.
func (m *Module) reachFrom(index uint32) (*reach, error) {
	r := &reach{bodies: map[uint32]*body{}, sets: map[uint32]bool{}}
	cost := map[uint32]uint64{}
	if err := m.visit(index, r, cost, map[uint32]bool{}); err != nil {
		return nil, err
	}
	r.metered = cost[index] > Fuel
	// The compiler reads the globals that may have changed after every call.
	r.steps += stepsOfReload * r.calls * uint64(len(r.sets)+addedGlobals)
	if r.steps > MaxWork {
		return nil, moduleError("the operator takes about %d steps to compile with the functions that it calls, want at "+
			"most %d: it has %d functions, %d calls and %d globals that change", r.steps, MaxWork, len(r.order), r.calls,
			len(r.sets))
	}
	return r, nil
}

// visit reads a function and those that it calls, unless it was read. open are the functions whose calls led here; cost
// is the work of a call of each function, at most, in instructions.
func (m *Module) visit(index uint32, r *reach, cost map[uint32]uint64, open map[uint32]bool) error {
	if open[index] {
		return moduleError("function %d calls itself, and operators may not: write a loop", index)
	}
	if r.bodies[index] != nil {
		return nil
	}
	if r.code += m.functions[index].end - m.functions[index].at; r.code > MaxCode {
		return moduleError("the operator has more than %d bytes of code, with the functions that it calls", MaxCode)
	}
	if n := len(m.types[m.functions[index].typ].results); n > 1 {
		return moduleError("function %d has %d results, and functions of operators have one at most", index, n)
	}
	fn, err := m.readBody(index)
	if err != nil {
		return err
	}
	r.steps, r.calls = r.steps+fn.steps, r.calls+uint64(len(fn.calls))
	open[index] = true
	if len(open) > MaxCalls {
		return moduleError("more than %d functions that call each other in a chain", MaxCalls)
	}
	work := uint64(len(fn.code))
	if fn.loops {
		work = math.MaxUint32
	}
	for _, callee := range fn.calls {
		if err := m.visit(callee, r, cost, open); err != nil {
			return err
		}
		work = min(work+cost[callee], math.MaxUint32)
	}
	delete(open, index)
	for _, g := range fn.sets {
		r.sets[g] = true
	}
	r.reads, r.writes = r.reads || fn.reads, r.writes || fn.writes
	cost[index] = work
	r.bodies[index] = fn
	r.order = append(r.order, index)
	return nil
}
