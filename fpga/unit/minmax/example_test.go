package minmax_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/minmax"
)

func ExampleTransform_Apply() {
	transform, err := minmax.New(-3, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	values := []float32{-3, 1, 5, 9}
	transform.Apply(values, values)
	fmt.Println(values)
	// Output: [0 0.5 1 1.5]
}
