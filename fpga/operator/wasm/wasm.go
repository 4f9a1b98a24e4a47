// Package wasm is the operator wasm: its parameters, and what they may be.
package wasm

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// Op calls an exported function of a WebAssembly module for each row. Its inputs are scalars of the kinds In, of which
// those that are not 0 come first; it yields a scalar of kind Out, which is null if an input is.
type Op struct {
	Module   program.ModuleDigest
	Function string // 1 to MaxName bytes
	In       [program.MaxInputs]program.Kind
	Out      program.Kind
}

// Unit is the number of the unit on the wire.
const Unit program.Unit = 57

// Definition is what a build knows about the operator.
var Definition = program.Definition{
	Unit: Unit, Name: "wasm", Version: 1,
	ReadCombiner: func(f program.Fields) program.Combiner {
		var o Op
		o.setFields(f)
		return o
	},
	Args: []string{"module", "function", "in", "out"}, In: []string{"int64", "float32", "float64"}, Out: "number",
}

// Unit implements [program.Combiner].
func (Op) Unit() program.Unit { return Unit }

// Fields implements [program.Combiner].
func (o Op) Fields(f program.Fields) { o.setFields(f) }

func (o *Op) setFields(f program.Fields) {
	if f.Form() == program.WireForm {
		f.Digest("module", (*[32]byte)(&o.Module))
		f.Kinds("in", o.In[:])
		f.Choice("out", (*uint8)(&o.Out), "")
		f.Text("function", &o.Function, MaxName)
		return
	}
	f.Digest("module", (*[32]byte)(&o.Module))
	f.Text("function", &o.Function, MaxName)
	f.Kinds("in", o.In[:])
	f.Choice("out", (*uint8)(&o.Out), o.Out.String())
}

// Check implements [program.Combiner].
func (o Op) Check() error {
	if len(o.Function) == 0 || len(o.Function) > MaxName || strings.ContainsRune(o.Function, 0) {
		return fmt.Errorf("a function's name of %d bytes, want 1 to %d and no NUL", len(o.Function), MaxName)
	}
	if program.NumericKind(o.Out) == 0 {
		return fmt.Errorf("a value of %v, want a number", o.Out)
	}
	in := o.Inputs()
	if len(in) == 0 {
		return fmt.Errorf("no inputs, want 1 to %d", program.MaxInputs)
	}
	for i, k := range o.In {
		if i < len(in) && program.NumericKind(k) == 0 || i >= len(in) && k != 0 {
			return fmt.Errorf("input %d of %v, want numbers and nothing between them", i, k)
		}
	}
	return nil
}

// Yield implements [program.Combiner].
func (o Op) Yield(inputs []program.ValueType) (program.ValueType, bool) {
	want := o.Inputs()
	if len(inputs) != len(want) {
		return program.ValueType{}, false
	}
	for i, in := range inputs {
		if in.List || in.Kind != want[i] {
			return program.ValueType{}, false
		}
	}
	return program.ValueType{Kind: o.Out}, true
}

// MaxName is the longest name of a function, in bytes.
const MaxName = 64

// Inputs returns the kinds of the inputs.
func (o Op) Inputs() []program.Kind {
	for i, k := range o.In {
		if k == 0 {
			return o.In[:i:i]
		}
	}
	return o.In[:]
}

// String renders f of module 0123456789ab (int64, float32) -> int64.
func (o Op) String() string {
	var in []string
	for _, k := range o.Inputs() {
		in = append(in, k.String())
	}
	return fmt.Sprintf("%.*q of module %.12s (%s) -> %v", MaxName, o.Function, o.Module, strings.Join(in, ", "), o.Out)
}

// WasmModule returns the digest of the module.
func (o Op) WasmModule() program.ModuleDigest { return o.Module }
