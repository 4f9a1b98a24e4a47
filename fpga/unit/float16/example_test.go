package float16_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/float16"
)

func ExampleToFloat32() {
	values := make([]float32, 2)
	err := float16.ToFloat32(values, []uint32{0, 2, 4}, []byte{0x00, 0x3e, 0x01, 0x80}, nil)
	fmt.Println(values, err)
	// Output: [1.5 -5.9604645e-08] <nil>
}
