package targetencoding_test

import (
	"fmt"

	"github.com/millrace/millrace/sdk/targetencoding"
)

// The labels of three rows of one key in two folds become encodings for training and for serving.
func Example() {
	b := targetencoding.NewBuilder(2)
	for _, r := range []struct {
		fold  int
		label float32
	}{{0, 1}, {0, 1}, {1, 0}} {
		if err := b.Add(7, true, r.fold, r.label); err != nil {
			fmt.Println(err)
		}
	}
	serve, err := targetencoding.NewEncoding(b.Table(), 42, 20, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(serve.Value(7, targetencoding.Partition{}, 0), serve.Mean())
	// Output: 0.6666667 0.6666667
}
