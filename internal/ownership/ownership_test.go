//go:build unix

package ownership

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

// service is a user's number that no machine gives to a person.
const service = 64999

func ownerOf(t *testing.T, path string) uint32 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestInherit needs root, as operators are.
func TestInherit(t *testing.T) {
	folder := t.TempDir()
	made := filepath.Join(folder, "a")
	require.NoError(t, os.MkdirAll(filepath.Join(made, "b"), 0o700))
	if os.Geteuid() != 0 {
		require.NoError(t, Inherit(made, folder))
		shared.Missing(t, "only root makes what another owns")
	}
	require.NoError(t, Inherit(made, folder))
	assert.Zero(t, ownerOf(t, made), "root's folder, root's file")
	require.NoError(t, os.Chown(folder, service, service))
	require.NoError(t, Inherit(made, folder))
	assert.EqualValues(t, service, ownerOf(t, made))
	assert.EqualValues(t, service, ownerOf(t, filepath.Join(made, "b")))
	assert.ErrorIs(t, Inherit(made, filepath.Join(folder, "none")), fs.ErrNotExist)
}

func TestExplain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d0.flash")
	other := errors.New("another")
	assert.Equal(t, other, Explain(other, path))
	denied := &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	err := Explain(denied, path)
	require.ErrorIs(t, err, fs.ErrPermission)
	assert.ErrorContains(t, err, "the folder "+filepath.Dir(path)+" belongs to ")
	require.NoError(t, os.WriteFile(path, nil, 0o640))
	err = Explain(denied, path)
	assert.ErrorContains(t, err, "the file "+path+" belongs to ")
	assert.ErrorContains(t, err, "with mode 0640: chown ")
	assert.ErrorContains(t, err, path+"*")
}
