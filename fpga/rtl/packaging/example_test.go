package packaging_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/packaging"
)

// The registers that a host writes before a run of the kernel of unit positive_modulus.
func ExampleOf() {
	unit, err := rtl.Named("positive_modulus")
	if err != nil {
		fmt.Println(err)
		return
	}
	kernel, err := packaging.Of(unit)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range kernel.Arguments {
		fmt.Printf("%#05x %d %s\n", a.Offset, a.Bytes, a.Name)
	}
	// Output:
	// 0x00010 8 input_address
	// 0x00018 4 transfers
	// 0x00020 8 output_address
	// 0x00028 4 room
	// 0x80000 8 unit_divisor
	// 0x80008 8 unit_reciprocal
	// 0x80010 8 unit_shift
}
