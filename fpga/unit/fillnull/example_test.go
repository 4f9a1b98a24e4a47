package fillnull_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/fillnull"
)

func ExampleInt64() {
	v, valid := []int64{3, 0, 5}, []byte{1, 0, 1}
	fillnull.Int64(v, valid, -1)
	fmt.Println(v)
	// Output: [3 -1 5]
}
