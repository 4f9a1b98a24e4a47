package localhour_test

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/unit/localhour"
)

func ExampleZone_Hours() {
	// Berlin's clocks were put forward at the end of March 2024.
	zone, err := localhour.New([]int64{math.MinInt64, 1711846800}, []int64{3600, 7200})
	if err != nil {
		fmt.Println(err)
		return
	}
	hours := make([]int64, 2)
	zone.Hours(hours, []int64{1711846799, 1711846800})
	fmt.Println(hours)
	// Output: [1 3]
}
