package logn_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/logn"
)

func ExampleLog() {
	counts := []float32{0, 1, 9, 1382}
	logn.Log(counts, counts, 1)
	fmt.Println(counts)
	// Output: [0 0.6931472 2.3025851 7.2320104]
}
