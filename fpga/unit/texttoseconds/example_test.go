package texttoseconds_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/texttoseconds"
)

func ExampleSeconds() {
	data, offsets := []byte("2021-05-21 02:11:51-07:001970-01-02"), []uint32{0, 25, 25, 35}
	seconds, valid := make([]int64, 3), []byte{1, 1, 1}
	err := texttoseconds.Seconds(seconds, offsets, data, valid, texttoseconds.Zone{Known: true})
	fmt.Println(seconds, valid, err)
	// Output: [1621588311 0 86400] [1 0 1] <nil>
}
