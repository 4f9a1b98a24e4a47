package checksum_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/checksum"
)

func ExamplePage() {
	fmt.Printf("%08x\n", checksum.Page([]byte("123456789")))
	// Output: cbf43926
}
