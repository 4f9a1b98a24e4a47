//go:build !debug

package sdk

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestViewKeptTooLongReadsZeros(t *testing.T) {
	d, err := Open(t.Context(), "mem:?size=1MiB&slm=1MiB", DeviceOptions{})
	require.NoError(t, err)
	slm, err := d.ReserveSLM(t.Context(), 8192)
	require.NoError(t, err)
	require.NoError(t, slm.Store(t.Context(), 0, noisy(8192)))
	view, ok := slm.View(0, 8192)
	require.True(t, ok)
	require.Equal(t, noisy(8192), view)
	require.NoError(t, d.Close())
	assert.Equal(t, make([]byte, 8192), view, "a bug of the caller's, but no crash")
}
