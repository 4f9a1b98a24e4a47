package hashcross_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/hashcross"
)

func ExampleHasher_Cross() {
	hasher, err := hashcross.New(1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	buckets := make([]int64, 3)
	hasher.Cross(buckets, [][]int64{{1, 2, 1}, {2, 1, 1}})
	fmt.Println(buckets)
	// Output: [191 191 0]
}
