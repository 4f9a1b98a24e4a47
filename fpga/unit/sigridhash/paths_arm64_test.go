//go:build !purego

package sigridhash

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernels of NEON take whole turns of their loops, and the divisors whose remainders are int32.
func TestIDsThatNEONTakes(t *testing.T) {
	for _, c := range []struct {
		max     int64
		n, want int
	}{
		{2, 13, 0}, {2, 14, 14}, {500000, 27, 14}, {500000, 28, 28}, {1 << 31, 41, 28}, {1<<31 + 1, 41, 0},
		{math.MaxInt64, 41, 0},
	} {
		h, err := New(Params{Max: c.max})
		require.NoError(t, err)
		require.Equal(t, c.want, h.idsNEON(c.n), "%d ids, max %d", c.n, c.max)
	}
}
