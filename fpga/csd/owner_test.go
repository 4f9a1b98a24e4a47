package csd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

// TestOwner: a process that finds a drive open learns the owner, and an owner that is gone is not named.
func TestOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d0.flash")
	o := Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: 1 << 20}
	d, err := Open(o)
	require.NoError(t, err)
	o.Create = false
	_, err = Open(o)
	require.ErrorIs(t, err, ErrBusy)
	var b *BusyError
	require.ErrorAs(t, err, &b)
	assert.Nil(t, b.Owner)

	require.NoError(t, d.Own(Owner{Name: "node n0", Drive: "d0", URLs: []string{"unix:/run/n0.sock"}}))
	_, err = Open(o)
	require.ErrorAs(t, err, &b)
	require.NotNil(t, b.Owner)
	assert.Equal(t, Owner{Process: os.Getpid(), Name: "node n0", Drive: "d0", URLs: []string{"unix:/run/n0.sock"}},
		*b.Owner)
	assert.ErrorContains(t, err, "node n0")
	left, err := os.ReadFile(ownerPath(path))
	require.NoError(t, err)
	require.NoError(t, d.Close())
	assert.NoFileExists(t, ownerPath(path))

	// An owner that was killed leaves the file; the next owner, which reports nothing, removes it.
	require.NoError(t, os.WriteFile(ownerPath(path), left, 0o644))
	d, err = Open(o)
	require.NoError(t, err)
	_, err = Open(o)
	require.ErrorAs(t, err, &b)
	assert.Nil(t, b.Owner)
	require.NoError(t, d.Close())
}

// FuzzOwner: what another process wrote is an owner whole, or none.
func FuzzOwner(f *testing.F) {
	f.Add([]byte(`{"process":1,"name":"node n0","drive":"d0","urls":["unix:/x"]}`))
	f.Add([]byte(`{"process":-1}`))
	f.Add([]byte(`{"process":1e99,"urls":5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o := parseOwner(b); o != nil {
			assert.Positive(t, o.Process)
			assert.NotEmpty(t, o.Name)
			_, err := json.Marshal(o)
			require.NoError(t, err)
		}
	})
}

// TestADriveThatRootMakes belongs to whom its folder belongs, with all its files, also after root has opened it again.
func TestADriveThatRootMakes(t *testing.T) {
	if os.Geteuid() != 0 {
		shared.Missing(t, "only root makes what another owns")
	}
	const service = 64999
	folder := t.TempDir()
	require.NoError(t, os.Chown(folder, service, service))
	path := filepath.Join(folder, "d0.flash")
	for _, create := range []bool{true, false} {
		d, err := Open(Options{Path: path, Create: create, Size: 1 << 20, SLMBytes: 1 << 20})
		require.NoError(t, err)
		require.NoError(t, d.Own(Owner{Name: "n", Drive: "d"}))
		all, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(all), 3)
		for _, e := range all {
			info, err := e.Info()
			require.NoError(t, err)
			assert.EqualValues(t, service, info.Sys().(*syscall.Stat_t).Uid, e.Name())
			assert.EqualValues(t, service, info.Sys().(*syscall.Stat_t).Gid, e.Name())
		}
		require.NoError(t, d.Close())
	}
}

// TestADriveOfAnother: an error of permission says who may open the drive and what to do. Root may open every file;
// that another user is refused when root runs the tests is shown by TestConfigCheckAsTheService of cmd/millrace.
func TestADriveOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d0.flash")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: 1 << 20})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, os.Chmod(path, 0))
	d, err = Open(Options{Path: path, SLMBytes: 1 << 20})
	if os.Geteuid() == 0 {
		require.NoError(t, err)
		require.NoError(t, d.Close())
		return
	}
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, "chown")
	assert.False(t, errors.Is(err, ErrNoDrive))
}
