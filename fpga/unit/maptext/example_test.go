package maptext_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/maptext"
)

func ExampleIndex_Map() {
	index, err := maptext.New([]string{"no", "yes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := make([]int64, 3)
	err = index.Map(ids, []uint32{0, 3, 5, 10}, []byte("yesnomaybe"), nil, []int64{0, 1}, maptext.Default, -1)
	fmt.Println(ids, err)
	// Output: [1 0 -1] <nil>
}
