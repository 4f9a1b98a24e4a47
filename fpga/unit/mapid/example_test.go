package mapid_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/mapid"
)

func ExampleIndex_Map() {
	index, err := mapid.New([]int64{5, 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := []int64{7, 6, 5, -1}
	index.Map(ids, ids, []int64{1, 2}, 0)
	fmt.Println(ids)
	// Output: [2 0 1 0]
}
