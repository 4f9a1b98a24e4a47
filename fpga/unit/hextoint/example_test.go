package hextoint_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/hextoint"
)

func ExampleHex() {
	data, offsets := []byte("05db9164ff"), []uint32{0, 8, 8, 10}
	ids, valid := make([]int64, 3), []byte{1, 1, 1}
	err := hextoint.Hex(ids, offsets, data, valid)
	fmt.Println(ids, valid, err)
	// Output: [98275684 0 255] [1 0 1] <nil>
}
