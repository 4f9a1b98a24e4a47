package bfloat16_test

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/bfloat16"
)

func ExampleRound() {
	for _, x := range []float32{1, 1 + 1.0/256, 1 + 3.0/256, -3e38, math.MaxFloat32} {
		fmt.Printf("%04x ", bfloat16.Round(x))
	}
	// Output: 3f80 3f80 3f82 ff62 7f80
}
