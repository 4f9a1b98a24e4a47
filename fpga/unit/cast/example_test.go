package cast_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/cast"
)

func ExampleFloatToInt64() {
	whole := make([]int64, 3)
	err := cast.FloatToInt64(whole, []float32{2.9, -2.9, 1 << 40}, nil)
	fmt.Println(whole, err)
	// Output: [2 -2 1099511627776] <nil>
}
