package unsignedmodulus_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/unsignedmodulus"
)

func ExampleModulus_Mod() {
	modulus, err := unsignedmodulus.New(10)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := []int64{7, -1} // The bits of -1 are those of 18446744073709551615.
	modulus.Mod(ids, ids)
	fmt.Println(ids)
	// Output: [7 5]
}
