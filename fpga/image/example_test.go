package image_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/image"
)

func ExampleParse() {
	b, err := image.Stock()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := image.Parse(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Spec.Platform, len(m.Spec.Units), "units, signed:", m.Signature != nil)
	// Output: millrace-csd 12 units, signed: false
}
