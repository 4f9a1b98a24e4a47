package decimal_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/decimal"
)

func ExampleInt64ToFloat32() {
	prices := make([]float32, 2)
	err := decimal.Int64ToFloat32(prices, []int64{1999, -5}, 2)
	fmt.Println(prices, err)
	// Output: [19.99 -0.05] <nil>
}
