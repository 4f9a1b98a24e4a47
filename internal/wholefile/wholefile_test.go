package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, want := range []string{"first", "second"} {
		require.NoError(t, Write(path, []byte(want)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

// A write that fails leaves no temporary file, and leaves the old file as it was.
func TestWriteThatFails(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "full"), 0o700))
	require.Error(t, Write(taken, []byte("x")), "a folder that holds something has the name")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.ErrorIs(t, Write(filepath.Join(dir, "none", "a"), nil), fs.ErrNotExist)
}

func TestWriteJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "rates.json")
	require.NoError(t, WriteJSON(path, []int{1, 2}))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "[\n 1,\n 2\n]\n", string(b))
	require.Error(t, WriteJSON(path, func() {}))
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, b, kept)
}

// TestNamesAreOnTheDisk watches the syncs of folders: each comes after the names, and its error is that of the call.
func TestNamesAreOnTheDisk(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	for _, test := range []struct {
		name  string
		call  func() error
		named []string
	}{
		{"write", func() error { return Write(a, []byte("1")) }, []string{a}},
		{"rename", func() error { return Rename(a, b) }, []string{b}},
		{"set", func() error {
			s, err := NewSet(folder, true)
			require.NoError(t, err)
			add(t, s, "a", "2")
			add(t, s, "b", "2")
			err = s.Commit()
			require.NoError(t, s.Close())
			return err
		}, []string{a, b}},
	} {
		t.Run(test.name, func(t *testing.T) {
			syncs, lost := 0, errors.New("the disk is gone")
			syncFolder = func(path string) error {
				syncs++
				assert.Equal(t, folder, path)
				for _, name := range test.named {
					assert.FileExists(t, name)
				}
				return errors.Join(SyncFolder(path), lost)
			}
			defer func() { syncFolder = SyncFolder }()
			require.ErrorIs(t, test.call(), lost)
			assert.Equal(t, 1, syncs)
		})
	}
	require.ErrorIs(t, SyncFolder(filepath.Join(folder, "none")), fs.ErrNotExist)
}

// TestCheckFolderOf checks that a folder in which no file can be made is an error, and that the check leaves nothing.
func TestCheckFolderOf(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, CheckFolderOf(filepath.Join(dir, "x")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	path := filepath.Join(dir, "folder", "x")
	require.EqualError(t, CheckFolderOf(path), path+": no file can be made in its folder: no such file or directory")
	require.NoError(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
	require.Error(t, CheckFolderOf(path), "a file")
}
