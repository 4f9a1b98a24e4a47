package format

import (
	"errors"
	"fmt"
	"strings"
)

// ErrModule says that a module is damaged, or has what operators may not have.
var ErrModule = errors.New("module refused")

// ModuleError names what is wrong with a module.
type ModuleError struct {
	Offset int // byte of the module; -1: the fault has no place
	Detail string
}

func (e *ModuleError) Error() string {
	if e.Offset < 0 {
		return "wasm module: " + e.Detail
	}
	return fmt.Sprintf("wasm module: byte %d: %s", e.Offset, e.Detail)
}

// Unwrap returns ErrModule.
func (e *ModuleError) Unwrap() error { return ErrModule }

func moduleError(format string, args ...any) error {
	return &ModuleError{Offset: -1, Detail: fmt.Sprintf(format, args...)}
}

// Kind is the kind of a value that an operator takes or yields.
type Kind uint8

// The kinds of values: i64, f32 and f64 of WebAssembly.
const (
	Int64 Kind = iota + 1
	Float32
	Float64
)

// Types of values in modules.
const (
	typeI32 byte = 0x7f
	typeI64 byte = 0x7e
	typeF32 byte = 0x7d
	typeF64 byte = 0x7c
)

// kindTypes has the types of values, and the operations that read and write them.
var kindTypes = map[Kind]struct {
	name          string
	wasm          byte
	shift, opLoad byte
	opStore       byte
}{
	Int64:   {"int64", typeI64, 3, 0x29, 0x37},
	Float32: {"float32", typeF32, 2, 0x2a, 0x38},
	Float64: {"float64", typeF64, 3, 0x2b, 0x39},
}

// String returns the kind's name as pipelines write it.
func (k Kind) String() string {
	if t, ok := kindTypes[k]; ok {
		return t.name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Bytes returns the size of a value of the kind.
func (k Kind) Bytes() uint32 { return 1 << kindTypes[k].shift }

// Signature is what an operator takes and yields.
type Signature struct {
	In  []Kind // 1 to MaxInputs
	Out Kind
}

// Check checks a signature's kinds and their number.
func (s Signature) Check() error {
	if len(s.In) == 0 || len(s.In) > MaxInputs {
		return moduleError("an operator of %d inputs, want 1 to %d", len(s.In), MaxInputs)
	}
	for _, k := range append([]Kind{s.Out}, s.In...) {
		if _, ok := kindTypes[k]; !ok {
			return moduleError("an operator of %v, want int64, float32 or float64", k)
		}
	}
	return nil
}

// String renders (int64, float32) -> int64.
func (s Signature) String() string {
	var in []string
	for _, k := range s.In {
		in = append(in, k.String())
	}
	return "(" + strings.Join(in, ", ") + ") -> " + s.Out.String()
}
