package computescore_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/computescore"
)

func ExampleScorer_Score() {
	input := computescore.Side{Lengths: []int32{2, 1}, IDs: []int64{1, 2, 9}}
	matching := computescore.Side{Lengths: []int32{3, 0}, IDs: []int64{2, 3, 4}}
	scores := make([]float32, 2)
	err := new(computescore.Scorer).Score(scores, input, matching,
		computescore.Params{Function: computescore.JaccardSimilarity})
	fmt.Println(scores, err)
	// Output: [0.25 0] <nil>
}
