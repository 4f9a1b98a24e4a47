package processor

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/tensor"
)

// setTensors sets a mini-batch's tensors to their places in b, which begins at a multiple of 8 bytes and holds the
// tensors little-endian, as every target of this project does.
func setTensors(m *tensor.MiniBatch, at program.OutputLayout, values uint64, b []byte) {
	s, rows := m.Schema, uint64(m.Rows)
	if s.Label {
		m.Label = typedSlice[float32](b, at.Label, rows)
	}
	if d := uint64(len(s.Dense)); d > 0 {
		if s.DenseDType() == tensor.BFloat16 {
			m.Dense16 = typedSlice[uint16](b, at.Dense, rows*d)
		} else {
			m.Dense = typedSlice[float32](b, at.Dense, rows*d)
		}
	}
	f := uint64(len(s.Keys))
	if f == 0 {
		return
	}
	if !s.Fixed() {
		m.Lengths = typedSlice[int32](b, at.Lengths, f*rows)
	}
	if s.Weights {
		m.Weights = typedSlice[float32](b, at.Weights, values)
	}
	if s.IDs == tensor.Int32 {
		m.Values32 = typedSlice[int32](b, at.Values, values)
	} else {
		m.Values64 = typedSlice[int64](b, at.Values, values)
	}
}

// typedSlice returns n elements of b from byte off on.
func typedSlice[T tensor.Element](b []byte, off, n uint64) []T {
	if n == 0 {
		return []T{}
	}
	var zero T
	part := b[off : off+n*uint64(unsafe.Sizeof(zero))]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(part))), n)
}

// alignedBytes returns n bytes that begin at a multiple of 8.
func alignedBytes(n uint64) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// bufferRun is a run of bytes of a buffer, and where it goes in a mini-batch's own memory.
type bufferRun struct{ from, to, length uint64 }

// bufferRuns returns the runs of a buffer that are copied to a mini-batch's own memory of size bytes. at is the
// layout of the tensors there.
func bufferRuns(out *program.Output, done *slicer.Done, at program.OutputLayout, size uint64) []bufferRun {
	if !out.Weights {
		return []bufferRun{{0, 0, size}}
	}
	return []bufferRun{
		{0, 0, at.Values + done.Values*out.IDs.Bytes()},
		{done.Layout.Weights, at.Weights, 4 * done.Values},
	}
}
