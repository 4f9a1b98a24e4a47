package block

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// AbsentKeyError says that a lookup table lacks a key.
type AbsentKeyError struct {
	Key int64
	Row int // Row is the row of the block.
	// Located is the error's place in the mini-batch, once the sink and the rows are known.
	Located program.AbsentKey
}

// Error implements error.
func (e *AbsentKeyError) Error() string {
	return fmt.Sprintf("vocabulary: the lookup table lacks the key %d", e.Key)
}
