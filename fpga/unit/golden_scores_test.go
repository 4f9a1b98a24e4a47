package unit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/computescore"
)

// scores runs all eight functions over a case's lists. TorchArrow's cosine is rounded at each step, in the order of a
// hash table: 4 units in the last place. Sums of the cases are exact, and all else must be the same.
func scores(t *testing.T, c goldenCase) {
	var v struct {
		IDs            []whole  `json:"input_ids"`
		Scores         []single `json:"input_scores"`
		Matching       []whole  `json:"matching_ids"`
		MatchingScores []single `json:"matching_scores"`
	}
	c.into(t, &v)
	one := func(ids []whole, scores []single) computescore.Side {
		return computescore.Side{Lengths: []int32{int32(len(ids))}, IDs: wholes(ids),
			ScoreLengths: []int32{int32(len(scores))}, Scores: singles(scores)}
	}
	names := []string{"has_id_overlap", "id_overlap_count", "get_max_count", "get_jaccard_similarity",
		"get_cosine_similarity", "get_score_sum", "get_score_min", "get_score_max"}
	for i, name := range names {
		p := computescore.Params{Function: computescore.Function(i)}
		got := []float32{0}
		err := new(computescore.Scorer).Score(got, one(v.IDs, v.Scores), one(v.Matching, v.MatchingScores), p)
		reference, referenceErr := computescore.Reference(wholes(v.IDs), singles(v.Scores), wholes(v.Matching),
			singles(v.MatchingScores), p)
		if strings.HasPrefix(c.text(name), "error: inner product") {
			require.ErrorIs(t, err, computescore.ErrZeroNorm, name)
			require.ErrorIs(t, referenceErr, computescore.ErrZeroNorm, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, referenceErr, name)
		var want single
		require.NoError(t, json.Unmarshal(c.fields[name], &want), name)
		ulps := int64(0)
		if p.Function == computescore.CosineSimilarity {
			ulps = 4
		}
		withinUlps(t, []single{want}, got, ulps, name)
		sameFloats(t, []single{single(reference)}, got, "reference of "+name)
	}
}
