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
	// Fields calls a method of f for each parameter, in the order of the wire form.
	Fields(f Fields)
}

// Combiner is an operator of one or several inputs, whose whole values of a row it takes, and of which it makes one
// value. A combiner that takes ids takes them without their scores. Each combiner is a package below fpga/operator.
type Combiner interface {
	Unit() Unit
	// Yield returns the type of the value that the operator makes of inputs; ok is false if the operator does not take
	// these inputs.
	Yield(inputs []ValueType) (out ValueType, ok bool)
	// Check checks the parameters.
	Check() error
	// Fields calls a method of f for each parameter, in the order of the wire form.
	Fields(f Fields)
}

// Definition is what a build knows about a unit that operates on values.
type Definition struct {
	Unit    Unit
	Name    string // The name that pipelines and images write.
	Version uint16 // The version of the unit that this build writes and reads.
	// Read returns the operator with the parameters that f sets. Read is nil if the operator is a Combiner.
	Read func(f Fields) Op
	// ReadCombiner returns the combiner with the parameters that f sets. ReadCombiner is nil if the operator is an Op.
	ReadCombiner func(f Fields) Combiner
	// Args, In and Out are the unit's arguments and the kinds of its inputs and its output, as an image lists them.
	Args, In []string
	Out      string
}

// Operators finds the definition of a unit; ok is false if the build has none.
type Operators func(u Unit) (d Definition, ok bool)

// Form is a form in which the fields of an operator are written.
type Form uint8

// The forms.
const (
	WireForm      Form = iota // WireForm is the bytes of a program.
	TextForm                  // TextForm is for people.
	CanonicalForm             // CanonicalForm is hashed into a job's digest.
)

// Fields visits the parameters of an operator, which calls one method for each of its parameters. A writer reads the
// parameters through the pointers, and a reader sets them.
type Fields interface {
	// Form returns the form that is written or read.
	Form() Form
	// Kind returns the kind of the values that the operator takes. It returns 0 for the wire form, in which an operator
	// has the same fields for every kind.
	Kind() Kind
	// Shows reports whether the form has the fields that an operator needs only under a condition. The wire form always
	// has them; the other forms have them if the condition holds.
	Shows(condition bool) bool

	Int64(name string, v *int64)
	Uint32(name string, v *uint32)
	Uint8(name string, v *uint8)
	Float32(name string, v *float32)
	Float64(name string, v *float64)
	// Real visits a real number of the values' kind. The wire form writes it as a float64.
	Real(name string, v *float64)
	// Choice visits an enumeration of one byte. word is the name of the value.
	Choice(name string, v *uint8, word string)
	// Bool visits a flag that only the wire form writes. The other forms show it by the fields that they leave out.
	Bool(v *bool)
	// Reserved visits bytes of the wire form that must be 0.
	Reserved(n int)

	// Integers visits a table. A reader refuses an empty table that is not optional.
	Integers(name string, v *[]int64, optional bool)
	// Texts visits a table of texts. A reader refuses a table of something else.
	Texts(name string, v *[]string)
	// Borders visits a table, of which one of the three lists is set.
	Borders(name string, f32 *[]float32, f64 *[]float64, ints *[]int64)

	// Digest visits a SHA-256.
	Digest(name string, v *[32]byte)
	// Kinds visits a fixed number of kinds. Unused places at the end are 0.
	Kinds(name string, v []Kind)
	// Text visits a text of at most size bytes. The wire form fills it up with zeros.
	Text(name string, v *string, size int)
}

// Input describes the values that a chain gives an operator.
type Input struct {
	Kind    Kind
	List    bool
	checked checkedLists
}

// checkedLists remembers the lists of numbers that passed a check.
type checkedLists map[tableKey]bool

// tableKey names the memory of a list of numbers. Many operators may share one list, which is then checked once.
// Otherwise the check of a small program with many operators over one large list would take long.
type tableKey struct {
	first any // pointer to the first number
	n     int
	use   string
}

// CheckOnce calls check for a list of numbers or texts, unless a list in the same memory passed the check of the same
// use before.
func CheckOnce[T int64 | float32 | float64 | string](in Input, use string, list []T, check func() error) error {
	if len(list) == 0 {
		return check()
	}
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

// Some operators implement one of these interfaces beside Op or Combiner.
type (
	// denseEnd is the last operator of a dense sink's chain. It makes several neighbouring dense columns, and the sink's
	// index is the number of the first.
	denseEnd interface {
		DenseColumns() uint32
		EndsLists() bool // EndsLists reports whether the operator takes lists.
	}
	// idMover is an operator behind which scores cannot be matched with ids: it makes an id of several ids, or removes ids
	// that are not the last of their list.
	idMover interface{ MovesIDs() bool }
	// singleton is an operator that a chain may have only once.
	singleton interface {
		// OncePerChain returns the property that forbids a second one, or an empty text if nothing does.
		OncePerChain() string
	}
	// filler is an operator that fills lists up. FillsUpTo returns the length, or 0 if the parameters fill nothing up.
	filler interface{ FillsUpTo() int64 }
	// lookupUser is an operator that uses a lookup table of the program.
	lookupUser interface{ LookupTable() uint32 }
	// moduleUser is a combiner that calls a WebAssembly module.
	moduleUser interface{ WasmModule() ModuleDigest }
	// resizer is an operator that changes the lengths of lists. MostElements returns the greatest length of a list that
	// the operator makes of a list of n elements.
	resizer interface{ MostElements(n uint64) uint64 }
	// combiningResizer is a combiner whose lists do not have the length of its first input. MostElements returns the
	// greatest length of a list that the combiner makes of one row's inputs.
	combiningResizer interface {
		MostElements(inputs []Extent) uint64
	}
	// valuesRule is an operator that preserves knowledge about its values. Nothing is known of the values behind an
	// operator that is not a valuesRule.
	valuesRule interface {
		ValuesOf(in Kind, v Values) Values
	}
	// unitKeeper is an operator whose values count the same thing as the values that it takes, as seconds.
	unitKeeper interface{ KeepsUnit() bool }
	// unsignedReader is an operator that does not read an unsigned integer of 64 bits as an int64.
	unsignedReader interface{ ReadsUnsigned() UnsignedUse }
	// versioned is an operator that needs a minor version of the wire form.
	versioned interface{ WireMinor() uint16 }
)

// movesIDs reports whether scores cannot be matched with ids behind an operator.
func movesIDs(op Op) bool {
	m, ok := op.(idMover)
	return ok && m.MovesIDs()
}

// MovesIDs returns the name of the first operator of a chain behind which scores cannot be matched with ids, because
// the operator makes an id of several ids or removes ids that are not the last of their list. MovesIDs returns an empty
// text if the chain has no such operator.
func MovesIDs(ops []Op) string {
	for _, op := range ops {
		if movesIDs(op) {
			return op.Unit().String()
		}
	}
	return ""
}

// MostElements returns the greatest length of a list that a chain makes of a list of n elements. Elements that fill
// lists up are not counted.
func MostElements(ops []Op, n uint64) uint64 {
	for _, op := range ops {
		if r, ok := op.(resizer); ok {
			n = r.MostElements(n)
		}
	}
	return n
}

// Extent is how much a value has in one row: Elements is 1 for a scalar, and Bytes is what all strings of bytes of the
// row have together, 0 for numbers.
type Extent struct{ Elements, Bytes uint64 }

// MostCombined returns the greatest extent of what a combiner makes of one row's inputs, or, if c is nil, the extent of
// the only input. No combiner makes more bytes than its inputs have.
func MostCombined(c Combiner, inputs []Extent) Extent {
	most := inputs[0]
	if c == nil {
		return most
	}
	for _, in := range inputs[1:] {
		most.Bytes += in.Bytes
	}
	if r, ok := c.(combiningResizer); ok {
		most.Elements = r.MostElements(inputs)
	}
	return most
}

// MinorOf returns the least minor version of the wire form that can express an operator.
func MinorOf(op any) uint16 {
	if n, ok := op.(versioned); ok {
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

// EndsLists reports whether the last operator makes dense columns of lists.
func (s *Sink) EndsLists() bool {
	end := s.denseEnd()
	return end != nil && end.EndsLists()
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
	if IsNil(op) {
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

// IsNil reports whether an operator is nil, or a pointer that is nil.
func IsNil(op any) bool {
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
