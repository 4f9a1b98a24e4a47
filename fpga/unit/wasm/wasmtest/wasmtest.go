// Package wasmtest writes small WebAssembly modules for tests, byte by byte, so that tests need no compiler.
package wasmtest

import (
	"encoding/binary"
	"math"
)

// Types of values.
const (
	I32 byte = 0x7f
	I64 byte = 0x7e
	F32 byte = 0x7d
	F64 byte = 0x7c
)

// Function is a function of a module.
type Function struct {
	Name    string // Name is that of the export; empty: it is not exported.
	Params  []byte
	Results []byte
	Locals  []byte
	Code    []byte // without the end
}

// Global is a mutable variable of a module.
type Global struct {
	Type byte
	Init []byte // an instruction, without the end
}

// Module is a module.
type Module struct {
	Functions []Function
	Bodies    [][]byte // Bodies are those of further functions () -> (), with their locals and the end.
	Globals   []Global
	Pages     uint32 // Pages of memory; 0: none.
	Data      []byte // from address 0 on
	Sections  []byte // whole sections, before the functions' types
}

// Bytes returns the module.
func (m Module) Bytes() []byte {
	var types, functions, exports, bodies []byte
	named := 0
	for i, f := range m.Functions {
		types = append(appendVector(append(types, 0x60), f.Params), byte(len(f.Results)))
		types = append(types, f.Results...)
		functions = Unsigned(functions, uint64(i))
		if f.Name != "" {
			named++
			exports = Unsigned(append(appendVector(exports, []byte(f.Name)), 0), uint64(i))
		}
		body := Unsigned(nil, uint64(len(f.Locals)))
		for _, l := range f.Locals {
			body = append(body, 1, l)
		}
		bodies = appendVector(bodies, append(append(body, f.Code...), 0x0b))
	}
	all, kinds := len(m.Functions)+len(m.Bodies), len(m.Functions)
	for _, body := range m.Bodies {
		functions = Unsigned(functions, uint64(kinds))
		bodies = appendVector(bodies, body)
	}
	if len(m.Bodies) > 0 {
		types, kinds = append(types, 0x60, 0, 0), kinds+1
	}
	b := append([]byte("\x00asm\x01\x00\x00\x00"), section(1, kinds, types)...)
	b = append(b, m.Sections...)
	b = append(b, section(3, all, functions)...)
	if m.Pages > 0 {
		b = append(b, section(5, 1, Unsigned([]byte{0}, uint64(m.Pages)))...)
	}
	var globals []byte
	for _, g := range m.Globals {
		globals = append(append(append(globals, g.Type, 1), g.Init...), 0x0b)
	}
	b = append(b, section(6, len(m.Globals), globals)...)
	b = append(b, section(7, named, exports)...)
	b = append(b, section(10, all, bodies)...)
	if len(m.Data) > 0 {
		b = append(b, section(11, 1, appendVector([]byte{0, 0x41, 0, 0x0b}, m.Data))...)
	}
	return b
}

func section(id byte, n int, content []byte) []byte {
	return appendVector([]byte{id}, append(Unsigned(nil, uint64(n)), content...))
}

func appendVector(b, content []byte) []byte {
	return append(Unsigned(b, uint64(len(content))), content...)
}

// Unsigned appends an unsigned LEB128 number.
func Unsigned(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

// Signed appends a signed LEB128 number.
func Signed(b []byte, n int64) []byte {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Code joins instructions.
func Code(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// Op returns instructions without immediates, or with immediates of a byte each.
func Op(ops ...byte) []byte { return ops }

// Get returns local.get.
func Get(local uint64) []byte { return Unsigned([]byte{0x20}, local) }

// ConstI32 returns i32.const.
func ConstI32(n int32) []byte { return Signed([]byte{0x41}, int64(n)) }

// ConstI64 returns i64.const.
func ConstI64(n int64) []byte { return Signed([]byte{0x42}, n) }

// ConstF32 returns f32.const of bits.
func ConstF32(bits uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{0x43}, bits) }

// ConstF64 returns f64.const.
func ConstF64(x float64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0x44}, math.Float64bits(x))
}

// Access returns a load or a store at a constant offset.
func Access(op byte, offset uint64) []byte { return Unsigned([]byte{op, 0}, offset) }
