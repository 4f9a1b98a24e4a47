package tensor

import (
	"fmt"
	"slices"
)

// shapeError returns an error that wraps ErrShape.
func shapeError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrShape, fmt.Errorf(format, args...))
}

// sameTensors checks that e lists the tensors of want. Their offsets may differ.
func sameTensors(e, want Extents) error {
	if len(e.Tensors) != len(want.Tensors) {
		return shapeError("%d tensors, want %d", len(e.Tensors), len(want.Tensors))
	}
	for i, t := range e.Tensors {
		w := want.Tensors[i]
		if t.Name != w.Name || t.DType != w.DType || t.Bytes != w.Bytes || !slices.Equal(t.Shape, w.Shape) {
			return shapeError("tensor %d is %s %v%v, want %s %v%v", i, t.Name, t.DType, t.Shape, w.Name, w.DType,
				w.Shape)
		}
	}
	return nil
}

// Validate checks that the tensors have the shapes that the schema promises and keep the rules of TorchRec's
// KeyedJaggedTensor (torchrec/sparse/jagged_tensor_validator.py): lengths are not negative, there are keys x rows of
// them, their sum is the number of values, weights are as many as values, keys are unique. ValidateIDs checks the ids.
// The error wraps ErrShape.
func (m *MiniBatch) Validate() error {
	if err := m.Schema.Validate(); err != nil {
		return err
	}
	return m.validateTensors()
}

// validateTensors is Validate for a mini-batch whose schema is valid.
func (m *MiniBatch) validateTensors() error {
	s := m.Schema
	if m.Rows < 0 || m.Rows > MaxRows {
		return shapeError("%d rows, at most %d", m.Rows, MaxRows)
	}
	count := func(name string, have int, present bool, want int64) error {
		if !present {
			want = 0
		}
		if int64(have) != want {
			return shapeError("%s has %d elements, want %d", name, have, want)
		}
		return nil
	}
	rows, f, n := int64(m.Rows), int64(len(s.Keys)), m.Values()
	keyRows := rows * f // of all keys together
	if m.Unique != nil {
		if err := checkUnique(s, m.Rows, m.Unique); err != nil {
			return err
		}
		keyRows = 0
		for k := range s.Keys {
			keyRows += int64(m.RowsOfKey(k))
		}
	}
	hasKeys := f > 0
	for _, err := range []error{
		count(TensorLabel, len(m.Label), s.Label, rows),
		count("float32 "+TensorDense, len(m.Dense), s.DenseDType() == Float32, rows*int64(len(s.Dense))),
		count("bfloat16 "+TensorDense, len(m.Dense16), s.DenseDType() == BFloat16, rows*int64(len(s.Dense))),
		count(TensorLengths, len(m.Lengths), hasKeys && !s.Fixed(), keyRows),
		count(TensorInverse, len(m.Inverse), m.Unique != nil, rows*int64(len(m.Unique))),
		count("int32 "+TensorValues, len(m.Values32), hasKeys && s.IDs == Int32, int64(n)),
		count("int64 "+TensorValues, len(m.Values64), hasKeys && s.IDs == Int64, int64(n)),
		count(TensorWeights, len(m.Weights), s.Weights, int64(n)),
	} {
		if err != nil {
			return err
		}
	}
	if !hasKeys {
		return nil
	}
	if err := m.validateInverse(); err != nil {
		return err
	}
	if s.Fixed() {
		return count(TensorValues, n, true, keyRows)
	}
	var sum int64 // of at most MaxKeys x MaxRows lengths: no memory holds enough of them to overflow it
	lengths := m.Lengths
	for k := range s.Keys {
		of := lengths[:m.RowsOfKey(k)]
		lengths = lengths[len(of):]
		for r, l := range of {
			switch {
			case l < 0:
				return shapeError("%s of key %q, row %d is %d", TensorLengths, s.Keys[k].Name, r, l)
			case l != 1 && !s.Keys[k].List:
				return shapeError("%s of key %q, row %d is %d, but the key has one id a row", TensorLengths,
					s.Keys[k].Name, r, l)
			}
			sum += int64(l)
		}
	}
	if sum != int64(n) {
		return shapeError("the lengths sum to %d, there are %d values", sum, n)
	}
	return nil
}

// ValidateIDs checks that the ids of every key with a known number of embeddings are below that number. The mini-batch
// must be valid. The error wraps ErrShape.
func (m *MiniBatch) ValidateIDs() error {
	offsets := m.OffsetPerKey()
	for f := range m.Schema.Keys {
		k := &m.Schema.Keys[f]
		if k.NumEmbeddings == 0 {
			continue
		}
		for i := offsets[f]; i < offsets[f+1]; i++ {
			var id int64
			if m.Schema.IDs == Int32 {
				id = int64(m.Values32[i])
			} else {
				id = m.Values64[i]
			}
			if id < 0 || id >= k.NumEmbeddings {
				return shapeError("%s[%d] of key %q is %d, want 0 to %d", TensorValues, i, k.Name, id,
					k.NumEmbeddings-1)
			}
		}
	}
	return nil
}

// Offsets appends the F*B+1 offsets of a KeyedJaggedTensor: row b of key f holds values [o[f*B+b], o[f*B+b+1]). A
// deduplicated mini-batch has as many as all its RowsOfKey and one.
func (m *MiniBatch) Offsets(dst []int64) []int64 {
	dst = append(dst, 0)
	if m.Schema.Fixed() {
		for i := range m.Values() {
			dst = append(dst, int64(i+1))
		}
		return dst
	}
	var at int64
	for _, l := range m.Lengths {
		at += int64(l)
		dst = append(dst, at)
	}
	return dst
}

// OffsetPerKey returns F+1 offsets: the values of key f are [o[f], o[f+1]).
func (m *MiniBatch) OffsetPerKey() []int64 {
	o := make([]int64, len(m.Schema.Keys)+1)
	fixed, at := m.Schema.Fixed(), 0
	for f := range m.Schema.Keys {
		rows := m.RowsOfKey(f)
		n := int64(rows)
		if !fixed {
			n = 0
			for _, l := range m.Lengths[at : at+rows] {
				n += int64(l)
			}
			at += rows
		}
		o[f+1] = o[f] + n
	}
	return o
}
