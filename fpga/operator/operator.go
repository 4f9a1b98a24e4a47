package operator

import (
	"slices"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Definition is what a build knows about an operator.
type Definition = program.Definition

// Entry is what the catalogue says of an operator.
type Entry = catalogue.Entry

// Answers returns known answers of an operator.
type Answers = func() []rowvalue.Answer

// byUnit are the definitions by their units' numbers.
var byUnit = func() map[program.Unit]Definition {
	m := make(map[program.Unit]Definition, len(definitions))
	for _, d := range definitions {
		m[d.Unit] = d
	}
	return m
}()

// Entries returns what the catalogue says of all operators that declare it, in the order of the folders.
func Entries() []Entry { return slices.Clone(documented) }

// KnownAnswers returns the known answers of all operators that declare them, by unit.
func KnownAnswers() map[program.Unit][]rowvalue.Answer {
	all := make(map[program.Unit][]rowvalue.Answer, len(answers))
	for _, of := range answers {
		for _, a := range of() {
			all[a.Op.Unit()] = append(all[a.Op.Unit()], a)
		}
	}
	return all
}

// Find returns the definition of a unit's operator; ok is false if this build has none.
func Find(u program.Unit) (d Definition, ok bool) {
	d, ok = byUnit[u]
	return d, ok
}

// Unmarshal decodes a program of this build's operators and validates it, as [wire.Unmarshal] says.
func Unmarshal(b []byte) (*program.Program, error) { return wire.Unmarshal(b, Find) }
