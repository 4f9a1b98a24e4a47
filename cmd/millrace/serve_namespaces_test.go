package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
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

// TestServeNamespaces: a list gives the drive more namespaces, and SIGHUP makes it follow what the list has become, under a host
// that is connected; a list that is wrong changes nothing.
func TestServeNamespaces(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "namespaces.yaml")
	say := func(text string) { require.NoError(t, os.WriteFile(list, []byte(text), 0o600)) }
	say("namespaces:\n  - {nsid: 4, flash: a.flash, size: 1MiB}\n  - {nsid: 7, flash: b.flash, size: 2MiB, lba: 4096}\n")
	line, stop := startServe(t, "--flash", dir+"/d.flash", "--size", "1MiB", "--namespaces", list)
	assert.True(t, strings.HasSuffix(line, "; with further namespaces 4, 7\n"), line)
	address, nqn, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(strings.Fields(line)[1], ":"), "tcp://"), "/")
	events := make(chan nvme.AsyncEvent, 64)
	h, err := tcp.Dial(t.Context(), tcp.DialOptions{Address: address, Subsystem: nqn, OnEvent: func(e nvme.AsyncEvent) { events <- e }})
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
	require.Eventually(t, func() bool { ids := activeNamespaces(t, h); return len(ids) == 5 && ids[3] == 7 && ids[4] == 9 }, 20*time.Second, 5*time.Millisecond)
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

// TestNamespacesFollowTheList: one list after the other, as they are read.
func TestNamespacesFollowTheList(t *testing.T) {
	dir := t.TempDir()
	must(t, "drive", "create", "file:"+dir+"/old?size=1MiB&lba=4096")
	own, err := csd.Open(csd.Options{Plain: true, Size: 1 << 20})
	require.NoError(t, err)
	a := newAddedNamespaces(filepath.Join(dir, "list"), own.Subsystem(), slog.New(slog.DiscardHandler))
	for _, step := range []struct {
		name, list string
		want       []uint32
		says       string // the error; empty: none
	}{
		{"nothing", "", []uint32{}, ""},
		{"a drive that exists", "namespaces: [{nsid: 5, flash: old}]", []uint32{5}, ""},
		{"the same again", "namespaces: [{nsid: 5, flash: old, size: 1MiB, lba: 4096}]", []uint32{5}, ""},
		{"another size", "namespaces: [{nsid: 5, flash: old, size: 2MiB}]", []uint32{5}, "keeps them"},
		{"not YAML", "namespaces: [", []uint32{5}, "line 1"},
		{"not a list", "namespaces: 3", []uint32{5}, "cannot unmarshal"},
		{"an unknown key", "namespaces: [{nsid: 5, flash: old, lab: 512}]", []uint32{5}, "field lab not found: want namespaces"},
		{"the drive's own", "namespaces: [{nsid: 1, flash: old}]", []uint32{5}, "from 4 to 128"},
		{"no flash", "namespaces: [{nsid: 6}]", []uint32{5}, "flash is wanted"},
		{"a block of a kilobyte", "namespaces: [{nsid: 6, flash: x, lba: 1024}]", []uint32{5}, "512 or 4096"},
		{"a size that is none", "namespaces: [{nsid: 6, flash: x, size: 1XB}]", []uint32{5}, "size"},
		{"twice", "namespaces: [{nsid: 5, flash: old}, {nsid: 5, flash: x, size: 1MiB}]", []uint32{5}, "twice"},
		{"flash twice", "namespaces: [{nsid: 5, flash: old}, {nsid: 6, flash: ./old}]", []uint32{5}, "twice"},
		{"flash that is not there", "namespaces: [{nsid: 6, flash: new, size: 1MiB}, {nsid: 7, flash: none}]", []uint32{5}, "or give its size here"},
		{"moved, and one more", "namespaces: [{nsid: 6, flash: old}, {nsid: 5, flash: new, size: 1MiB}]", []uint32{5, 6}, ""},
		{"exchanged", "namespaces: [{nsid: 5, flash: old}, {nsid: 6, flash: new}]", []uint32{5, 6}, ""},
		{"one gone", "namespaces: [{nsid: 6, flash: new}]", []uint32{6}, ""},
		{"all gone", "namespaces: []", []uint32{}, ""},
		{"back", "namespaces: [{nsid: 128, flash: old}]", []uint32{128}, ""},
	} {
		require.NoError(t, os.WriteFile(a.list, []byte(step.list), 0o600))
		err := a.read()
		if step.says == "" {
			require.NoError(t, err, step.name)
		} else {
			require.ErrorContains(t, err, step.says, step.name)
			require.NotContains(t, err.Error(), "\n", step.name)
		}
		require.Equal(t, step.want, a.ids(), step.name)
		require.Len(t, a.flash, len(step.want), step.name)
	}
	require.NoError(t, os.Remove(a.list))
	require.ErrorContains(t, a.read(), "no such file")
	require.Equal(t, []uint32{128}, a.ids())
	require.NoError(t, a.close())
	require.NoError(t, own.Close())
	for _, path := range []string{"/old", "/new"} { // nothing holds them any more
		d, err := csd.Open(csd.Options{Path: dir + path, Plain: true})
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
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
			code, out, errs := millrace(t, "drive", "serve", "--create", "--flash", dir+"/d", "--size", "1MiB", "--slm", "1MiB", "--listen", "127.0.0.1:0", "--namespaces", list)
			assert.Equal(t, exitFailed, code)
			assert.Contains(t, errs, c.says)
			assert.Empty(t, out)
		})
	}
}

func FuzzNamespaces(f *testing.F) {
	f.Add([]byte("namespaces: [{nsid: 4, flash: a, size: 1MiB, lba: 4096}]"))
	f.Add([]byte("namespaces:\n- {nsid: 4}\n- 3"))
	f.Fuzz(func(t *testing.T, document []byte) {
		entries, err := parseNamespaces(document, "/folder")
		if err != nil {
			return
		}
		ids := map[uint32]bool{}
		for _, e := range entries {
			if ids[e.NSID] || e.NSID < controller.FirstAddedNSID || e.NSID > controller.MaxNSID || !filepath.IsAbs(e.Flash) {
				t.Fatalf("%+v", e)
			}
			ids[e.NSID] = true
		}
	})
}
