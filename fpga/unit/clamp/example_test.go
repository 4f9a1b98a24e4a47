package clamp_test

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/clamp"
)

// Neg2Zero: what is below zero becomes zero.
func ExampleInt64() {
	v := []int64{-2, 0, 7}
	if err := clamp.Int64(v, 0, math.MaxInt64); err != nil {
		fmt.Println(err)
	}
	fmt.Println(v)
	// Output: [0 0 7]
}
