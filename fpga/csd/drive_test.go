package csd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/faults"
)

const testSLM = 4 << 20

func openDrive(t testing.TB, o Options) *Drive {
	t.Helper()
	if o.SLMBytes == 0 {
		o.SLMBytes = testSLM
	}
	d, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// connect begins an association that ends with the test.
func connect(t testing.TB, d *Drive) nvme.Conn {
	t.Helper()
	c, err := controller.Local(d.Subsystem(), controller.HostID{NQN: "nqn.2014-08.org.nvmexpress:uuid:host"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func write(t testing.TB, c nvme.Conn, lba uint64, p []byte, fua bool) {
	t.Helper()
	cmd := nvme.Write(1, lba, uint32(len(p)/512), 512, fua)
	_, err := c.IO(t.Context(), &cmd, p)
	require.NoError(t, err)
}

func read(t testing.TB, c nvme.Conn, lba uint64, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	cmd := nvme.Read(1, lba, uint32(n/512), 512)
	_, err := c.IO(t.Context(), &cmd, p)
	require.NoError(t, err)
	return p
}

// TestRemove: a drive that was made goes with its files; one that was there before is neither closed nor changed.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "drive")
	o := Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM}
	d, err := Open(o)
	require.NoError(t, err)
	require.True(t, d.Created())
	require.NoError(t, d.Own(Owner{Name: "a test", Drive: "d"}))
	c, err := controller.Local(d.Subsystem(), controller.HostID{})
	require.NoError(t, err)
	require.ErrorIs(t, d.Remove(), ErrBusy)
	require.FileExists(t, path)
	require.NoError(t, c.Close())
	require.NoError(t, d.Remove())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	d, err = Open(o)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	o.Create = false
	d = openDrive(t, o)
	require.False(t, d.Created())
	require.ErrorContains(t, d.Remove(), "has not made it")
	require.FileExists(t, path)
	require.FileExists(t, statePath(path))
	write(t, connect(t, d), 0, make([]byte, 512), false)
}

func TestDataSurvivesCloseAndOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	data := bytes.Repeat([]byte("flash"), 512)
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	c, err := controller.Local(d.Subsystem(), controller.HostID{})
	require.NoError(t, err)
	write(t, c, 3, data, false)
	require.ErrorIs(t, d.Close(), ErrBusy, "an association is open")
	require.NoError(t, c.Close())
	id := d.UUID()
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, data, raw[3*512:][:len(data)], "byte for byte from block 0")
	assert.Len(t, raw, 1<<20)

	d = openDrive(t, Options{Path: path})
	assert.Equal(t, id, d.UUID())
	size, lba := d.Geometry()
	assert.Equal(t, int64(1<<20), size)
	assert.Equal(t, 512, lba)
	assert.Equal(t, data, read(t, connect(t, d), 3, len(data)))
	n := d.Subsystem().Counters()
	assert.Equal(t, uint64(2), n.PowerCycles)
	assert.Equal(t, uint64(0), n.UnsafeShutdowns)
	assert.Equal(t, uint64(5), n.SectorsWritten)
}

func TestSecondOpenerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	_, err = Open(Options{Path: path})
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, d.Close())
	openDrive(t, Options{Path: path})
}

func TestOtherGeometryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, LBA: 4096, SLMBytes: testSLM})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for name, o := range map[string]Options{
		"size":       {Path: path, Size: 2 << 20},
		"block size": {Path: path, LBA: 512},
	} {
		_, err := Open(o)
		require.ErrorIs(t, err, ErrGeometry, name)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte{1})
	require.NoError(t, errors.Join(err, f.Close()))
	_, err = Open(Options{Path: path})
	require.ErrorIs(t, err, ErrGeometry, "a longer file")
	require.NoError(t, os.Truncate(path, 100))
	assert.NoError(t, openDrive(t, Options{Path: path, Size: 1 << 20, LBA: 4096}).flash.Sync())
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, int64(1<<20), st.Size(), "a shorter file is one that a tool rewrote")
}

func TestOpenRefuses(t *testing.T) {
	inMemory, err := flash.NewMemory(0)
	require.NoError(t, err)
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	require.NoError(t, os.WriteFile(there, []byte("something precious"), 0o644))
	for name, tt := range map[string]struct {
		o    Options
		want error
	}{
		"no drive":             {Options{Path: filepath.Join(dir, "none")}, ErrNoDrive},
		"file without state":   {Options{Path: there}, ErrNoDrive},
		"create over a file":   {Options{Path: there, Create: true}, fs.ErrExist},
		"odd size":             {Options{Size: 1000}, ErrGeometry},
		"negative size":        {Options{Size: -512}, ErrGeometry},
		"odd block size":       {Options{LBA: 520}, ErrGeometry},
		"create with odd size": {Options{Path: filepath.Join(dir, "x"), Create: true, Size: 5}, ErrGeometry},
		"directory":            {Options{Path: dir}, nil},
		"little SLM":           {Options{SLMBytes: 4096}, nil},
		"odd SLM":              {Options{SLMBytes: MinSLM + 1}, nil},
		"threads":              {Options{Threads: -1}, nil},
		"path and flash":       {Options{Path: there, Flash: inMemory}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tt.o)
			require.Error(t, err)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
		})
	}
	b, err := os.ReadFile(there)
	require.NoError(t, err)
	assert.Equal(t, "something precious", string(b))
}

func TestKilledDriveCountsAnUnsafeShutdown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	// After a kill the lock is gone with the descriptor, and PATH.json is as it was.
	require.NoError(t, d.flash.Close())
	require.NoError(t, d.free())
	d = openDrive(t, Options{Path: path})
	assert.Equal(t, uint64(1), d.Subsystem().Counters().UnsafeShutdowns)
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "drive")
	_, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM,
		WrapCompute: func(c controller.Compute) controller.Compute {
			return manySlots{c}
		}})
	require.Error(t, err)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	openDrive(t, Options{Path: path, Create: true, Size: 1 << 20})
}

// TestKilledCreate looks at what a creation leaves when it is killed: before PATH.json an empty file, which the next
// one takes; with it a drive, however short its file.
func TestKilledCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM,
		WrapFlash: func(f controller.Flash) controller.Flash {
			st, err := os.Stat(path)
			require.NoError(t, err)
			assert.Zero(t, st.Size())
			assert.NoFileExists(t, statePath(path))
			return f
		}})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, st.Size())

	require.NoError(t, os.Truncate(path, 0))
	d, err = Open(Options{Path: path, SLMBytes: testSLM})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	st, err = os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, st.Size())

	require.NoError(t, os.Truncate(path, 0))
	require.NoError(t, os.Remove(statePath(path)))
	openDrive(t, Options{Path: path, Create: true, Size: 1 << 20})
}

// manySlots is a device that a controller refuses.
type manySlots struct{ controller.Compute }

func (m manySlots) Programs() programs.Device { return manyPrograms{m.Compute.Programs()} }

type manyPrograms struct{ programs.Device }

func (manyPrograms) Limits() programs.Limits {
	return programs.Limits{Slots: 1 << 20}
}

func TestDamagedStateIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	good, err := os.ReadFile(statePath(path))
	require.NoError(t, err)
	for name, edit := range map[string]func(m map[string]any){
		"version":     func(m map[string]any) { m["version"] = StateVersion + 1 },
		"unknown key": func(m map[string]any) { m["colour"] = "red" },
		"size":        func(m map[string]any) { m["size_bytes"] = -1 },
		"lba":         func(m map[string]any) { m["lba_bytes"] = 0 },
		"slot":        func(m map[string]any) { m["active_slot"] = 99 },
		"uuid":        func(m map[string]any) { m["uuid"] = uuid.UUID{} },
		"type":        func(m map[string]any) { m["lba_bytes"] = "512" },
	} {
		t.Run(name, func(t *testing.T) {
			var m map[string]any
			require.NoError(t, json.Unmarshal(good, &m))
			edit(m)
			b, err := json.Marshal(m)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(statePath(path), b, 0o644))
			_, err = Open(Options{Path: path})
			require.Error(t, err)
		})
	}
}

func FuzzState(f *testing.F) {
	b, _ := json.Marshal(&state{Version: 1, UUID: uuid.New(), Size: 1 << 20, LBA: 512})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseState(b); err == nil {
			require.NoError(t, flash.CheckGeometry(s.Size, s.LBA))
			require.Less(t, s.Active, images.Count)
		}
	})
}

// countedFlash counts what reaches the disk.
type countedFlash struct {
	controller.Flash
	syncs *int
}

func (f countedFlash) Sync() error {
	*f.syncs++
	return f.Flash.Sync()
}

func TestFlushAndFUAReachTheDisk(t *testing.T) {
	syncs := 0
	o := Options{Size: 1 << 20, WrapFlash: func(f controller.Flash) controller.Flash { return countedFlash{f, &syncs} }}
	c := connect(t, openDrive(t, o))
	write(t, c, 0, make([]byte, 512), false)
	assert.Equal(t, 0, syncs)
	write(t, c, 0, make([]byte, 512), true)
	assert.Equal(t, 1, syncs, "force unit access")
	cmd := nvme.Flush(1)
	_, err := c.IO(t.Context(), &cmd, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, syncs, "flush")
}

func TestFaultsComeOutAsStatuses(t *testing.T) {
	script, err := faults.Parse([]byte(
		"fail: [{operation: read, lba: 7}, {operation: write, lba: 9}, {operation: flush}]"))
	require.NoError(t, err)
	injector, err := faults.New(script, faults.Options{})
	require.NoError(t, err)
	c := connect(t, openDrive(t, Options{Size: 1 << 20, WrapFlash: injector.Flash}))
	cmd := nvme.Read(1, 6, 2, 512)
	_, err = c.IO(t.Context(), &cmd, make([]byte, 1024))
	require.ErrorIs(t, err, nvme.UnrecoveredReadError)
	cmd = nvme.Write(1, 9, 1, 512, false)
	_, err = c.IO(t.Context(), &cmd, make([]byte, 512))
	require.ErrorIs(t, err, nvme.WriteFault)
	cmd = nvme.Flush(1)
	_, err = c.IO(t.Context(), &cmd, nil)
	require.Error(t, err)
	read(t, c, 8, 512)
}

func TestPlainDriveHasOneNamespace(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Plain: true})
	_, ok := d.ActiveImage()
	assert.False(t, ok)
	b := make([]byte, nvme.IdentifySize)
	cmd := nvme.Identify(nvme.CNSActiveNamespaces, 0, 0)
	_, err := connect(t, d).Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	assert.Equal(t, []uint32{1}, nvme.UnmarshalNamespaceList(b))
}

// TestMissingParts checks what the errors advise where a part of a drive is not there. They do not advise what Open
// refuses.
func TestMissingParts(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	openDrive(t, Options{Path: whole, Create: true, Size: 1 << 20, Plain: true})
	flash, state := filepath.Join(dir, "flash"), filepath.Join(dir, "state")
	for from, to := range map[string]string{whole: flash, statePath(whole): statePath(state)} {
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, b, 0o600))
	}
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"no part": {Options{Path: filepath.Join(dir, "none")}, "create it with millrace drive create"},
		"no folder": {
			Options{Path: filepath.Join(dir, "a/b"), Create: true}, "create the folder " + dir + "/a first",
		},
		"flash without state":     {Options{Path: flash}, "copy it with the flash"},
		"state without flash":     {Options{Path: state}, "restore the flash, or remove that file"},
		"create beside a state":   {Options{Path: state, Create: true}, "restore the flash, or remove that file"},
		"create where one is":     {Options{Path: whole, Create: true}, "the drive is there; use it"},
		"create over flash alone": {Options{Path: flash, Create: true}, "holds 1048576 bytes already"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tt.o)
			require.ErrorContains(t, err, tt.want)
			if name != "no part" {
				assert.NotContains(t, err.Error(), "millrace drive create")
			}
		})
	}
}
