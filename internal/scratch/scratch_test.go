//go:build unix

package scratch

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// childOf is the variable that has the test's process make a folder in the folder it names, and wait.
const childOf = "SCRATCH_CHILD"

func TestMain(m *testing.M) {
	parent := os.Getenv(childOf)
	if parent == "" {
		os.Exit(m.Run())
	}
	f, err := Make(parent, "kind-")
	if err != nil {
		os.Exit(1)
	}
	if err := os.WriteFile(filepath.Join(f.Path, "data"), []byte("x"), 0o600); err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("made\n")
	select {}
}

// names are the names in a folder.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestMake(t *testing.T) {
	parent := t.TempDir()
	f, err := Make(parent, "kind-")
	require.NoError(t, err)
	info, err := os.Stat(f.Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	assert.Empty(t, names(t, f.Path))
	require.NoError(t, os.WriteFile(filepath.Join(f.Path, "data"), nil, 0o600))
	other, err := Make(parent, "kind-")
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(f.Path, "data"), "a folder in use is not abandoned")
	require.NoError(t, f.Close())
	require.NoError(t, other.Close())
	assert.Empty(t, names(t, parent))

	t.Setenv("TMPDIR", parent)
	f, err = Make("", "kind-")
	require.NoError(t, err)
	assert.Equal(t, parent, filepath.Dir(f.Path))
	require.NoError(t, f.Close())
	_, err = Make(filepath.Join(parent, "none"), "kind-")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAbandoned checks that the folder of a process that was killed is removed by the next one of its prefix, and no
// other folder or file is.
func TestAbandoned(t *testing.T) {
	parent := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childOf+"="+parent)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 16))
	require.NoError(t, err)
	mine := []string{"kind-notes", "other-1", "other-1.lock"}
	for _, name := range mine {
		require.NoError(t, os.WriteFile(filepath.Join(parent, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(parent, "kind-folder"), 0o700))

	next := func() []string {
		f, err := Make(parent, "kind-")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return names(t, parent)
	}
	assert.Len(t, next(), len(mine)+1+2, "the process runs: its folder and lock are there")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	assert.ElementsMatch(t, append(mine, "kind-folder"), next())
}

// TestMakeAtOnce: no process removes the folder that another one has just made.
func TestMakeAtOnce(t *testing.T) {
	parent := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				f, err := Make(parent, "kind-")
				if !assert.NoError(t, err) {
					return
				}
				assert.NoError(t, os.WriteFile(filepath.Join(f.Path, "data"), nil, 0o600))
				assert.NoError(t, f.Close())
			}
		})
	}
	wg.Wait()
	assert.Empty(t, names(t, parent))
}
