package format

// Total is what the operators of a program take together. The zero value is that of none.
type Total struct {
	functions int
	steps     uint64
	bytes     uint64
}

// Add adds an operator. It fails if the operators pass one of the limits of a program.
func (t *Total) Add(r *Rewritten) error {
	t.functions++
	t.steps += r.Steps
	t.bytes += r.Held()
	switch {
	case t.functions > MaxProgramFunctions:
		return moduleError("more than %d functions of modules in a program", MaxProgramFunctions)
	case t.steps > MaxProgramWork:
		return moduleError("the functions of modules in a program take more than %d steps to compile: call fewer, or "+
			"shorter ones", MaxProgramWork)
	case t.bytes > MaxProgramBytes:
		return moduleError("the functions of modules in a program hold more than %d bytes: call fewer, or declare less "+
			"memory in their modules", MaxProgramBytes)
	}
	return nil
}

// Bytes returns the memory that the operators hold for each thread that runs them.
func (t *Total) Bytes() uint64 { return t.bytes }
