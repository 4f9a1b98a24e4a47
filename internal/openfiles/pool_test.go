package openfiles

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/internal/shared"
)

// writeFiles makes n files that contain their numbers, in three digits.
func writeFiles(t *testing.T, n int) []string {
	t.Helper()
	paths, dir := make([]string, n), t.TempDir()
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(paths[i], fmt.Appendf(nil, "%03d", i), 0o600))
	}
	return paths
}

// openUnder counts the descriptors of this process that lead to files of a folder.
func openUnder(t *testing.T, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		shared.Missing(t, "the descriptors of this process are not listed: %v", err)
	}
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, dir+"/") {
			n++
		}
	}
	return n
}

// TestMoreFilesThanTheBudget reads files from several goroutines, of which only some are open at a time.
func TestMoreFilesThanTheBudget(t *testing.T) {
	leaks.Check(t)
	const count, budget, readers = 100, 5, 4
	paths := writeFiles(t, count)
	pool := New(budget)
	files := make([]*File, count)
	for i, path := range paths {
		var err error
		files[i], err = pool.Open(path)
		require.NoError(t, err)
		require.LessOrEqual(t, openUnder(t, filepath.Dir(path)), budget)
	}
	var reads sync.WaitGroup
	for reader := range readers {
		reads.Go(func() {
			order := rand.New(rand.NewPCG(1, uint64(reader)))
			for range 2000 {
				i := order.IntN(count)
				b := make([]byte, 3)
				_, err := files[i].ReadAt(b, 0)
				if !assert.NoError(t, err) || !assert.Equal(t, fmt.Sprintf("%03d", i), string(b)) {
					return
				}
			}
		})
	}
	reads.Wait()
	assert.LessOrEqual(t, openUnder(t, filepath.Dir(paths[0])), budget)
	again, err := pool.Open(paths[0])
	require.NoError(t, err)
	assert.Same(t, files[0], again)
	require.NoError(t, again.Close())

	// Descriptors that are used exceed the budget, and no more than that.
	for _, f := range files[:10] {
		_, err := f.Acquire()
		require.NoError(t, err)
	}
	assert.Equal(t, 10, openUnder(t, filepath.Dir(paths[0])))
	for _, f := range files[:10] {
		f.Release()
	}
	assert.Equal(t, budget, openUnder(t, filepath.Dir(paths[0])))
	for _, f := range files {
		require.NoError(t, f.Close())
		_, err := f.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, os.ErrClosed)
	}
	assert.Zero(t, pool.open)
	assert.Empty(t, pool.byPath)
}

// TestTheFileUsedLongestAgoIsClosed checks which descriptor the pool closes, and that a removed file can be read as
// long as it has a descriptor.
func TestTheFileUsedLongestAgoIsClosed(t *testing.T) {
	paths := writeFiles(t, 3)
	pool := New(2)
	var files []*File
	for _, path := range paths[:2] {
		f, err := pool.Open(path)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		files = append(files, f)
	}
	_, err := files[0].ReadAt(make([]byte, 1), 0)
	require.NoError(t, err)
	for _, path := range paths[:2] {
		require.NoError(t, os.Remove(path))
	}
	f, err := pool.Open(paths[2])
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = files[0].ReadAt(make([]byte, 1), 0)
	require.NoError(t, err)
	_, err = files[1].ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAFileIsOpenedAgainAsItWas changes a file whose descriptor the pool has closed.
func TestAFileIsOpenedAgainAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		want   string
	}{
		"longer": {func(path string) error { return os.WriteFile(path, []byte("0000"), 0o600) }, "was written at"},
		"written": {func(path string) error {
			return os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000, 0)) // two writes may have one time
		}, "was written at 20"},
		"replaced": {func(path string) error {
			return os.Rename(filepath.Join(filepath.Dir(path), "1"), path)
		}, "was replaced by another file"},
		"a folder": {func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := writeFiles(t, 3)
			pool := New(1)
			f, err := pool.Open(paths[0])
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			other, err := pool.Open(paths[2])
			require.NoError(t, err)
			defer func() { require.NoError(t, other.Close()) }()
			require.NoError(t, c.change(paths[0]))
			for range 2 {
				_, err = f.ReadAt(make([]byte, 1), 0)
				require.ErrorContains(t, err, paths[0])
				require.ErrorContains(t, err, c.want)
			}
			var changed *ChangedError
			assert.Equal(t, name != "a folder", errors.As(err, &changed))
			assert.Zero(t, pool.open)
		})
	}
}
