package convert_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/convert"
)

func ExampleInt64ToFloat32() {
	dst := make([]float32, 3)
	convert.Int64ToFloat32(dst, []int64{-7, 1 << 24, 1<<24 + 1})
	fmt.Printf("%.0f\n", dst)
	// Output: [-7 16777216 16777216]
}
