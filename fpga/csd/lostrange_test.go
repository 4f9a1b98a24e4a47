package csd

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/fpga/csd/keptfile"
	"github.com/millrace/millrace/fpga/image"
)

const lostSize = 1 << 20

// written makes a drive at path whose flash is full of ones.
func written(t *testing.T, path string) {
	t.Helper()
	d, err := Open(Options{Path: path, Create: true, Size: lostSize, Plain: true})
	require.NoError(t, err)
	_, err = d.Flash().WriteAt(bytes.Repeat([]byte{1}, lostSize), 0)
	require.NoError(t, err)
	require.NoError(t, d.Close())
}

// logged opens a drive and returns what it logged, too.
func logged(t *testing.T, o Options) (*Drive, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	d, err := Open(o)
	require.NoError(t, err)
	return d, &log
}

func lostOf(d *Drive) [2]int64 {
	off, n := d.Lost()
	return [2]int64{off, off + n}
}

// copyDrive copies the files of a drive, as they are on the disk now, and returns the copy's path.
func copyDrive(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "drive")
	for _, name := range []func(string) string{func(p string) string { return p }, statePath} {
		b, err := os.ReadFile(name(path))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name(to), b, 0o600))
	}
	return to
}

// TestACreationThatWasKilledLostNothing kills the creation of a drive at every step. The next creation, or opening,
// makes the drive whole and finds nothing cut.
func TestACreationThatWasKilledLostNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	var left []string
	o := Options{Path: path, Create: true, Size: lostSize, Plain: true}
	o.atStep = func(string) { left = append(left, copyDrive(t, path)) }
	d, err := Open(o)
	require.NoError(t, err)
	inUse := copyDrive(t, path)
	require.NoError(t, d.Close())
	require.Greater(t, len(left), 1)
	for _, path := range left {
		o := Options{Path: path, Plain: true}
		if _, err := os.Stat(statePath(path)); err != nil {
			o.Create, o.Size = true, lostSize
		}
		d, log := logged(t, o)
		assert.Empty(t, log.String())
		assert.Equal(t, [2]int64{}, lostOf(d))
		assert.Zero(t, d.sub.Counters().MediaErrors)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.EqualValues(t, lostSize, info.Size())
		require.NoError(t, d.Close())
	}
	require.NoError(t, os.Truncate(inUse, 0))
	d, _ = logged(t, Options{Path: inUse, Plain: true})
	assert.Equal(t, [2]int64{0, lostSize}, lostOf(d), "a drive that was in use was cut")
	require.NoError(t, d.Close())
}

// TestACutUnderAnOpenDrive is said when the missing bytes are read, and kept.
func TestACutUnderAnOpenDrive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	written(t, path)
	d, log := logged(t, Options{Path: path, Plain: true})
	require.NoError(t, os.Truncate(path, 300_000))
	b := bytes.Repeat([]byte{7}, 1024)
	for range 2 {
		_, err := d.Flash().ReadAt(b, 299_520)
		require.NoError(t, err)
		assert.Equal(t, append(bytes.Repeat([]byte{1}, 480), make([]byte, 544)...), b)
		assert.Equal(t, [2]int64{300_000, lostSize}, lostOf(d))
	}
	assert.Contains(t, log.String(), "from_byte=300000")
	require.NoError(t, d.Close())
	d, _ = logged(t, Options{Path: path, Plain: true})
	assert.Equal(t, [2]int64{300_000, lostSize}, lostOf(d), "kept")
	require.NoError(t, os.Truncate(path, 200_000))
	require.NoError(t, d.Flash().Discard(199_680, lostSize-199_680))
	_, err := d.Flash().ReadAt(b, 500_224)
	require.NoError(t, err)
	require.NoError(t, d.Flash().Discard(199_680, lostSize-199_680))
	_, err = d.Flash().ReadAt(b, 500_224)
	require.NoError(t, err)
	assert.Equal(t, [2]int64{}, lostOf(d), "nobody misses what was deallocated")
	require.NoError(t, d.Close())
}

// TestACutFlashIsNotExtendedInSilence: what is missing is said, and kept until it was written again.
func TestACutFlashIsNotExtendedInSilence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	written(t, path)
	backup, err := os.ReadFile(path)
	require.NoError(t, err)
	open := func() (*Drive, *bytes.Buffer) { return logged(t, Options{Path: path, Plain: true}) }
	d, log := open()
	assert.Equal(t, [2]int64{}, lostOf(d))
	assert.Empty(t, log.String())
	require.NoError(t, d.Close())

	require.NoError(t, os.Truncate(path, 300_000))
	for range 2 { // the file is whole again after the first, and what was lost still is
		d, log = open()
		assert.Equal(t, [2]int64{300_000, lostSize}, lostOf(d))
		assert.Contains(t, log.String(), "from_byte=300000")
		assert.EqualValues(t, 1, d.Subsystem().Counters().MediaErrors, "one loss is one media error")
		require.NoError(t, d.Close())
	}
	require.NoError(t, os.Truncate(path, 400_000))
	d, _ = open()
	assert.Equal(t, [2]int64{300_000, lostSize}, lostOf(d), "a later cut brings nothing back")
	assert.EqualValues(t, 2, d.Subsystem().Counters().MediaErrors)
	// Writes that follow one another from the beginning on replace it; others do not.
	_, err = d.Flash().WriteAt(make([]byte, 4096), 800_000)
	require.NoError(t, err)
	assert.Equal(t, [2]int64{300_000, lostSize}, lostOf(d))
	_, err = d.Flash().WriteAt(make([]byte, 4096), 299_520)
	require.NoError(t, err)
	assert.Equal(t, [2]int64{303_616, lostSize}, lostOf(d))
	require.NoError(t, d.Close())
	d, _ = open()
	assert.Equal(t, [2]int64{303_616, lostSize}, lostOf(d), "kept")
	require.NoError(t, d.Flash().Discard(299_520, lostSize-299_520))
	assert.Equal(t, [2]int64{}, lostOf(d), "nobody misses what was deallocated")
	require.NoError(t, d.Close())

	require.NoError(t, os.Truncate(path, 0))
	d, _ = open()
	assert.Equal(t, [2]int64{0, lostSize}, lostOf(d))
	require.NoError(t, d.Close())
	require.NoError(t, os.WriteFile(path, backup, 0o600))
	d, log = open()
	assert.Equal(t, [2]int64{}, lostOf(d), "the backup was put back")
	assert.Empty(t, log.String())
	require.NoError(t, d.Close())
	require.NoError(t, os.Truncate(path, 1000))
	d, _ = open()
	require.NoError(t, d.Close())
	require.NoError(t, os.WriteFile(path, backup[:5000], 0o600))
	d, _ = open()
	assert.Equal(t, [2]int64{5000, lostSize}, lostOf(d), "somebody wrote the file again, and shorter")
	require.NoError(t, d.Close())
}

func TestAStateWithAnImpossibleLossIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	written(t, path)
	text, err := os.ReadFile(statePath(path))
	require.NoError(t, err)
	for lost, good := range map[string]bool{
		`{"from_byte":0,"to_byte":1}`: true, `{"from_byte":1,"to_byte":1048576}`: true,
		`{"from_byte":-1,"to_byte":1}`:      false,
		`{"from_byte":5,"to_byte":5}`:       false,
		`{"from_byte":0,"to_byte":1048577}`: false,
	} {
		var s map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &s))
		s["lost"] = json.RawMessage(lost)
		b, err := json.Marshal(s)
		require.NoError(t, err)
		_, err = parseState(b)
		assert.Equal(t, good, err == nil, "%s: %v", lost, err)
	}
}

// blockState keeps PATH.json from being replaced, as a full disk does, until the function that it returns is called.
func blockState(t *testing.T, path string) (free func()) {
	t.Helper()
	require.NoError(t, os.Mkdir(statePath(path)+keptfile.Partial, 0o700))
	return func() { require.NoError(t, os.Remove(statePath(path)+keptfile.Partial)) }
}

// TestADriveOpensWhereItsStateCannotBeKept: its counters are lost, which it says; what has to be kept is an error.
func TestADriveOpensWhereItsStateCannotBeKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	written(t, path)
	before, err := os.ReadFile(statePath(path))
	require.NoError(t, err)
	free := blockState(t, path)
	d, log := logged(t, Options{Path: path, SLMBytes: testSLM})
	assert.Contains(t, log.String(), "counters cannot be kept")
	b := make([]byte, 512)
	_, err = d.Flash().ReadAt(b, 512)
	require.NoError(t, err)
	assert.Equal(t, bytes.Repeat([]byte{1}, 512), b)
	_, err = d.Flash().WriteAt(b, 0)
	require.NoError(t, err, "what has room is written")
	require.NoError(t, d.Close())
	after, err := os.ReadFile(statePath(path))
	require.NoError(t, err)
	assert.Equal(t, before, after)

	_, err = Open(Options{Path: path, SLMBytes: testSLM,
		Trust: func(tr *image.Trust) error { tr.Policy = image.PolicyWarn; return nil }})
	require.ErrorContains(t, err, "keep state", "what an operator changed must not be forgotten")
	d, _ = logged(t, Options{Path: path, SLMBytes: testSLM, Trust: func(*image.Trust) error { return nil }})
	require.NoError(t, d.Close(), "who changes nothing may")

	require.NoError(t, os.Truncate(path, 4096))
	d, log = logged(t, Options{Path: path, Plain: true})
	assert.Equal(t, [2]int64{4096, lostSize}, lostOf(d))
	assert.True(t, d.Flash().ReadOnly(), "a write would hide that it was cut")
	assert.Contains(t, log.String(), "for reading only")
	_, err = d.Flash().WriteAt(b, 0)
	require.ErrorIs(t, err, flash.ErrReadOnly)
	require.ErrorIs(t, d.Flash().Discard(0, 512), flash.ErrReadOnly)
	require.NoError(t, d.Close())
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 4096, st.Size())

	free()
	d, _ = logged(t, Options{Path: path, Plain: true})
	assert.Equal(t, [2]int64{4096, lostSize}, lostOf(d))
	assert.False(t, d.Flash().ReadOnly())
	// The disk fills up while the drive is open.
	free = blockState(t, path)
	require.NoError(t, d.Close())
	free()
	d, _ = logged(t, Options{Path: path, Plain: true})
	assert.EqualValues(t, 1, d.Subsystem().Counters().UnsafeShutdowns, "as if the power had gone")
	// A change while the drive was open that must be kept and cannot be is an error.
	free = blockState(t, path)
	require.NoError(t, d.Flash().Discard(0, lostSize))
	require.ErrorContains(t, d.Close(), "keep state")
	free()
}

// TestFilesAreForTheirGroup: flash and the files beside it have mode 0640, and keep their owner and group.
func TestFilesAreForTheirGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	written(t, path)
	for _, p := range []string{path, statePath(path)} {
		st, err := os.Stat(p)
		require.NoError(t, err)
		assert.Zero(t, st.Mode().Perm()&^0o640, p)
		assert.NotZero(t, st.Mode().Perm()&0o600, p)
		require.NoError(t, os.Chmod(p, 0o660))
	}
	d, err := Open(Options{Path: path, Plain: true})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	st, err := os.Stat(statePath(path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o660), st.Mode().Perm(), "as its owner made it")
}
