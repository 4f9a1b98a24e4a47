package boxcox_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/boxcox"
)

func ExampleTransform_Apply() {
	f, err := boxcox.New(boxcox.Params{Lambda1: 0.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	amounts := []float32{1, 4, 100}
	f.Apply(amounts, amounts)
	fmt.Println(amounts)
	// Output: [0 2 18]
}
