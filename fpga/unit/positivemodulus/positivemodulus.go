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
	div  floormod.Divisor // where m is not a power of two
	mask int64            // m-1, where it is one
	bits bool             // m is a power of two, 1 too
}

// New returns the modulus m, 1 <= m <= 2^63-1.
func New(m int64) (*Modulus, error) {
	if m <= 0 {
		return nil, fmt.Errorf("modulus %d: %w", m, ErrModulus)
	}
	if m&(m-1) == 0 {
		return &Modulus{mask: m - 1, bits: true}, nil
	}
	return &Modulus{div: floormod.New(m)}, nil
}

// Mod sets dst[i] to floorMod(src[i], m) for every i of src. dst must be at least as long as src and may be src.
func (m *Modulus) Mod(dst, src []int64) {
	mod.Pick()(m, dst[:len(src)], src)
}
