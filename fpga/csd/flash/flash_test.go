package flash

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/openfiles"
)

func eachFlash(t *testing.T, size int64, f func(t *testing.T, flash Flash)) {
	t.Run("memory", func(t *testing.T) {
		m, err := NewMemory(size)
		require.NoError(t, err)
		defer func() { assert.NoError(t, m.Close()) }()
		f(t, m)
	})
	t.Run("file", func(t *testing.T) {
		ff, err := OpenFile(filepath.Join(t.TempDir(), "flash"), true)
		require.NoError(t, err)
		ff.SetSize(size)
		require.NoError(t, ff.Extend())
		defer func() { assert.NoError(t, ff.Close()) }()
		f(t, ff)
	})
}

func TestFlashIsBytes(t *testing.T) {
	const size = 3 << 20
	eachFlash(t, size, func(t *testing.T, flash Flash) {
		model := make([]byte, size)
		r := rand.New(rand.NewPCG(1, 2))
		check := func() {
			got := make([]byte, size)
			n, err := flash.ReadAt(got, 0)
			require.NoError(t, err)
			require.Equal(t, size, n)
			require.True(t, bytes.Equal(model, got))
		}
		for range 200 {
			off := r.Int64N(size)
			n := min(r.Int64N(1<<20), size-off)
			if r.IntN(3) == 0 {
				require.NoError(t, flash.Discard(off, n))
				clear(model[off : off+n])
				continue
			}
			b := bytes.Repeat([]byte{byte(r.IntN(255) + 1)}, int(n))
			_, err := flash.WriteAt(b, off)
			require.NoError(t, err)
			copy(model[off:], b)
		}
		check()
		require.NoError(t, flash.Sync())
		require.NoError(t, flash.Discard(0, size))
		clear(model)
		check()
		assert.Equal(t, int64(size), flash.Size())
		assert.False(t, flash.ReadOnly())
	})
}

func TestFlashBounds(t *testing.T) {
	eachFlash(t, 8192, func(t *testing.T, flash Flash) {
		b := make([]byte, 512)
		for _, off := range []int64{-1, 8192 - 511, 8192, 1 << 60} {
			_, err := flash.ReadAt(b, off)
			require.ErrorIs(t, err, errOutside, "read at %d", off)
			_, err = flash.WriteAt(b, off)
			require.ErrorIs(t, err, errOutside, "write at %d", off)
			require.ErrorIs(t, flash.Discard(off, 512), errOutside)
		}
		require.ErrorIs(t, flash.Discard(0, -1), errOutside)
		_, err := flash.ReadAt(b, 8192-512)
		require.NoError(t, err)
	})
}

func TestReadersSeeWholeBlocks(t *testing.T) {
	eachFlash(t, 1<<20, func(t *testing.T, flash Flash) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 200 {
					if i%2 == 0 {
						_, err := flash.WriteAt(bytes.Repeat([]byte{byte(j)}, 4096), 4096)
						assert.NoError(t, err)
						continue
					}
					b := make([]byte, 4096)
					_, err := flash.ReadAt(b, 4096)
					assert.NoError(t, err)
					assert.Equal(t, bytes.Repeat(b[:1], 4096), b)
				}
			})
		}
		wg.Wait()
	})
}

func TestFileFlashIsSparse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flash")
	ff, err := OpenFile(path, true)
	require.NoError(t, err)
	defer func() { assert.NoError(t, ff.Close()) }()
	ff.SetSize(1 << 40)
	require.NoError(t, ff.Extend())
	_, err = ff.WriteAt([]byte("end"), 1<<40-3)
	require.NoError(t, err)
	b := make([]byte, 3)
	_, err = ff.ReadAt(b, 1<<40-3)
	require.NoError(t, err)
	assert.Equal(t, "end", string(b))
	// Somebody cuts the file while it is open: flash that was never written is zeros.
	require.NoError(t, os.Truncate(path, 4096))
	_, err = ff.ReadAt(b, 1<<40-3)
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 3), b)
	assert.Equal(t, &Range{From: 4096, To: 1 << 40}, ff.Lost())
}

func TestFilesReadAsOneFlash(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "files")
		require.NoError(r, err)
		defer func() { _ = os.RemoveAll(dir) }()
		lba := rapid.SampledFrom([]int{512, 4096}).Draw(r, "lba")
		sizes := rapid.SliceOfN(rapid.IntRange(0, 9000), 1, 5).Draw(r, "sizes")
		var model []byte
		var paths []string
		for i, n := range sizes {
			b := bytes.Repeat([]byte{byte(i + 1)}, n)
			p := filepath.Join(dir, string(rune('a'+i)))
			require.NoError(r, os.WriteFile(p, b, 0o644))
			paths = append(paths, p)
			model = append(model, b...)
			model = append(model, make([]byte, (lba-len(model)%lba)%lba)...)
		}
		if len(model) == 0 {
			model = make([]byte, lba)
		}
		pool := openfiles.New(rapid.IntRange(1, 8).Draw(r, "budget"))
		flash, extents, err := Files(paths, lba, pool)
		require.NoError(r, err)
		defer func() { require.NoError(r, flash.Close()) }()
		require.Equal(r, int64(len(model)), flash.Size())
		for i, e := range extents {
			require.Equal(r, paths[i], e.Path)
			require.Equal(r, int64(sizes[i]), e.Size)
			require.Zero(r, e.Offset%int64(lba))
			require.Equal(r, bytes.Repeat([]byte{byte(i + 1)}, sizes[i]), model[e.Offset:e.Offset+e.Size])
		}
		off := rapid.IntRange(0, len(model)).Draw(r, "off")
		n := rapid.IntRange(0, len(model)-off).Draw(r, "n")
		got := bytes.Repeat([]byte{0xee}, n)
		_, err = flash.ReadAt(got, int64(off))
		require.NoError(r, err)
		require.Equal(r, model[off:off+n], got)
	})
}

func TestFilesAreReadOnlyAndMustStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part")
	require.NoError(t, os.WriteFile(path, make([]byte, 5000), 0o644))
	flash, _, err := Files([]string{path}, 512, nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, flash.Close()) }()
	assert.True(t, flash.ReadOnly())
	_, err = flash.WriteAt([]byte{1}, 0)
	require.ErrorIs(t, err, ErrReadOnly)
	require.ErrorIs(t, flash.Discard(0, 1), ErrReadOnly)
	require.NoError(t, flash.Sync())
	require.NoError(t, os.Truncate(path, 100))
	_, err = flash.ReadAt(make([]byte, 512), 512)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	_, _, err = Files([]string{path, path + ".none"}, 512, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, _, err = Files([]string{t.TempDir()}, 512, nil)
	require.Error(t, err)
	_, _, err = Files([]string{path}, 100, nil)
	require.ErrorIs(t, err, ErrGeometry)
}
