package tensor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestDiffNamesTheFirstDifferenceOfSchemas changes one part of a schema at a time. Parts that nothing uses, as the type
// of ids without keys, make no difference.
func TestDiffNamesTheFirstDifferenceOfSchemas(t *testing.T) {
	schema := func(change func(s *Schema)) *MiniBatch {
		s := &Schema{Label: true, Dense: []string{"a", "b"}, Keys: []Key{{Name: "k", NumEmbeddings: 10}}, IDs: Int32}
		change(s)
		return &MiniBatch{Schema: s}
	}
	as := schema(func(*Schema) {})
	for want, change := range map[string]func(s *Schema){
		"":                                  func(s *Schema) { s.DenseType = Float32 },
		"schema: a label: true, false":      func(s *Schema) { s.Label = false },
		"schema: 2 dense features, 1":       func(s *Schema) { s.Dense = s.Dense[:1] },
		`schema: dense feature 1: "b", "c"`: func(s *Schema) { s.Dense[1] = "c" },
		"schema: 1 keys, 0":                 func(s *Schema) { s.Keys = nil },
		`schema: key 0: "k", "l"`:           func(s *Schema) { s.Keys[0].Name = "l" },
		"schema: weights: false, true":      func(s *Schema) { s.Weights = true },
		"schema: ids: int32, int64":         func(s *Schema) { s.IDs = Int64 },
		"schema: dense: float32, bfloat16":  func(s *Schema) { s.DenseType = BFloat16 },
		`schema: key "k": embeddings 10, 11; a list false, true; deduplicated in set 0, 1`: func(s *Schema) {
			s.Keys[0] = Key{Name: "k", NumEmbeddings: 11, List: true, Set: 1}
		},
	} {
		other := schema(change)
		assert.Equal(t, want, Diff(as, other))
		assert.Equal(t, as.Equal(other), Diff(as, other) == "")
	}
	assert.Equal(t, "schema: one of the mini-batches has none", Diff(as, &MiniBatch{}))
}
