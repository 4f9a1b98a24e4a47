package csd_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/csd"
)

func ExampleOpen() {
	d, err := csd.Open(csd.Options{Size: 64 << 20, LBA: csd.LBA4096, SLMBytes: 16 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	size, lba := d.Geometry()
	_, active := d.ActiveImage()
	fmt.Println(size, "bytes in blocks of", lba, "- image active:", active)
	fmt.Println(d.Close())
	// Output:
	// 67108864 bytes in blocks of 4096 - image active: true
	// <nil>
}
