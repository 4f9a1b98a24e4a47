// Package shape declares names that are used in different ways.
package shape

// Used is called by the program.
func Used() Colour { return Red }

// Unused is called by nobody but itself.
func Unused() { Unused() }

// Tested is called by a test.
func Tested() int { return 1 }

// Colour is a type with constants, of which one is used.
type Colour int

// Colours.
const (
	Red Colour = iota
	Green
)

// Alone is a constant that nobody uses.
const Alone = 1

// Lonely is a type that only its own method names.
type Lonely struct{}

// Self is a method of Lonely.
func (l *Lonely) Self() *Lonely { return l }

// Shown is called by an Example.
func Shown() {}

// Elsewhere is used on another system.
const Elsewhere = 2
