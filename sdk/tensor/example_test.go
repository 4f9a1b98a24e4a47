package tensor_test

import (
	"fmt"

	"github.com/millrace/millrace/sdk/tensor"
)

func ExampleBFloat16Value() {
	fmt.Println(tensor.BFloat16Value(0x3fc0))
	// Output: 1.5
}
