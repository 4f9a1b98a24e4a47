package unsignedmodulus

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/internal/floormod"
)

// ErrModulus says that the modulus is not above 0.
var ErrModulus = errors.New("unsigned_modulus: modulus must be above 0")

// Modulus computes remainders of one modulus.
type Modulus struct{ divisor floormod.Unsigned }

// New returns the modulus m, in [1, 2^63-1].
func New(m int64) (Modulus, error) {
	if m < 1 {
		return Modulus{}, fmt.Errorf("%d: %w", m, ErrModulus)
	}
	return Modulus{floormod.NewUnsigned(m)}, nil
}

// Mod sets dst[i] to the remainder of the 64 bits of src[i], in [0, m). Both have the same length. dst may be src.
func (m Modulus) Mod(dst, src []int64) { m.divisor.Reduce(dst, src) }
