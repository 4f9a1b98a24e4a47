package target

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/nvme/controller"
)

// makeFlash makes a plain drive in a file.
func makeFlash(t *testing.T, path string, size int64, lba int) {
	t.Helper()
	d, err := csd.Open(csd.Options{Path: path, Create: true, Plain: true, Size: size, LBA: lba})
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

// plainSubsystem is the subsystem of a plain drive in memory.
func plainSubsystem(t *testing.T) *controller.Subsystem {
	t.Helper()
	d, err := csd.Open(csd.Options{Plain: true, Size: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d.Subsystem()
}

// TestNamespacesFollowTheList sets one list after the other. A list that is refused leaves the namespaces, the open
// flash and the files of the folder as they were.
func TestNamespacesFollowTheList(t *testing.T) {
	dir := t.TempDir()
	makeFlash(t, filepath.Join(dir, "old"), 1<<20, csd.LBA4096)
	a := newAddedNamespaces(plainSubsystem(t), slog.New(slog.DiscardHandler))
	set := func(document string) error {
		list, err := ParseNamespaces([]byte(document), dir)
		if err != nil {
			return err
		}
		return a.set(list)
	}
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
		{"an unknown key", "namespaces: [{nsid: 5, flash: old, lab: 512}]", []uint32{5},
			"field lab not found: want namespaces"},
		{"the drive's own", "namespaces: [{nsid: 1, flash: old}]", []uint32{5}, "from 4 to 128"},
		{"no flash", "namespaces: [{nsid: 6}]", []uint32{5}, "flash is wanted"},
		{"a block of a kilobyte", "namespaces: [{nsid: 6, flash: x, lba: 1024}]", []uint32{5}, "512 or 4096"},
		{"a size that is none", "namespaces: [{nsid: 6, flash: x, size: 1XB}]", []uint32{5}, "size"},
		{"twice", "namespaces: [{nsid: 5, flash: old}, {nsid: 5, flash: x, size: 1MiB}]", []uint32{5}, "twice"},
		{"flash twice", "namespaces: [{nsid: 5, flash: old}, {nsid: 6, flash: ./old}]", []uint32{5}, "twice"},
		{"flash that is not there", "namespaces: [{nsid: 6, flash: new, size: 1MiB}, {nsid: 7, flash: none}]", []uint32{5},
			"or give its size here"},
		{"moved, and one more", "namespaces: [{nsid: 6, flash: old}, {nsid: 5, flash: new, size: 1MiB}]", []uint32{5, 6}, ""},
		{"exchanged", "namespaces: [{nsid: 5, flash: old}, {nsid: 6, flash: new}]", []uint32{5, 6}, ""},
		{"one gone", "namespaces: [{nsid: 6, flash: new}]", []uint32{6}, ""},
		{"all gone", "namespaces: []", []uint32{}, ""},
		{"back", "namespaces: [{nsid: 128, flash: old}]", []uint32{128}, ""},
	} {
		before := fileNames(t, dir)
		err := set(step.list)
		if step.says == "" {
			require.NoError(t, err, step.name)
		} else {
			require.ErrorContains(t, err, step.says, step.name)
			require.NotContains(t, err.Error(), "\n", step.name)
			require.Equal(t, before, fileNames(t, dir), step.name)
		}
		require.Equal(t, step.want, a.identifiers(), step.name)
		require.Len(t, a.flash, len(step.want), step.name)
	}
	require.NoError(t, a.close())
	for _, name := range []string{"old", "new"} { // nothing holds them any more
		d, err := csd.Open(csd.Options{Path: filepath.Join(dir, name), Plain: true})
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
}

// fileNames lists a folder.
func fileNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestSetUndoesWhatTheSubsystemRefuses: a namespace that the list does not know of has the identifier already. Opened
// files are closed, new files are removed, and namespaces that the list would remove stay.
func TestSetUndoesWhatTheSubsystemRefuses(t *testing.T) {
	dir := t.TempDir()
	makeFlash(t, filepath.Join(dir, "old"), 1<<20, csd.LBA512)
	makeFlash(t, filepath.Join(dir, "other"), 1<<20, csd.LBA512)
	sub := plainSubsystem(t)
	a := newAddedNamespaces(sub, slog.New(slog.DiscardHandler))
	require.NoError(t, a.set([]Namespace{{NSID: 5, Flash: filepath.Join(dir, "old")}}))
	foreign, _, err := flash.Files([]string{filepath.Join(dir, "other")}, csd.LBA512, nil)
	require.NoError(t, err)
	_, err = sub.ChangeNamespaces(nil, []controller.Namespace{{NSID: 9, Flash: foreign}})
	require.NoError(t, err)

	before := fileNames(t, dir)
	err = a.set([]Namespace{
		{NSID: 6, Flash: filepath.Join(dir, "new"), Size: 1 << 20}, {NSID: 9, Flash: filepath.Join(dir, "other")},
	})
	require.ErrorIs(t, err, controller.ErrNamespaceExists)
	assert.Equal(t, []uint32{5}, a.identifiers())
	assert.Len(t, a.flash, 1)
	assert.Equal(t, before, fileNames(t, dir), "no file is left of what the list would have made")
	for _, id := range []uint32{5, 9} { // still there: removing them works
		_, err = sub.ChangeNamespaces([]uint32{id}, nil)
		require.NoError(t, err)
	}
	_, err = sub.ChangeNamespaces([]uint32{6}, nil)
	require.ErrorIs(t, err, controller.ErrNoNamespace)
	d, err := csd.Open(csd.Options{Path: filepath.Join(dir, "other"), Plain: true})
	require.NoError(t, err, "it was closed again")
	require.NoError(t, errors.Join(d.Close(), foreign.Close(), a.close()))
}

func FuzzParseNamespaces(f *testing.F) {
	f.Add([]byte("namespaces: [{nsid: 4, flash: a, size: 1MiB, lba: 4096}]"))
	f.Add([]byte("namespaces:\n- {nsid: 4}\n- 3"))
	f.Fuzz(func(t *testing.T, document []byte) {
		list, err := ParseNamespaces(document, "/folder")
		if err != nil {
			return
		}
		ids := map[uint32]bool{}
		for _, n := range list {
			if ids[n.NSID] || n.NSID < controller.FirstAddedNSID || n.NSID > controller.MaxNSID || !filepath.IsAbs(n.Flash) {
				t.Fatalf("%+v", n)
			}
			ids[n.NSID] = true
		}
	})
}
