package program

import (
	"fmt"
	"reflect"
)

// Op is one operator of a chain, with its parameters. Each operator is a package below fpga/operator.
type Op interface {
	Unit() Unit
	// Out returns the kind that the operator yields for values of kind in, or 0 if it does not take that kind.
	Out(in Kind) Kind
	// Check checks the parameters for the values that a chain gives the operator.
	Check(in Input) error
	// Fields names the parameters, in the order of their wire form.
	Fields(f Fields)
}

// Combiner is an operator that takes whole values of a row, of which those that take ids take them without their
// scores, and yields one. Each is a package below fpga/operator.
type Combiner interface {
	Unit() Unit
	// Yield returns the type of the value that the operator makes of inputs; ok is false if the operator does not take
	// these inputs.
	Yield(inputs []ValueType) (out ValueType, ok bool)
	// Check checks the parameters.
	Check() error
	// Fields names the parameters, in the order of their wire form.
	Fields(f Fields)
}

// Definition is what a build knows about a unit that operates on values.
type Definition struct {
	Unit    Unit
	Name    string // The name that pipelines and images write.
	Version uint16 // The version of the unit that this build writes and reads.
	// Read returns the operator with the parameters that f sets. It is nil for a unit of several inputs.
	Read func(f Fields) Op
	// ReadCombiner returns the operator of several inputs with the parameters that f sets, or is nil.
	ReadCombiner func(f Fields) Combiner
	// Args, In and Out describe the unit to a host, as an image has it.
	Args, In []string
	Out      string
}

// Operators finds the definition of a unit; ok is false if the build has none.
type Operators func(u Unit) (d Definition, ok bool)

// Form is a form in which the fields of an operator are written.
type Form uint8

// The forms.
const (
	WireForm      Form = iota // the bytes of a program
	TextForm                  // for people
	CanonicalForm             // of which a job's digest is taken
)

// Fields is told the parameters of an operator, one by one. A writer reads them, and a reader sets them.
type Fields interface {
	Form() Form
	// Kind is the kind of the values that the operator takes; 0 in the wire form, which does not depend on it.
	Kind() Kind
	// Shows reports whether fields that matter only under a condition are told: always in the wire form.
	Shows(condition bool) bool

	Int64(name string, v *int64)
	Uint32(name string, v *uint32)
	Uint8(name string, v *uint8)
	Float32(name string, v *float32)
	Float64(name string, v *float64)
	// Real is a real number of the kind of the values: a float64 on the wire.
	Real(name string, v *float64)
	// Choice is an enumeration of one byte; word is the name of its value.
	Choice(name string, v *uint8, word string)
	// Bool is of the wire form only: the fields that it governs are told or not.
	Bool(v *bool)
	// Reserved are bytes of the wire form that are 0.
	Reserved(n int)

	// Integers are a table. An empty one is an error, unless it is optional.
	Integers(name string, v *[]int64, optional bool)
	// Borders are a table of one of three kinds.
	Borders(name string, f32 *[]float32, f64 *[]float64, ints *[]int64)

	// Digest is a SHA-256.
	Digest(name string, v *[32]byte)
	// Kinds are a fixed number of kinds, of which those that are not 0 come first.
	Kinds(name string, v []Kind)
	// Text is text of at most size bytes, which the wire form fills up with zeros.
	Text(name string, v *string, size int)
}

// Input is what a chain gives an operator.
type Input struct {
	Kind    Kind
	List    bool
	checked checkedLists
}

// checkedLists are lists of numbers that were found right.
type checkedLists map[tableKey]bool

// tableKey names the memory of a list of numbers. Many operators may share one list, which is then checked once.
// Otherwise the check of a small program with many operators over one large list would take long.
type tableKey struct {
	first any // pointer to the first number
	n     int
	use   string
}

// CheckOnce calls check for a list that is not empty, unless the same memory was found right before for the same use.
func CheckOnce[T int64 | float32 | float64](in Input, use string, list []T, check func() error) error {
	key := tableKey{&list[0], len(list), use}
	if in.checked[key] {
		return nil
	}
	err := check()
	if err == nil && in.checked != nil {
		in.checked[key] = true
	}
	return err
}

// What follows are properties that few operators have.
type (
	// denseEnd ends the chain of a dense sink and makes several neighbouring columns, of which the sink's index is the
	// first.
	denseEnd interface {
		DenseColumns() uint32
		EndsLists() bool // it makes the columns of a list
	}
	// idMover makes each id of several ids, or leaves out others than the last ids of a list. The scores would belong to
	// no id, or to another.
	idMover interface{ MovesIDs() bool }
	// singleton may stand only once in a chain.
	singleton interface {
		// OncePerChain returns why, or nothing.
		OncePerChain() string
	}
	// filler fills lists up to a length, or to 0.
	filler interface{ FillsUpTo() int64 }
	// lookupUser names a lookup table of the program.
	lookupUser interface{ LookupTable() uint32 }
	// moduleUser names a WebAssembly module.
	moduleUser interface{ WasmModule() ModuleDigest }
	// resizer makes lists of another length than those that it takes.
	resizer interface{ ElementsOf(n uint64) uint64 }
	// combiningResizer makes lists of another length than that of its first input.
	combiningResizer interface {
		ElementsOf(inputs []uint64) uint64
	}
	// valuesRule says what values are made of those that are taken. Without it nothing is known of them.
	valuesRule interface {
		ValuesOf(in Kind, v Values) Values
	}
	// unitKeeper yields values that count what the values before counted, as seconds.
	unitKeeper interface{ KeepsUnit() bool }
	// unsignedReader says how it reads an unsigned integer of 64 bits. Without it: as a number.
	unsignedReader interface{ ReadsUnsigned() UnsignedUse }
	// newcomer came with a minor version of the wire form.
	newcomer interface{ WireMinor() uint16 }
)

// movesIDs reports whether an operator is an idMover.
func movesIDs(op Op) bool {
	m, ok := op.(idMover)
	return ok && m.MovesIDs()
}

// MovesIDs returns the name of the first operator that makes each id of several ids, or leaves out others than the last
// ids of a list, so that scores would belong to no id, or to another; empty if there is none.
func MovesIDs(ops []Op) string {
	for _, op := range ops {
		if movesIDs(op) {
			return op.Unit().String()
		}
	}
	return ""
}

// ElementsBehind returns how many elements a chain makes of a list of n at most, without those with which it fills
// lists up.
func ElementsBehind(ops []Op, n uint64) uint64 {
	for _, op := range ops {
		if r, ok := op.(resizer); ok {
			n = r.ElementsOf(n)
		}
	}
	return n
}

// ElementsOf returns how many elements an operator makes at most of a row in which its inputs have so many.
func ElementsOf(c Combiner, inputs []uint64) uint64 {
	if r, ok := c.(combiningResizer); ok {
		return r.ElementsOf(inputs)
	}
	return inputs[0]
}

// minorOf returns the least minor version of the wire form that has an operator.
func minorOf(op any) uint16 {
	if n, ok := op.(newcomer); ok {
		return n.WireMinor()
	}
	return 0
}

// denseEnd returns the last operator of a sink if it makes several columns, or nil.
func (s *Sink) denseEnd() denseEnd {
	if len(s.Ops) == 0 {
		return nil
	}
	end, _ := s.Ops[len(s.Ops)-1].(denseEnd)
	return end
}

// denseColumns returns how many neighbouring columns of dense a dense sink writes.
func (s *Sink) denseColumns() uint32 {
	if end := s.denseEnd(); end != nil {
		return end.DenseColumns()
	}
	return 1
}

// checkOp checks one operator and the values that it gets.
func checkOp(op Op, in Input) error {
	if isNil(op) {
		return fmt.Errorf("is nil")
	}
	if t := reflect.TypeOf(op); t.Kind() == reflect.Pointer && t.Elem().Implements(reflect.TypeFor[Op]()) {
		return fmt.Errorf("%v: is a pointer, want the operator itself", op.Unit())
	}
	if err := op.Check(in); err != nil {
		return fmt.Errorf("%v: %w", op.Unit(), err)
	}
	if op.Out(in.Kind) == 0 {
		return fmt.Errorf("%v does not take %v", op.Unit(), in.Kind)
	}
	return nil
}

// isNil reports whether an operator is nil, or a pointer that is nil.
func isNil(op any) bool {
	if op == nil {
		return true
	}
	v := reflect.ValueOf(op)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// NumericKind returns the kind if its values are numbers, else 0.
func NumericKind(in Kind) Kind {
	if in == Int64 || in == Float32 || in == Float64 {
		return in
	}
	return 0
}

// KindIf returns out if in is want, else 0.
func KindIf(in, want, out Kind) Kind {
	if in == want {
		return out
	}
	return 0
}
