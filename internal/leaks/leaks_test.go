package leaks

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatEndsLateIsNoLeak: a goroutine and a file that end after the test, but soon, do not fail it.
func TestWhatEndsLateIsNoLeak(t *testing.T) {
	t.Run("late", func(t *testing.T) {
		Check(t)
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		go func() {
			time.Sleep(50 * time.Millisecond)
			_ = f.Close()
		}()
	})
}

// recorder is a test whose cleanups and errors are kept.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, a ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, a...))
}

// TestLeaksAreErrors checks that goroutines and a file that are left are an error each, which shows them. Several
// goroutines are left, since those of the test before, which are counted at the beginning, may end meanwhile.
func TestLeaksAreErrors(t *testing.T) {
	r := &recorder{TB: t}
	checkWithin(r, time.Millisecond)
	f, err := os.CreateTemp(t.TempDir(), "leak")
	require.NoError(t, err)
	end := make(chan struct{})
	for range 8 {
		go func() { <-end }()
	}
	require.Len(t, r.cleanups, 1)
	r.cleanups[0]()
	close(end)
	require.NoError(t, f.Close())
	require.NotEmpty(t, r.errors)
	assert.Contains(t, r.errors[0], "TestLeaksAreErrors")
	if runtime.GOOS == "linux" {
		require.Len(t, r.errors, 2)
		assert.Contains(t, r.errors[1], f.Name())
	}
}

// TestDescriptorsAreSeen: an open file is in the list with its name, and a closed file is not. Only Linux lists
// descriptors.
func TestDescriptorsAreSeen(t *testing.T) {
	before := openDescriptors()
	if runtime.GOOS != "linux" {
		assert.Empty(t, before)
		return
	}
	f, err := os.CreateTemp(t.TempDir(), "leak")
	require.NoError(t, err)
	assert.Len(t, openDescriptors(), len(before)+1)
	assert.Contains(t, openDescriptors(), f.Name())
	require.NoError(t, f.Close())
	assert.Equal(t, before, openDescriptors())
}
