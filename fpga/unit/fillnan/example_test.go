package fillnan_test

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/fillnan"
)

func ExampleFloat32() {
	v := []float32{3, float32(math.NaN()), float32(math.Inf(1))}
	fmt.Println(fillnan.FindNaN(v), fillnan.FindNonFinite(v))
	fillnan.Float32(v, -1)
	fmt.Println(v)
	// Output:
	// 1 1
	// [3 -1 +Inf]
}
