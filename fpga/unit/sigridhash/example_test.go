package sigridhash_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

func ExampleHasher_Hash() {
	hasher, err := sigridhash.New(sigridhash.Params{Salt: 0, Max: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := []int64{1, 2, 3, -1}
	hasher.Hash(ids, ids)
	fmt.Println(ids[:3])
	_, err = sigridhash.New(sigridhash.Params{Max: 0})
	fmt.Println(err)
	// Output:
	// [60 54 54]
	// max 0: sigrid_hash: max must be larger than 0
}
