package engine

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/block"
)

// rowsError adds the place in the mini-batch to an error about count rows from row first on: the one row that the error
// is about, if the error knows it.
func rowsError(first uint64, count int, err error) error {
	if e := (*block.RowError)(nil); errors.As(err, &e) && e.Row < max(count, 1) {
		return fmt.Errorf("row %d of the mini-batch: %w", first+uint64(e.Row), err)
	}
	return fmt.Errorf("rows %d to %d of the mini-batch: %w", first, first+uint64(max(count, 1))-1, err)
}
