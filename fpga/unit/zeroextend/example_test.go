package zeroextend_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

func ExampleInt64() {
	v := []int64{-1, 7}
	zeroextend.Int64(v)
	fmt.Println(v)
	// Output: [4294967295 7]
}
