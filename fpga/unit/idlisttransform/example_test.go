package idlisttransform_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/idlisttransform"
)

func ExampleIntersection_Lists() {
	a := idlisttransform.Input{Lengths: []int32{3, 1}, IDs: []int64{3, 1, 3, 7}}
	b := idlisttransform.Input{Lengths: []int32{2, 1}, IDs: []int64{1, 3, 8}}
	lengths, ids, err := new(idlisttransform.Intersection).Lists(nil, nil, a, b)
	fmt.Println(lengths, ids, err)
	// Output: [2 0] [3 1] <nil>
}
