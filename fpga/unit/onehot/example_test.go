package onehot_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/onehot"
)

func ExampleClasses_IDs() {
	classes, err := onehot.New(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := []int64{0, 3, 4, -1}
	classes.IDs(ids, ids)
	fmt.Println(ids)
	// Output: [0 3 -1 -1]
}
