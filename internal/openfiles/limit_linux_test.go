package openfiles

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestALimitBelowTheBudget lowers the limit of descriptors to those that the process has: the pool gives its idle ones
// up, and says what to do where it has none.
func TestALimitBelowTheBudget(t *testing.T) {
	const more = 8
	paths := writeFiles(t, more)
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	assert.Equal(t, max(int(min(before.Cur, 1<<31-1))/4, 1), New(0).Budget())
	pool := New(1 << 20)
	var files []*File
	for _, path := range paths[:more/2] {
		f, err := pool.Open(path)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		files = append(files, f)
	}
	highest, err := files[more/2-1].Acquire()
	require.NoError(t, err)
	now := before
	now.Cur = uint64(highest.Fd()) + 1
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) }()
	f, err := pool.Open(paths[more/2])
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()

	now.Cur = 3
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now))
	_, err = pool.Open(paths[more-1])
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "let this process open more (ulimit -n)")
	files[more/2-1].Release()
}
