package bucketize_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/bucketize"
)

func ExampleTable_Int64() {
	table, err := bucketize.New(bucketize.Params{Borders: []float32{0, 2, 3, 5, 500, 1000}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := []int64{1, 2, 3, 4, 5, 6, 2000}
	if err := table.Int64(ids, ids); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ids, "of", table.Buckets())
	// Output: [1 1 2 3 3 4 6] of 7
}
