package hashbytes_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/hashbytes"
)

func ExampleHash() {
	data, offsets := []byte("SparkHello"), []uint32{0, 5, 10}
	ids := make([]int64, 2)
	err := hashbytes.Hash(ids, offsets, data, nil, hashbytes.Murmur3)
	fmt.Println(ids, err)
	// Output: [228093765 825079905] <nil>
}
