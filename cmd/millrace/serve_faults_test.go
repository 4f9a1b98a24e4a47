package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk"
)

// TestServeFaults: a drive served with a script does what that says, in blocks of its own size, and says so.
func TestServeFaults(t *testing.T) {
	dir := t.TempDir()
	script := dir + "/faults.yaml"
	require.NoError(t, os.WriteFile(script, []byte("fail: [{operation: read, lba: 100, times: 2}]\ndrop: [{pdu: 30, "+
		"queue: io}]\n"), 0o600))
	line, _ := startServe(t, "--flash", dir+"/f.flash", "--size", "16MiB", "--lba", "4096", "--faults", script)
	assert.True(t, strings.HasSuffix(line, "; with the faults of "+script+"\n"), line)
	dev, err := sdk.Open(t.Context(), strings.TrimSuffix(strings.Fields(line)[1], ":"), sdk.DeviceOptions{})
	require.NoError(t, err)
	defer dev.Close()
	b := make([]byte, 4096)
	for range 2 {
		require.ErrorIs(t, dev.ReadBlocks(t.Context(), b, 100), nvme.UnrecoveredReadError)
		require.NoError(t, dev.ReadBlocks(t.Context(), b, 99))
		require.NoError(t, dev.ReadBlocks(t.Context(), b, 101))
	}
	for range 50 { // over the connection that drops
		require.NoError(t, dev.ReadBlocks(t.Context(), b, 100))
	}
}

func TestServeFaultsRefused(t *testing.T) {
	dir := t.TempDir()
	script := dir + "/faults.yaml"
	require.NoError(t, os.WriteFile(script, []byte("fail:\n- {operation: read, lab: 1}\nflip: 3\n"), 0o600))
	code, _, errs := millrace(t, "drive", "serve", "--create", "--flash", dir+"/f.flash", "--listen", "127.0.0.1:0",
		"--faults", script)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "--faults: "+script+`:2:21: fail: unknown key "lab"`)
	assert.Contains(t, errs, "; 3:7: flip: want a list")
	assert.NoFileExists(t, dir+"/f.flash")
	code, _, errs = millrace(t, "drive", "serve", "--create", "--flash", dir+"/f.flash", "--faults", dir+"/none.yaml")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "no such file")
}
