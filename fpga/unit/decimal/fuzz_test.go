package decimal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/decimal"
)

// FuzzDecimal converts any bytes: those that are no decimal are refused, all others are what the references say.
func FuzzDecimal(f *testing.F) {
	f.Add([]byte{}, uint8(0))
	f.Add([]byte{0x80}, uint8(2))
	f.Add(make([]byte, decimal.MaxBytes+1), uint8(decimal.MaxScale))
	f.Add([]byte{0x01, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 1}, uint8(23))
	f.Fuzz(func(t *testing.T, value []byte, scale uint8) {
		dst, offsets := make([]float64, 1), []uint32{0, uint32(len(value))}
		err := decimal.BytesToFloat64(dst, offsets, value, nil, scale)
		switch {
		case scale > decimal.MaxScale:
			require.ErrorIs(t, err, decimal.ErrScale)
		case len(value) == 0 || len(value) > decimal.MaxBytes:
			require.ErrorIs(t, err, decimal.ErrLength)
		default:
			require.NoError(t, err)
			requireReference(t, decimal.Unscaled(value), scale)
		}
	})
}
