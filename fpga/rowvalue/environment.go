package rowvalue

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
)

// Environment is what the references of one program share.
type Environment struct {
	Modules      program.Modules
	LookupTables []program.LookupTable

	shared  map[any]any            // results of Shared, by their keys
	results map[expression]float32 // results of functions of OfFloats, at most maxKeptResults
}

// NewEnvironment returns the environment of a program's references.
func NewEnvironment(p *program.Program) *Environment {
	return &Environment{Modules: p.Modules, LookupTables: p.LookupTables, shared: map[any]any{},
		results: map[expression]float32{}}
}

// expression is an operator of float32 values and the bits of the value that it is given.
type expression struct {
	op Operator
	x  uint32
}

// maxKeptResults bounds how many results an environment keeps.
const maxKeptResults = 1 << 20

// OfFloats returns the reference of an operator that computes f. A function may take a tenth of a millisecond by its
// definition, so f is called once for each value of all equal operators of the program.
func (e *Environment) OfFloats(op Operator, f func(x float32) float32) Reference {
	return OfValues(func(x float32) (any, error) {
		of := expression{op, math.Float32bits(x)}
		y, ok := e.results[of]
		if !ok {
			y = f(x)
			if len(e.results) < maxKeptResults {
				e.results[of] = y
			}
		}
		return y, nil
	})
}

// Shared returns what load returns for a key, which it calls once for all references of the program. The type of a key
// belongs to the caller's package.
func Shared[T any](e *Environment, key any, load func() (T, error)) (T, error) {
	if v, ok := e.shared[key]; ok {
		return v.(T), nil
	}
	v, err := load()
	if err == nil {
		e.shared[key] = v
	}
	return v, err
}
