// Package bytecolumn checks columns of byte arrays that operators are given: values that lie behind each other, with
// offsets, and a byte of validity a value.
//
// # Concurrency
//
// The function keeps no state.
//
// # Errors
//
// ErrShape says that the parts of a column do not fit each other.
package bytecolumn

import (
	"errors"
	"fmt"
)

// ErrShape says that offsets decrease, leave the bytes, or are not one more than the values, or that validity is short.
var ErrShape = errors.New("offsets do not describe the bytes")

// Check returns an error unless offsets and validity describe n values within size bytes. valid is nil if no value is
// null, and else has a byte a value.
func Check(n int, offsets []uint32, size int, valid []byte) error {
	if len(offsets) != n+1 {
		return fmt.Errorf("%d offsets for %d values: %w", len(offsets), n, ErrShape)
	}
	if valid != nil && len(valid) < n {
		return fmt.Errorf("%d bytes of validity for %d values: %w", len(valid), n, ErrShape)
	}
	for i, to := range offsets[1:] {
		if from := offsets[i]; from > to || uint64(to) > uint64(size) {
			return fmt.Errorf("value %d is bytes %d to %d of %d: %w", i, from, to, size, ErrShape)
		}
	}
	return nil
}
