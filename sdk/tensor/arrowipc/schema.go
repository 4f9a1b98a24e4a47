package arrowipc

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace/millrace/sdk/tensor"
)

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

// columnsOf returns the columns and the metadata of files with mini-batches of s.
func columnsOf(s *tensor.Schema) ([]field, []keyValue, error) {
	if err := s.Validate(); err != nil {
		return nil, nil, fmt.Errorf("arrow schema: %w", err)
	}
	var fields []field
	add := func(present bool, name string, element tensor.DType) {
		if present {
			fields = append(fields, field{name, element})
		}
	}
	hasKeys := len(s.Keys) > 0
	format, dense16 := Format, len(s.Dense) > 0 && s.DenseDType() == tensor.BFloat16
	if dense16 {
		format = Format2
	}
	add(len(s.Dense) > 0, tensor.TensorDense, s.DenseDType())
	add(s.Label, tensor.TensorLabel, tensor.Float32)
	add(hasKeys, tensor.TensorValues, s.IDs)
	add(hasKeys && !s.Fixed(), tensor.TensorLengths, tensor.Int32)
	add(s.Weights, tensor.TensorWeights, tensor.Float32)

	embeddings, list := make([]int64, len(s.Keys)), make([]bool, len(s.Keys))
	for i, k := range s.Keys {
		embeddings[i], list[i] = k.NumEmbeddings, k.List
	}
	dense := s.Dense
	if dense == nil {
		dense = []string{}
	}
	metadata := []keyValue{{metaFormat, format}}
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
			return nil, nil, fmt.Errorf("arrow schema: %s: %w", m.name, err)
		}
		metadata = append(metadata, keyValue{m.name, text})
	}
	if hasKeys && s.Fixed() {
		metadata = append(metadata, keyValue{metaLengths, "ones"})
	}
	if dense16 {
		metadata = append(metadata, keyValue{metaDenseType, s.DenseType.String()})
	}
	return fields, metadata, nil
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
