package texttoint_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/texttoint"
)

func ExampleIntegers() {
	data, offsets := []byte("-123+5"), []uint32{0, 4, 4, 6}
	ids, valid := make([]int64, 3), []byte{1, 1, 1}
	err := texttoint.Integers(ids, offsets, data, valid)
	fmt.Println(ids, valid, err)
	// Output: [-123 0 5] [1 0 1] <nil>
}
