package logit_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/logit"
)

func ExampleRange_Logit() {
	bounds, err := logit.Bounds(1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	rates := []float32{0, 0.25, 0.5, 0.75}
	bounds.Logit(rates, rates)
	fmt.Println(rates)
	// Output: [-13.81551 -1.0986123 0 1.0986123]
}
