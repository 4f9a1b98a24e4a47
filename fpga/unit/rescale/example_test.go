package rescale_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/rescale"
)

func ExampleRescale() {
	milliseconds := []int64{1_700_000_000_123, -1}
	seconds := make([]int64, 2)
	err := rescale.Rescale(seconds, milliseconds, nil, 1, 1000)
	fmt.Println(seconds, err)
	// Output: [1700000000 -1] <nil>
}
