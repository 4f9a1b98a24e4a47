package scoredlist_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/scoredlist"
)

func ExampleAppendPositions() {
	// Two rows, one of the ids 7, 8, 9 and one of two ids.
	fmt.Println(scoredlist.AppendPositions(nil, []int32{3, 2}))
	// Output: [0 1 2 0 1]
}

func ExampleLists_Join() {
	var lists scoredlist.Lists
	err := lists.Join(scoredlist.IDs{Lengths: []int32{2, 1}, IDs: []int64{7, 8, 9}},
		scoredlist.Scores{Lengths: []int32{1, 1}, Scores: []float32{0.5, 2}, ForAll: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lists.Lengths, lists.IDs, lists.Scores)
	// Output: [2 1] [7 8 9] [0.5 0.5 2]
}
