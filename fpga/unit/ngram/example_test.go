package ngram_test

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/ngram"
)

func ExampleNGram() {
	lengths, ids := []int32{3, 1}, []int64{1, 2, 3, 4}
	kept, err := ngram.NGram(lengths, ids, 2)
	fmt.Println(lengths, ids[:kept], err)
	// Output: [2 0] [-5286723046509945304 -5814142665615228097] <nil>
}
