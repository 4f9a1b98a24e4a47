package cartesian_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/cartesian"
)

func ExampleLists() {
	a := cartesian.Input{Lengths: []int32{2, 0}, IDs: []int64{1, 2}}
	b := cartesian.Input{Lengths: []int32{1, 3}, IDs: []int64{10, 20, 30, 40}}
	lengths, ids, err := cartesian.Lists(nil, nil, a, b, cartesian.Params{MaxLength: 100})
	fmt.Println(lengths, ids, err)
	// Output: [2 0] [-2166060444645670163 -1437097582950848246] <nil>
}
