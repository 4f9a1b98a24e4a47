//go:build !purego

package checksum

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// TestPath proves which path runs.
func TestPath(t *testing.T) {
	proving.EachLevel(t, func(t *testing.T) {
		_, done := folded(0, random(least+stride/2))
		if cpu.ARM64.HasPMULL && simd.Current() == simd.NEON {
			require.Equal(t, least, done)
		} else {
			require.Zero(t, done)
		}
		_, done = folded(0, random(least-1))
		require.Zero(t, done)
	})
}
