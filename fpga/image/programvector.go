package image

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// DataPage puts a Thrift page header before the body of a PLAIN, uncompressed data page v1 with n values.
func DataPage(body []byte, n int) []byte {
	zigzag := func(b []byte, v int) []byte { return binary.AppendUvarint(b, uint64(v)<<1) }
	const i32, structure = 0x15, 0x2c // compact protocol: the next field, 32 bits; the second next, a struct
	h := zigzag([]byte{i32}, 0)       // DATA_PAGE
	h = zigzag(append(h, i32), len(body))
	h = zigzag(append(h, i32), len(body))
	h = zigzag(append(h, structure, i32), n)
	h = zigzag(append(h, i32), 0) // PLAIN
	h = zigzag(append(h, i32), 3) // RLE definition levels
	h = zigzag(append(h, i32), 3) // RLE repetition levels
	return append(append(h, 0, 0), body...)
}

// ProgramVector is a known answer of a program: what it makes of a slice of an input.
func ProgramVector(name string, p *program.Program, slice *program.Slice, input, out []byte) Vector {
	body := wire.Marshal(p)
	slice.Digest, slice.Program = sha256.Sum256(body), uint64(len(body))
	return Vector{
		Name: name, Units: unitsOf(p), Program: body, Input: input, Args: wire.MarshalSlice(slice),
		Scratch: 4096, Dict: 4096,
		State: uint64(program.Done), Output: out,
	}
}

// unitsOf lists the numbers of the units that a program wants.
func unitsOf(p *program.Program) []int {
	var all []int
	for _, u := range p.Units() {
		all = append(all, int(u.Unit))
	}
	return all
}
