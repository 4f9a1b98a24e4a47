package tensor

import (
	"encoding/binary"
	"unsafe"
)

// Element is a type of tensor elements.
type Element interface {
	float32 | int32 | int64 | uint16
}

// bigEndian reports whether the machine's byte order differs from that of the formats. Bytes and View make copies
// then.
var bigEndian = binary.NativeEndian.Uint16([]byte{1, 0}) != 1

// Bytes returns the little-endian bytes of v: a view of its memory, or a copy on big-endian machines.
func Bytes[T Element](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(v[0]))
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*size)
	if bigEndian {
		return swapped(b, size)
	}
	return b
}

// View returns little-endian bytes as elements: a view of b if b is aligned to an element (64-byte aligned memory
// always is), and a copy otherwise and on big-endian machines. It ignores bytes after the last whole element.
func View[T Element](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	n := len(b) / size
	if n == 0 {
		return nil
	}
	b = b[: n*size : n*size]
	if bigEndian {
		b = swapped(b, size)
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%uintptr(size) == 0 {
		return unsafe.Slice((*T)(p), n)
	}
	v := make([]T, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), n*size), b)
	return v
}

// swapped returns a copy with the bytes of each element reversed.
func swapped(b []byte, size int) []byte {
	out := make([]byte, len(b))
	for i := 0; i+size <= len(b); i += size {
		for k := range size {
			out[i+k] = b[i+size-1-k]
		}
	}
	return out
}

// views returns the bytes of each tensor in the order of Extents.
func (m *MiniBatch) views(e Extents) [][]byte {
	out := make([][]byte, len(e.Tensors))
	for i, t := range e.Tensors {
		switch t.Name {
		case TensorValues:
			if t.DType == Int32 {
				out[i] = Bytes(m.Values32)
			} else {
				out[i] = Bytes(m.Values64)
			}
		case TensorDense:
			if t.DType == BFloat16 {
				out[i] = Bytes(m.Dense16)
			} else {
				out[i] = Bytes(m.Dense)
			}
		case TensorLengths:
			out[i] = Bytes(m.Lengths)
		case TensorInverse:
			out[i] = Bytes(m.Inverse)
		case TensorLabel:
			out[i] = Bytes(m.Label)
		case TensorWeights:
			out[i] = Bytes(m.Weights)
		}
	}
	return out
}

// FromMemory returns a mini-batch whose tensors are views of mem, laid out as e says (Layout for a drive's memory,
// Packed for a frame's data, or a layout of the caller's own with the same tensors). release is called on the last
// Release. FromMemory checks every extent against the schema and mem, but does not check the tensors' content: call
// Validate if mem is not trusted. The error wraps ErrShape.
func FromMemory(s *Schema, rows, values int, mem []byte, e Extents, release func()) (*MiniBatch, error) {
	return fromMemory(s, rows, values, nil, mem, e, release)
}

// fromMemory does the work of FromMemory. unique is the number of different rows of each set of keys, or nil for a
// mini-batch that is not deduplicated.
func fromMemory(s *Schema, rows, values int, unique []int32, mem []byte, e Extents,
	release func()) (*MiniBatch, error) {
	want, err := layout(s, rows, values, unique, 1)
	if err != nil {
		return nil, err
	}
	if err := sameTensors(e, want); err != nil {
		return nil, err
	}
	m := New(s, rows, release)
	m.Unique = unique
	for _, t := range e.Tensors {
		if t.Offset < 0 || t.Bytes > int64(len(mem)) || t.Offset > int64(len(mem))-t.Bytes {
			return nil, shapeError("%s lies at [%d, %d) of %d bytes", t.Name, t.Offset, t.Offset+t.Bytes, len(mem))
		}
		b := mem[t.Offset : t.Offset+t.Bytes]
		switch t.Name {
		case TensorValues:
			if t.DType == Int32 {
				m.Values32 = View[int32](b)
			} else {
				m.Values64 = View[int64](b)
			}
		case TensorDense:
			if t.DType == BFloat16 {
				m.Dense16 = View[uint16](b)
			} else {
				m.Dense = View[float32](b)
			}
		case TensorLengths:
			m.Lengths = View[int32](b)
		case TensorInverse:
			m.Inverse = View[int32](b)
		case TensorLabel:
			m.Label = View[float32](b)
		case TensorWeights:
			m.Weights = View[float32](b)
		}
	}
	return m, nil
}
