//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

// TestConfigCheckAsTheService: root makes a drive and looks at the configuration as the user who will open it. In
// root's folder the drive is closed to that user, which is said with what to do; in the user's own folder what root
// makes is the user's.
func TestConfigCheckAsTheService(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if os.Geteuid() != 0 || err != nil {
		shared.Missing(t, "only root runs a command as another user")
	}
	uid, err := strconv.Atoi(nobody.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(nobody.Gid)
	require.NoError(t, err)
	// Not below the test's folder, which is closed to others.
	dir, err := os.MkdirTemp("/tmp", "millrace-service-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	command, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	binary := filepath.Join(dir, "millrace")
	require.NoError(t, os.WriteFile(binary, command, 0o755))
	millrace := func(args ...string) (string, error) {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	check := func(folder string) (string, error) {
		conf := filepath.Join(dir, "node.yaml")
		require.NoError(t,
			os.WriteFile(conf, []byte("name: n0\nlisten: ['127.0.0.1:0']\nstate_dir: "+folder+
				"\ndrives: [{name: d0, uri: 'file:"+folder+"/d0.flash'}]\n"), 0o644))
		return millrace("config", "check", conf, "--user", "nobody")
	}
	for _, c := range []struct {
		folder string
		owned  bool
	}{{"roots", false}, {"theirs", true}} {
		folder := filepath.Join(dir, c.folder)
		require.NoError(t, os.Mkdir(folder, 0o755))
		if c.owned {
			require.NoError(t, os.Chown(folder, uid, gid))
		}
		out, err := millrace("drive", "create", "file:"+folder+"/d0.flash?size=1MiB")
		require.NoError(t, err, out)
		out, err = check(folder)
		if c.owned {
			require.NoError(t, err, out)
			assert.Contains(t, out, "can be opened")
			assert.Contains(t, out, "looked at as nobody: fine")
			continue
		}
		require.Error(t, err, out)
		assert.Contains(t, out, "this process runs as nobody, and the file "+folder+"/d0.flash belongs to root")
		assert.Contains(t, out, "chown nobody "+folder+"/d0.flash*")
		assert.Contains(t, out, "2 of 4 parts have a problem, for the user nobody")
		assert.NotContains(t, out, "said above")
	}
}
