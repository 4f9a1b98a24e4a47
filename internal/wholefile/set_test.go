package wholefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contents are the files of a folder by name.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(b)
	}
	return files
}

// add writes a file of a set.
func add(t *testing.T, s *Set, name, text string) {
	t.Helper()
	f, err := s.Create(name)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestSet(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "here")
	s, err := NewSet(folder, false)
	require.NoError(t, err)
	add(t, s, "a", "1")
	add(t, s, "b", "2")
	_, err = NewSet(folder, true)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, folder)
	assert.NoFileExists(t, s.Path("a"), "no file has its name before all are whole")
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close())
	assert.Equal(t, map[string]string{"a": "1", "b": "2"}, contents(t, folder))

	again, err := NewSet(folder, false)
	require.NoError(t, err)
	_, err = again.Create("b")
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, again.Close())

	again, err = NewSet(folder, true)
	require.NoError(t, err)
	add(t, again, "b", "3")
	require.NoError(t, again.Commit())
	require.NoError(t, again.Close())
	assert.Equal(t, map[string]string{"a": "1", "b": "3"}, contents(t, folder))
}

// A set that is not committed leaves the folder as it was, whatever an earlier one that was killed has left.
func TestSetThatFails(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a": "old", "a.partial": "killed", ".writing.lock": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "folder"), 0o700))
	s, err := NewSet(folder, true)
	require.NoError(t, err)
	add(t, s, "a", "new")
	_, err = s.Create("folder")
	require.ErrorContains(t, err, "is a folder")
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(folder, "folder")))
	assert.Equal(t, map[string]string{"a": "old"}, contents(t, folder))

	_, err = NewSet(filepath.Join(folder, "a"), false)
	require.Error(t, err, "a file has the folder's name")
}
