package tensor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// ErrShape says that a schema or a mini-batch breaks a rule of its shape.
var ErrShape = errors.New("tensor: shape")

// Bounds of a schema and of a mini-batch. They are far above every known model (DPP's largest reads 1,221 dense and 306
// sparse features) and keep every product of two of them inside an int64.
const (
	MaxDense     = 1 << 20 // dense features
	MaxKeys      = 1 << 20 // keys
	MaxNameBytes = 1 << 12 // bytes of a feature's name
	MaxRows      = 1 << 30 // rows of a mini-batch
	MaxValues    = 1 << 40 // sparse values of a mini-batch
)

// DType is the type of a tensor's elements. All are little-endian.
type DType uint8

// The types of a tensor. There is no unsigned one: PyTorch supports them only in part. The numbers are part of a
// schema's JSON.
const (
	Float32 DType = 1 + iota
	Int32
	Int64
	BFloat16 // the upper half of a float32; Go holds its bits as uint16, see [BFloat16Value]
)

// Size returns the bytes of one element, 0 for an unknown type.
func (d DType) Size() int {
	switch d {
	case Float32, Int32:
		return 4
	case Int64:
		return 8
	case BFloat16:
		return 2
	}
	return 0
}

// String returns the name used in pipelines, schemas and reports: float32, int32, int64 or bfloat16.
func (d DType) String() string {
	switch d {
	case Float32:
		return "float32"
	case Int32:
		return "int32"
	case Int64:
		return "int64"
	case BFloat16:
		return "bfloat16"
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// BFloat16Value returns the float32 of the same value as the bfloat16 with these bits.
func BFloat16Value(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// Key is one sparse feature.
type Key struct {
	Name          string // unique among the keys
	NumEmbeddings int64  // ids are in [0, NumEmbeddings); 0 if the pipeline does not bound them
	List          bool   // a row may have no id or several: the feature is a list, or a scalar that can be null
	// Set numbers the keys that are deduplicated together, from 1: mini-batches hold each row of them once. 0 means
	// that the key is not deduplicated. The keys of a set are neighbours, and sets are numbered in the order of their
	// keys.
	Set int `json:",omitempty"`
}

// Schema describes the mini-batches of a job: which tensors they have and what the tensors' columns mean. It is known
// before the first mini-batch, so that a launcher can build a model's tables.
type Schema struct {
	Label   bool     // there is a label tensor
	Dense   []string // names of the dense features, in the tensor's column order; may be empty
	Keys    []Key    // the sparse features, in the order of their values; may be empty
	IDs     DType    // Int32 or Int64, the type of kjt.values; unused without keys
	Weights bool     // every id has a float32 weight
	// DenseType is the type of dense: Float32, which the zero value means too, or BFloat16; unused without dense features.
	DenseType DType `json:",omitempty"`
}

// DenseDType returns the type of dense.
func (s *Schema) DenseDType() DType {
	if s.DenseType == 0 {
		return Float32
	}
	return s.DenseType
}

// Fixed reports whether every row has exactly one id of every key. The lengths tensor is then left out.
func (s *Schema) Fixed() bool {
	for i := range s.Keys {
		if s.Keys[i].List {
			return false
		}
	}
	return true
}

// Sets returns how many sets of keys are deduplicated.
func (s *Schema) Sets() int {
	if len(s.Keys) == 0 {
		return 0
	}
	most := 0
	for i := range s.Keys {
		most = max(most, s.Keys[i].Set)
	}
	return most
}

// KeyNames returns the keys' names in order.
func (s *Schema) KeyNames() []string {
	names := make([]string, len(s.Keys))
	for i := range s.Keys {
		names[i] = s.Keys[i].Name
	}
	return names
}

// Equal reports whether both describe the same mini-batches.
func (s *Schema) Equal(o *Schema) bool {
	if s == o {
		return true
	}
	if s == nil || o == nil {
		return false
	}
	return s.Label == o.Label && s.Weights == o.Weights && (s.IDs == o.IDs || len(s.Keys) == 0) &&
		(s.DenseDType() == o.DenseDType() || len(s.Dense) == 0) && slices.Equal(s.Dense, o.Dense) &&
		slices.Equal(s.Keys, o.Keys)
}

// Validate checks the schema's rules. The error wraps ErrShape.
func (s *Schema) Validate() error {
	if s == nil {
		return fmt.Errorf("%w: no schema", ErrShape)
	}
	if len(s.Dense) > MaxDense || len(s.Keys) > MaxKeys {
		return fmt.Errorf("%w: %d dense features and %d keys, at most %d and %d", ErrShape, len(s.Dense), len(s.Keys),
			MaxDense, MaxKeys)
	}
	if !s.Label && len(s.Dense) == 0 && len(s.Keys) == 0 {
		return fmt.Errorf("%w: no label, no dense feature and no key: nothing to train on", ErrShape)
	}
	if len(s.Keys) > 0 && s.IDs != Int32 && s.IDs != Int64 {
		return fmt.Errorf("%w: ids are %v, want int32 or int64", ErrShape, s.IDs)
	}
	if d := s.DenseDType(); len(s.Dense) > 0 && d != Float32 && d != BFloat16 {
		return fmt.Errorf("%w: dense is %v, want float32 or bfloat16", ErrShape, d)
	}
	if s.Weights && len(s.Keys) == 0 {
		return fmt.Errorf("%w: weights without keys", ErrShape)
	}
	seen := make(map[string]bool, len(s.Dense))
	for _, name := range s.Dense {
		if err := validName(name); err != nil {
			return fmt.Errorf("%w: dense feature %q: %w", ErrShape, name, err)
		}
		if seen[name] {
			return fmt.Errorf("%w: dense feature %q is named twice", ErrShape, name)
		}
		seen[name] = true
	}
	keys := make(map[string]bool, len(s.Keys))
	for i := range s.Keys {
		k := &s.Keys[i]
		if err := validName(k.Name); err != nil {
			return fmt.Errorf("%w: key %q: %w", ErrShape, k.Name, err)
		}
		if keys[k.Name] {
			return fmt.Errorf("%w: key %q is named twice", ErrShape, k.Name)
		}
		keys[k.Name] = true
		if k.NumEmbeddings < 0 {
			return fmt.Errorf("%w: key %q has %d embeddings", ErrShape, k.Name, k.NumEmbeddings)
		}
	}
	return s.validateSets()
}

// validateSets checks that the sets are numbered from 1 in the order of their keys, and that the keys of each are
// neighbours.
func (s *Schema) validateSets() error {
	last, before := 0, 0 // the greatest set so far, and the set of the key before
	for i := range s.Keys {
		k := &s.Keys[i]
		if k.Set != 0 && k.Set != before && k.Set != last+1 {
			return fmt.Errorf("%w: key %q is in set %d, want 0 or %d", ErrShape, k.Name, k.Set, last+1)
		}
		last, before = max(last, k.Set), k.Set
	}
	return nil
}

// validName refuses a name that is empty, too long or not UTF-8.
func validName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > MaxNameBytes:
		return fmt.Errorf("the name is longer than %d bytes", MaxNameBytes)
	case !utf8.ValidString(name):
		return errors.New("the name is not UTF-8")
	}
	return nil
}
