package logn_test

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/logn"
)

func ExampleLogClamped() {
	counts := []float32{-3, 1, 9, 1382}
	logn.LogClamped(counts, counts, 1, 0, math.MaxFloat32)
	fmt.Println(counts)
	// Output: [0 0.6931472 2.3025851 7.2320104]
}
