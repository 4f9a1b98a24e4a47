package split_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/split"
)

func ExampleLists_Split() {
	texts := split.Texts{Offsets: []uint32{0, 13, 18, 18}, Data: []byte("Action|ComedyDrama")}
	var lists split.Lists
	err := lists.Split(texts, []byte{1, 1, 0}, split.Rule{Separator: "|"})
	fmt.Println(lists.Lengths, lists.Offsets, string(lists.Data), err)
	// Output: [2 1 0] [0 6 12 17] ActionComedyDrama <nil>
}
