package positivemodulus

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/internal/floormod"
)

// ErrModulus says that the modulus is not above zero.
var ErrModulus = errors.New("positive_modulus: the modulus must be larger than 0")

// Modulus computes floorMod(x, m) for one m.
type Modulus struct {
	div floormod.Divisor
	one bool // m is 1: every remainder is 0
}

// New returns the modulus m, 1 <= m <= 2^63-1.
func New(m int64) (*Modulus, error) {
	if m <= 0 {
		return nil, fmt.Errorf("modulus %d: %w", m, ErrModulus)
	}
	if m == 1 {
		return &Modulus{one: true}, nil
	}
	return &Modulus{div: floormod.New(m)}, nil
}

// Mod sets dst[i] to floorMod(src[i], m) for every i of src. dst must be at least as long as src and may be src.
func (m *Modulus) Mod(dst, src []int64) {
	dst = dst[:len(src)]
	if m.one {
		clear(dst)
		return
	}
	mod.Pick()(m, dst, src)
}
