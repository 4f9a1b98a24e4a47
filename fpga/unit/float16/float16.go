package float16

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// Size is the length of a binary16 in bytes.
const Size = 2

// ErrLength says that a value does not have 2 bytes.
var ErrLength = errors.New("float16: a value is not 2 bytes long")

// ToFloat32 converts a column of len(dst) values, value i being data[offsets[i]:offsets[i+1]]. valid is nil, or has a
// byte a value; a value of validity 0 is a null, whose dst is 0. On an error dst is undefined.
func ToFloat32(dst []float32, offsets []uint32, data, valid []byte) error {
	if err := bytecolumn.Check(len(dst), offsets, len(data), valid); err != nil {
		return fmt.Errorf("float16: %w", err)
	}
	for i := range dst {
		if valid != nil && valid[i] == 0 {
			dst[i] = 0
			continue
		}
		value := data[offsets[i]:offsets[i+1]]
		if len(value) != Size {
			return fmt.Errorf("row %d has %d bytes: %w", i, len(value), ErrLength)
		}
		dst[i] = math.Float32frombits(widen(binary.LittleEndian.Uint16(value)))
	}
	return nil
}

// widen returns the bits of the float32 of a binary16.
func widen(half uint16) uint32 {
	sign, exponent, fraction := uint32(half>>15)<<31, uint32(half>>10&31), uint32(half&1023)
	switch {
	case exponent == 31: // infinity, NaN
		return sign | 255<<23 | fraction<<13
	case exponent > 0:
		return sign | (exponent+127-15)<<23 | fraction<<13
	case fraction == 0:
		return sign
	}
	shift := uint32(bits.LeadingZeros16(uint16(fraction))) - 5 // of the highest bit to the place of the implicit one
	return sign | (127-15+1-shift)<<23 | fraction<<shift&1023<<13
}
