package decimal

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// Bounds of a decimal.
const (
	MaxScale = 76
	MaxBytes = 32
)

var (
	// ErrScale says that a scale is above MaxScale.
	ErrScale = errors.New("decimal: the scale is above 76")
	// ErrLength says that a value has no bytes, or more than MaxBytes.
	ErrLength = errors.New("its bytes are not 1 to 32")
	// ErrRange says that an unscaled integer does not fit int64.
	ErrRange = errors.New("its unscaled integer does not fit int64")
)

// ValueError names a value that cannot be converted. It wraps ErrLength or ErrRange.
type ValueError struct {
	Row   int // Row counts from 0 in the column given.
	Bytes int // length of the value
	Err   error
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("decimal: row %d: a value of %d bytes: %v", e.Row, e.Bytes, e.Err)
}

// Unwrap returns ErrLength or ErrRange.
func (e *ValueError) Unwrap() error { return e.Err }

// checkScale returns ErrScale if a scale is too large.
func checkScale(scale uint8) error {
	if scale > MaxScale {
		return fmt.Errorf("scale %d: %w", scale, ErrScale)
	}
	return nil
}

// Int64ToFloat32 writes the float32 nearest to n / 10^scale for each n of src to dst, which has the same length.
func Int64ToFloat32(dst []float32, src []int64, scale uint8) error {
	if err := checkScale(scale); err != nil {
		return err
	}
	for i, n := range src {
		dst[i] = float32Of(n, scale)
	}
	return nil
}

// Int64ToFloat64 writes the float64 nearest to n / 10^scale for each n of src to dst, which has the same length.
func Int64ToFloat64(dst []float64, src []int64, scale uint8) error {
	if err := checkScale(scale); err != nil {
		return err
	}
	for i, n := range src {
		dst[i] = float64Of(n, scale)
	}
	return nil
}

// BytesToFloat32 converts a column of len(dst) values, value i being data[offsets[i]:offsets[i+1]]. valid is nil, or
// has a byte a value; a value of validity 0 is a null, whose dst is 0. On an error dst is undefined.
func BytesToFloat32(dst []float32, offsets []uint32, data, valid []byte, scale uint8) error {
	return convertBytes(dst, offsets, data, valid, scale, func(w wide) (float32, bool) {
		if n, ok := w.int64(); ok {
			return float32Of(n, scale), true
		}
		return w.float32(scale), true
	})
}

// BytesToFloat64 converts a column as BytesToFloat32 does, to float64.
func BytesToFloat64(dst []float64, offsets []uint32, data, valid []byte, scale uint8) error {
	return convertBytes(dst, offsets, data, valid, scale, func(w wide) (float64, bool) {
		if n, ok := w.int64(); ok {
			return float64Of(n, scale), true
		}
		return w.float64(scale), true
	})
}

// BytesToInt64 converts a column as BytesToFloat32 does, to the unscaled integers.
func BytesToInt64(dst []int64, offsets []uint32, data, valid []byte) error {
	return convertBytes(dst, offsets, data, valid, 0, wide.int64)
}

// convertBytes applies convert to every value of a column that is not null. convert reports whether the value fits.
func convertBytes[T int64 | float32 | float64](dst []T, offsets []uint32, data, valid []byte, scale uint8,
	convert func(wide) (T, bool)) error {
	if err := checkScale(scale); err != nil {
		return err
	}
	if err := bytecolumn.Check(len(dst), offsets, len(data), valid); err != nil {
		return fmt.Errorf("decimal: %w", err)
	}
	for i := range dst {
		if valid != nil && valid[i] == 0 {
			dst[i] = 0
			continue
		}
		value := data[offsets[i]:offsets[i+1]]
		if len(value) == 0 || len(value) > MaxBytes {
			return &ValueError{Row: i, Bytes: len(value), Err: ErrLength}
		}
		var fits bool
		if dst[i], fits = convert(wideOf(value)); !fits {
			return &ValueError{Row: i, Bytes: len(value), Err: ErrRange}
		}
	}
	return nil
}
