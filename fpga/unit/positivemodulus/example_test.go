package positivemodulus_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/positivemodulus"
)

func ExampleModulus_Mod() {
	modulus, err := positivemodulus.New(5)
	if err != nil {
		fmt.Println(err)
		return
	}
	v := []int64{7, -7, -5}
	modulus.Mod(v, v)
	fmt.Println(v)
	// Output: [2 3 0]
}
