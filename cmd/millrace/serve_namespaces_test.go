package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp"
)

// activeNamespaces asks a served drive for its active namespaces.
func activeNamespaces(t *testing.T, h *tcp.Host) []uint32 {
	t.Helper()
	cmd, b := nvme.Identify(nvme.CNSActiveNamespaces, 0, 0), make([]byte, nvme.IdentifySize)
	_, err := h.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	return nvme.UnmarshalNamespaceList(b)
}

// TestServeNamespaces: a list gives the drive more namespaces, and SIGHUP makes it follow the changed list while a
// host is connected; a wrong list changes nothing.
func TestServeNamespaces(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "namespaces.yaml")
	say := func(text string) { require.NoError(t, os.WriteFile(list, []byte(text), 0o600)) }
	say("namespaces:\n  - {nsid: 4, flash: a.flash, size: 1MiB}\n  - {nsid: 7, flash: b.flash, size: 2MiB, lba: 4096}\n")
	line, stop := startServe(t, "--flash", dir+"/d.flash", "--size", "1MiB", "--namespaces", list)
	assert.True(t, strings.HasSuffix(line, "; with further namespaces 4, 7\n"), line)
	address, nqn, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(strings.Fields(line)[1], ":"), "tcp://"), "/")
	events := make(chan nvme.AsyncEvent, 64)
	h, err := tcp.Dial(t.Context(), tcp.DialOptions{
		Address: address, Subsystem: nqn, OnEvent: func(e nvme.AsyncEvent) { events <- e },
	})
	require.NoError(t, err)
	defer h.Close()
	require.Equal(t, []uint32{1, 2, 3, 4, 7}, activeNamespaces(t, h))
	data := []byte(strings.Repeat("millrace", 512))
	write := nvme.Write(7, 3, 1, 4096, true)
	_, err = h.IO(t.Context(), &write, data)
	require.NoError(t, err)

	say("namespaces: [{nsid: 7, flash: a.flash}, {nsid: 9, flash: b.flash}]\n") // one moves where another was
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	require.Equal(t, nvme.EventNamespaceChanged, <-events)
	require.Eventually(t, func() bool {
		ids := activeNamespaces(t, h)
		return len(ids) == 5 && ids[3] == 7 && ids[4] == 9
	}, time.Minute, 5*time.Millisecond)
	got := make([]byte, 4096)
	read := nvme.Read(9, 3, 1, 4096)
	_, err = h.IO(t.Context(), &read, got)
	require.NoError(t, err)
	require.Equal(t, data, got)
	read = nvme.Read(4, 0, 1, 512)
	_, err = h.IO(t.Context(), &read, got[:512])
	require.ErrorIs(t, err, nvme.InvalidNamespace)

	require.NoError(t, h.Close())
	stop()
	line, _ = startServe(t, "--flash", dir+"/d.flash", "--namespaces", list)
	assert.Contains(t, line, "; with further namespaces 7, 9\n")
}

func TestServeRefusesNamespaces(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ list, says string }{
		"a list that is wrong": {"namespaces: [{nsid: 2, flash: x}]", "from 4 to 128"},
		"the drive's own":      {"namespaces: [{nsid: 4, flash: d}]", "open elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			list := filepath.Join(dir, "list")
			require.NoError(t, os.WriteFile(list, []byte(c.list), 0o600))
			code, out, errs := millrace(t, "drive", "serve", "--create", "--flash", dir+"/d",
				"--size", "1MiB", "--slm", "1MiB", "--listen", "127.0.0.1:0", "--namespaces", list)
			assert.Equal(t, exitFailed, code)
			assert.Contains(t, errs, c.says)
			assert.Empty(t, out)
		})
	}
}
