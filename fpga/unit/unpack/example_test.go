package unpack_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/unpack"
)

func ExampleLists_Float32s() {
	var lists unpack.Lists
	err := lists.Float32s([]uint32{0, 8, 8}, []byte("\x00\x00\x80\x3f\x00\x00\x00\x40"), nil)
	fmt.Println(lists.Lengths, lists.Values, err)
	// Output: [2 0] [1 2] <nil>
}
