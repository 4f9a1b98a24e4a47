package format

import "math"

// reach is the functions that an operator reaches, and what they do together.
type reach struct {
	bodies  map[uint32]*body
	order   []uint32 // callees before callers
	code    int      // bytes of the bodies
	sets    map[uint32]bool
	reads   bool
	writes  bool
	metered bool // a call may need more than Fuel
}

// reachFrom reads the function of an index, and those that it calls. b is the module.
func (m *Module) reachFrom(b []byte, index uint32) (*reach, error) {
	r := &reach{bodies: map[uint32]*body{}, sets: map[uint32]bool{}}
	cost := map[uint32]uint64{}
	if err := m.visit(b, index, r, cost, map[uint32]bool{}); err != nil {
		return nil, err
	}
	r.metered = cost[index] > Fuel
	return r, nil
}

// visit reads a function and those that it calls, unless it was read. open are the functions whose calls led here; cost
// is the work of a call of each function, at most, in instructions.
func (m *Module) visit(b []byte, index uint32, r *reach, cost map[uint32]uint64, open map[uint32]bool) error {
	if open[index] {
		return moduleError("function %d calls itself, and operators may not: write a loop", index)
	}
	if r.bodies[index] != nil {
		return nil
	}
	if r.code += m.functions[index].end - m.functions[index].at; r.code > MaxCode {
		return moduleError("the operator has more than %d bytes of code, with the functions that it calls", MaxCode)
	}
	fn, err := m.readBody(b, index)
	if err != nil {
		return err
	}
	open[index] = true
	if len(open) > MaxCalls {
		return moduleError("more than %d functions that call each other in a chain", MaxCalls)
	}
	work := uint64(len(fn.code))
	if fn.loops {
		work = math.MaxUint32
	}
	for _, callee := range fn.calls {
		if err := m.visit(b, callee, r, cost, open); err != nil {
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
