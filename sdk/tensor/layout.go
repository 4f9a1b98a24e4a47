package tensor

import "fmt"

// Align is the boundary, in bytes, at which each tensor of a Layout starts, and at which a frame's data starts.
const Align = 64

// Names of the tensors, in frames and layouts.
const (
	TensorValues  = "kjt.values"
	TensorDense   = "dense"
	TensorLengths = "kjt.lengths"
	TensorInverse = "kjt.inverse"
	TensorLabel   = "label"
	TensorWeights = "kjt.weights"
)

// maxTensors is the most tensors of a mini-batch.
const maxTensors = 6

// Extent says where one tensor lies. Offsets count from the start of the mini-batch's data.
type Extent struct {
	Name   string
	DType  DType
	Shape  []int64 // one or two dimensions
	Offset int64   // bytes
	Bytes  int64
}

// Extents are the tensors of one mini-batch in their fixed order: kjt.values, dense, kjt.lengths, kjt.inverse, label,
// kjt.weights. A dense tensor of bfloat16 comes last, since an odd number of its elements would leave the others
// unaligned. Extents list the schema's tensors, those without elements included.
type Extents struct {
	Tensors []Extent
	Bytes   int64 // from the first tensor's start to the last one's end
}

// Find returns the extent of the named tensor.
func (e *Extents) Find(name string) (Extent, bool) {
	for _, t := range e.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Extent{}, false
}

// Layout returns the output layout of a mini-batch in a drive's memory: each tensor at the next 64-byte boundary, in
// the order of Extents. rows and values are the mini-batch's numbers of rows and of sparse values. A Fixed schema needs
// values = rows x keys. Errors wrap ErrShape.
func Layout(s *Schema, rows, values int) (Extents, error) { return layout(s, rows, values, nil, Align) }

// Packed is Layout without gaps, as in a frame. The order of the tensors keeps every element at a multiple of its size.
func Packed(s *Schema, rows, values int) (Extents, error) { return layout(s, rows, values, nil, 1) }

// layout lays out a mini-batch. unique is the number of different rows of each set of keys, or nil for a mini-batch
// that is not deduplicated.
func layout(s *Schema, rows, values int, unique []int32, align int64) (Extents, error) {
	f, d := len(s.Keys), len(s.Dense)
	keyRows := int64(f) * int64(rows) // of all keys together
	if unique != nil {
		if err := checkUnique(s, rows, unique); err != nil {
			return Extents{}, err
		}
		keyRows = 0
		for i := range s.Keys {
			keyRows += int64(rowsOfKey(s, i, rows, unique))
		}
	}
	switch {
	case rows < 0 || rows > MaxRows:
		return Extents{}, fmt.Errorf("%w: %d rows, at most %d", ErrShape, rows, MaxRows)
	case values < 0 || int64(values) > MaxValues:
		return Extents{}, fmt.Errorf("%w: %d values, at most %d", ErrShape, values, int64(MaxValues))
	case d > MaxDense || f > MaxKeys:
		return Extents{}, fmt.Errorf("%w: %d dense features and %d keys, at most %d and %d", ErrShape, d, f, MaxDense,
			MaxKeys)
	case s.Fixed() && int64(values) != keyRows:
		return Extents{}, fmt.Errorf("%w: %d values for %d rows of %d keys with one id each", ErrShape, values, rows, f)
	case f > 0 && s.IDs != Int32 && s.IDs != Int64:
		return Extents{}, fmt.Errorf("%w: ids are %v, want int32 or int64", ErrShape, s.IDs)
	case d > 0 && s.DenseDType() != Float32 && s.DenseDType() != BFloat16:
		return Extents{}, fmt.Errorf("%w: dense is %v, want float32 or bfloat16", ErrShape, s.DenseDType())
	}
	e := Extents{Tensors: make([]Extent, 0, maxTensors)}
	dimensions := make([]int64, 0, 2*maxTensors) // of all shapes
	add := func(name string, dtype DType, shape ...int64) {
		size := int64(dtype.Size())
		for _, dimension := range shape {
			size *= dimension
		}
		offset := (e.Bytes + align - 1) / align * align
		first := len(dimensions)
		dimensions = append(dimensions, shape...)
		e.Tensors = append(e.Tensors, Extent{
			Name: name, DType: dtype, Shape: dimensions[first:len(dimensions):len(dimensions)], Offset: offset, Bytes: size,
		})
		e.Bytes = offset + size
	}
	if f > 0 {
		add(TensorValues, s.IDs, int64(values))
	}
	if d > 0 && s.DenseDType() == Float32 {
		add(TensorDense, Float32, int64(rows), int64(d))
	}
	switch {
	case f == 0 || s.Fixed():
	case unique != nil:
		add(TensorLengths, Int32, keyRows)
	default:
		add(TensorLengths, Int32, int64(f), int64(rows))
	}
	if unique != nil {
		add(TensorInverse, Int32, int64(len(unique)), int64(rows))
	}
	if s.Label {
		add(TensorLabel, Float32, int64(rows))
	}
	if s.Weights && f > 0 {
		add(TensorWeights, Float32, int64(values))
	}
	if d > 0 && s.DenseDType() == BFloat16 {
		add(TensorDense, BFloat16, int64(rows), int64(d))
	}
	return e, nil
}
