package arrowipc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace/millrace/sdk/tensor"
)

// ErrFormat says that a file does not hold mini-batches as this package writes them.
var ErrFormat = errors.New("arrowipc: not a file of mini-batches")

// Format is the value of millrace.format.
const Format = "millrace.arrow/1"

// Format2 is the format of files whose dense tensor is bfloat16.
const Format2 = "millrace.arrow/2"

// Names of metadata.
const (
	metaFormat     = "millrace.format"
	metaShapes     = "millrace.shapes"
	metaDense      = "millrace.dense"
	metaKeys       = "millrace.keys"
	metaEmbeddings = "millrace.num_embeddings"
	metaList       = "millrace.list"
	metaLengths    = "millrace.lengths"
	metaDenseType  = "millrace.dense_type"
	metaName       = "millrace.name"
	metaRows       = "millrace.rows"
)

// shapes is the part of the shapes that all mini-batches of a file share.
type shapes struct {
	Dense int `json:"dense"`
	Keys  int `json:"keys"`
}

// Schema returns the Arrow schema of files with mini-batches of s.
func Schema(s *tensor.Schema) (*arrow.Schema, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("arrow schema: %w", err)
	}
	var fields []arrow.Field
	add := func(present bool, name string, elem arrow.DataType) {
		if present {
			fields = append(fields, arrow.Field{Name: name, Type: arrow.LargeListOfNonNullable(elem)})
		}
	}
	hasKeys := len(s.Keys) > 0
	ids := arrow.PrimitiveTypes.Int64
	if s.IDs == tensor.Int32 {
		ids = arrow.PrimitiveTypes.Int32
	}
	format, dense16 := Format, len(s.Dense) > 0 && s.DenseDType() == tensor.BFloat16
	if dense16 {
		format = Format2
	}
	add(len(s.Dense) > 0 && !dense16, tensor.TensorDense, arrow.PrimitiveTypes.Float32)
	add(dense16, tensor.TensorDense, arrow.PrimitiveTypes.Uint16) // Arrow has no bfloat16
	add(s.Label, tensor.TensorLabel, arrow.PrimitiveTypes.Float32)
	add(hasKeys, tensor.TensorValues, ids)
	add(hasKeys && !s.Fixed(), tensor.TensorLengths, arrow.PrimitiveTypes.Int32)
	add(s.Weights, tensor.TensorWeights, arrow.PrimitiveTypes.Float32)

	embeddings, list := make([]int64, len(s.Keys)), make([]bool, len(s.Keys))
	for i, k := range s.Keys {
		embeddings[i], list[i] = k.NumEmbeddings, k.List
	}
	dense := s.Dense
	if dense == nil {
		dense = []string{}
	}
	names, values := []string{metaFormat}, []string{format}
	for _, m := range []struct {
		name string
		v    any
	}{
		{metaShapes, shapes{len(s.Dense), len(s.Keys)}},
		{metaDense, dense},
		{metaKeys, s.KeyNames()},
		{metaEmbeddings, embeddings},
		{metaList, list},
	} {
		text, err := marshal(m.v)
		if err != nil {
			return nil, fmt.Errorf("arrow schema: %s: %w", m.name, err)
		}
		names, values = append(names, m.name), append(values, text)
	}
	if hasKeys && s.Fixed() {
		names, values = append(names, metaLengths), append(values, "ones")
	}
	if dense16 {
		names, values = append(names, metaDenseType), append(values, s.DenseType.String())
	}
	meta := arrow.NewMetadata(names, values)
	return arrow.NewSchema(fields, &meta), nil
}

// parseSchema is the inverse of Schema. It refuses everything that Schema does not write.
func parseSchema(a *arrow.Schema) (*tensor.Schema, error) {
	meta := a.Metadata()
	get := func(name string) string {
		v, _ := meta.GetValue(name)
		return v
	}
	if f := get(metaFormat); f != Format && f != Format2 {
		return nil, fmt.Errorf("%w: %s is %q, this build reads %q and %q", ErrFormat, metaFormat, f, Format, Format2)
	}
	s := &tensor.Schema{Label: a.HasField(tensor.TensorLabel), Weights: a.HasField(tensor.TensorWeights)}
	if get(metaDenseType) == tensor.BFloat16.String() {
		s.DenseType = tensor.BFloat16
	}
	var keys []string
	var embeddings []int64
	var list []bool
	for _, f := range []struct {
		name string
		into any
	}{{metaDense, &s.Dense}, {metaKeys, &keys}, {metaEmbeddings, &embeddings}, {metaList, &list}} {
		if err := json.Unmarshal([]byte(get(f.name)), f.into); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFormat, f.name, err)
		}
	}
	if len(embeddings) != len(keys) || len(list) != len(keys) {
		return nil, fmt.Errorf("%w: %d keys, %d %s, %d %s", ErrFormat, len(keys), len(embeddings), metaEmbeddings,
			len(list), metaList)
	}
	for i := range keys {
		s.Keys = append(s.Keys, tensor.Key{Name: keys[i], NumEmbeddings: embeddings[i], List: list[i]})
	}
	if len(keys) > 0 {
		s.IDs = tensor.Int64
		if f, ok := a.FieldsByName(tensor.TensorValues); ok {
			if l, ok := f[0].Type.(*arrow.LargeListType); ok && l.Elem().ID() == arrow.INT32 {
				s.IDs = tensor.Int32
			}
		}
	}
	want, err := Schema(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if !a.Equal(want) || !meta.Equal(want.Metadata()) {
		return nil, fmt.Errorf("%w: its schema and metadata do not agree", ErrFormat)
	}
	return s, nil
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
