package scoredlist

// ReferencePositions returns the scores that enumerate gives to the ids of one list.
func ReferencePositions(ids []int64) []float32 {
	scores := make([]float32, 0, len(ids))
	for position := range ids {
		scores = append(scores, float32(position))
	}
	return scores
}

// ReferenceJoin returns the ids of one row with their scores. forAll says that scores is one score for all ids, or
// empty. ok is false if the row is an error.
func ReferenceJoin(ids []int64, scores []float32, forAll bool) (_ []int64, _ []float32, ok bool) {
	if len(ids) == 0 || len(scores) == 0 {
		return nil, nil, true
	}
	if forAll {
		first := scores[0]
		scores = nil
		for range ids {
			scores = append(scores, first)
		}
	}
	return ids, scores, len(ids) == len(scores)
}
