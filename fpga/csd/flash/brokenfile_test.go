package flash

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brokenFile is a file that can be neither read at an offset, nor written there, nor synced.
func brokenFile(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, errors.Join(r.Close(), w.Close())) })
	return w
}

func TestFileFlashCountsWhatItDid(t *testing.T) {
	ff, err := OpenFile(filepath.Join(t.TempDir(), "flash"), true)
	require.NoError(t, err)
	defer func() { assert.NoError(t, ff.Close()) }()
	ff.SetSize(4 << 20)
	require.NoError(t, ff.Extend())
	good := ff.f
	ff.f = brokenFile(t)
	defer func() { ff.f = good }()
	b := make([]byte, 4096)
	n, err := ff.ReadAt(b, 0)
	require.Error(t, err)
	assert.Zero(t, n, "read")
	n, err = ff.WriteAt(b, 0)
	require.Error(t, err)
	assert.Zero(t, n, "written")
}

func TestStripesCountWhatWasDone(t *testing.T) {
	var s stripes
	failed := errors.New("failed")
	n, err := s.eachStripe(stripeSize-100, 3*stripeSize, true, func(_ int64, from, to int) (int, error) {
		if from < 100+stripeSize {
			return to - from, nil
		}
		return 7, failed
	})
	require.ErrorIs(t, err, failed)
	assert.Equal(t, 100+stripeSize+7, n)
	n, err = s.eachStripe(5, 10, false, func(_ int64, from, to int) (int, error) { return to - from, nil })
	require.NoError(t, err)
	assert.Equal(t, 10, n)
}
