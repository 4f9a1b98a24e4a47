package lane

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl/cosim"
	"github.com/millrace/millrace/internal/shared"
)

// Apart has every chain go through one unit behind the other, and never through unit lane.
func (s *Simulation) Apart() { s.apart = true }

// Simulate returns a simulation. Without the tools it skips the test, or fails it if they are required.
func Simulate(t *testing.T) *Simulation {
	t.Helper()
	folder := t.TempDir()
	if cache, err := os.UserCacheDir(); err == nil {
		folder = filepath.Join(cache, "millrace", "rtl")
	}
	s, err := New(t.Context(), Options{Folder: folder})
	if errors.Is(err, cosim.ErrTools) {
		shared.MissingSimulator(t, err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
