package vocabulary_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// Example looks up a column in the vocabulary of the keys 9, 0 and 17.
func Example() {
	table, err := vocabulary.NewTable([]int64{9, 0, 17})
	if err != nil {
		fmt.Println(err)
		return
	}
	indices := make([]int32, 4)
	complete := vocabulary.Lookup(table, indices, []int64{0, 17, 9, 5})
	fmt.Println(indices, complete)
	// Output: [1 2 0 -1] false
}
