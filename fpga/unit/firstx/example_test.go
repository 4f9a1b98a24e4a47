package firstx_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/firstx"
)

func ExampleFirstX() {
	lengths, values := []int32{3, 0, 1}, []int64{10, 11, 12, 20}
	kept, err := firstx.FirstX(lengths, values, 2)
	fmt.Println(lengths, values[:kept], err)
	// Output: [2 0 1] [10 11 20] <nil>
}
