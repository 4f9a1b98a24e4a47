package normalize_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/normalize"
)

func ExampleTransform_Apply() {
	transform, err := normalize.New(10, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	values := []float32{8, 10, 20}
	transform.Apply(values, values)
	fmt.Println(values)
	// Output: [-0.5 0 2.5]
}
