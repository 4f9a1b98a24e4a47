package listslice_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/listslice"
)

func ExampleCut() {
	lengths, ids := []int32{3, 1}, []int64{1, 2, 3, 4}
	kept, err := listslice.Cut(lengths, ids, -2, listslice.NoEnd)
	fmt.Println(lengths, ids[:kept], err)
	// Output: [2 1] [2 3 4] <nil>
}
