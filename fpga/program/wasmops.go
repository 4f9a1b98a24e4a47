package program

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// MaxFunctionName is the longest name of a function of a module, in bytes.
const MaxFunctionName = 64

// ModuleDigest is the SHA-256 of a WebAssembly module, which identifies it.
type ModuleDigest [32]byte

// String returns the digest in hexadecimal.
func (d ModuleDigest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hexadecimal.
func (d ModuleDigest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (d *ModuleDigest) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return fmt.Errorf("module digest: %d characters, want %d hexadecimal digits", len(b), 2*len(d))
	}
	var v ModuleDigest
	if _, err := hex.Decode(v[:], b); err != nil {
		return fmt.Errorf("module digest: %w", err)
	}
	*d = v
	return nil
}

// Modules are the WebAssembly modules that an engine can run. Nothing changes them while an engine uses them.
type Modules map[ModuleDigest][]byte

// Wasm calls an exported function of a WebAssembly module for each row. Its inputs are scalars of the kinds In, of
// which those that are not 0 come first; it yields a scalar of kind Out, which is null if an input is.
type Wasm struct {
	Module   ModuleDigest
	Function string // 1 to MaxFunctionName bytes
	In       [MaxInputs]Kind
	Out      Kind
}

// wasmSize is the length of the parameters of Wasm.
const wasmSize = 32 + MaxInputs + 8 + MaxFunctionName

// Inputs returns the kinds of the inputs.
func (o Wasm) Inputs() []Kind {
	for i, k := range o.In {
		if k == 0 {
			return o.In[:i:i]
		}
	}
	return o.In[:]
}

// Unit implements [Combiner].
func (Wasm) Unit() Unit { return UnitWasm }

// Yield implements [Combiner].
func (o Wasm) Yield(inputs []ValueType) (ValueType, bool) {
	want := o.Inputs()
	if len(inputs) != len(want) {
		return ValueType{}, false
	}
	for i, in := range inputs {
		if in.List || in.Kind != want[i] {
			return ValueType{}, false
		}
	}
	return ValueType{Kind: o.Out}, true
}

// String renders f of module 0123456789ab (int64, float32) -> int64.
func (o Wasm) String() string {
	var in []string
	for _, k := range o.Inputs() {
		in = append(in, k.String())
	}
	return fmt.Sprintf("%.*q of module %.12s (%s) -> %v", MaxFunctionName, o.Function, o.Module, strings.Join(in, ", "),
		o.Out)
}

// check checks the parameters.
func (o Wasm) check() error {
	if len(o.Function) == 0 || len(o.Function) > MaxFunctionName || strings.ContainsRune(o.Function, 0) {
		return fmt.Errorf("a function's name of %d bytes, want 1 to %d and no NUL", len(o.Function), MaxFunctionName)
	}
	if numericKind(o.Out) == 0 {
		return fmt.Errorf("a value of %v, want a number", o.Out)
	}
	in := o.Inputs()
	if len(in) == 0 {
		return fmt.Errorf("no inputs, want 1 to %d", MaxInputs)
	}
	for i, k := range o.In {
		if i < len(in) && numericKind(k) == 0 || i >= len(in) && k != 0 {
			return fmt.Errorf("input %d of %v, want numbers and nothing between them", i, k)
		}
	}
	return nil
}

// appendTo appends the parameters.
func (o Wasm) appendTo(b []byte) []byte {
	b = append(b, o.Module[:]...)
	for _, k := range o.In {
		b = append(b, byte(k))
	}
	b = append(b, byte(o.Out), byte(len(o.Function)), 0, 0, 0, 0, 0, 0)
	var name [MaxFunctionName]byte
	copy(name[:], o.Function)
	return append(b, name[:]...)
}

// readWasm reads the parameters.
func readWasm(r *reader, b []byte) Combiner {
	var o Wasm
	copy(o.Module[:], b)
	b = b[len(o.Module):]
	for i := range o.In {
		o.In[i] = Kind(b[i])
	}
	b = b[MaxInputs:]
	o.Out = Kind(b[0])
	n := int(b[1])
	r.checkZeros(b[2:8], "wasm")
	if b = b[8:]; n > len(b) {
		r.failCorrupt("wasm: a name of %d bytes, want at most %d", n, len(b))
		return nil
	}
	o.Function = string(b[:n])
	r.checkZeros(b[n:], "wasm")
	return o
}

// WasmModules returns the digests of the modules that the program's steps use, in order of first use, each once.
func (p *Program) WasmModules() []ModuleDigest {
	var list []ModuleDigest
	seen := map[ModuleDigest]bool{}
	for i := range p.Graphs {
		for j := range p.Graphs[i].Steps {
			if o, ok := p.Graphs[i].Steps[j].Combine.(Wasm); ok && !seen[o.Module] {
				seen[o.Module] = true
				list = append(list, o.Module)
			}
		}
	}
	return list
}
