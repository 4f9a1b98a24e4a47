package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// kept makes the folder of a member that has written n keys.
func kept(t *testing.T, dir string, n int) {
	t.Helper()
	s := open(t, Options{Data: dir})
	term, err := s.Campaign(patient(t), "here")
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, term.Commit(t.Context(), Put(fmt.Sprintf("job/%04d", i), bytes.Repeat([]byte{byte(i)},
			2000))))
	}
	require.NoError(t, term.Resign(t.Context()))
	require.NoError(t, s.Close())
}

// logFile returns the path of the log of a member that has a single log file.
func logFile(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "etcd", "member", "wal", "*.wal"))
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list[0]
}

// TestDamagedFilesAreSaidAndNotPanicked: every kind of damage to a member's files leads to an error with advice to the
// operator, and to no panic.
func TestDamagedFilesAreSaidAndNotPanicked(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	kept(t, base, 150)
	log, err := os.ReadFile(logFile(t, base))
	require.NoError(t, err)
	used := int64(len(bytes.TrimRight(log, "\x00"))) // the rest is room for more
	require.Greater(t, used, int64(300_000))
	change := func(path string, f func([]byte) []byte) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, f(b), 0o600))
	}
	garbage := func(from, to int64) func([]byte) []byte {
		return func(b []byte) []byte {
			for i := from; i < min(to, int64(len(b))); i++ {
				b[i] = byte(i*7 + 13)
			}
			return b
		}
	}
	cut := func(at int64) func([]byte) []byte { return func(b []byte) []byte { return b[:at] } }
	nothing := func([]byte) []byte { return nil }
	for name, c := range map[string]struct {
		do   func(db, wal string)
		well bool // it may be whole after all
	}{
		"untouched":               {func(_, _ string) {}, true},
		"the database is garbage": {func(db, _ string) { change(db, garbage(0, 1<<30)) }, false},
		"the database is text": {func(db, _ string) {
			change(db,
				func([]byte) []byte { return []byte("hello") })
		}, false},
		"the database is cut":            {func(db, _ string) { change(db, cut(100_000)) }, false},
		"the database ends in its head":  {func(db, _ string) { change(db, cut(6000)) }, false},
		"pages of the database":          {func(db, _ string) { change(db, garbage(8192, 200_000)) }, false},
		"the log is garbage":             {func(_, wal string) { change(wal, garbage(0, 1<<30)) }, false},
		"a record of the log":            {func(_, wal string) { change(wal, garbage(used/2, used/2+5)) }, false},
		"the log ends in the middle":     {func(_, wal string) { change(wal, cut(used/2)) }, false},
		"the log ends at a record's end": {func(_, wal string) { change(wal, garbageless(used/2)) }, false},
		"the log is empty":               {func(_, wal string) { change(wal, nothing) }, false},
		"the log is gone": {func(_, wal string) { require.NoError(t, os.RemoveAll(filepath.Dir(wal))) },
			false},
		"the log's file is gone": {func(_, wal string) { require.NoError(t, os.Remove(wal)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			require.NoError(t, os.CopyFS(dir, os.DirFS(base)))
			c.do(filepath.Join(dir, "etcd", "member", "snap", "db"), logFile(t, dir))
			s, err := Open(patient(t), quick(Options{Data: dir}))
			if c.well {
				require.NoError(t, err)
				require.NoError(t, s.Close())
				return
			}
			require.ErrorIs(t, err, ErrDamaged)
			assert.ErrorContains(t, err, dir)
			assert.ErrorContains(t, err, "millrace control restore")
		})
	}
}

// garbageless ends a log early, as if the entries behind had never been written. It writes zeros, which a reader takes
// for the end.
func garbageless(at int64) func([]byte) []byte {
	return func(b []byte) []byte {
		clear(b[at/8*8:])
		return b
	}
}

// TestWhatToDoDependsOnTheMembers: the advice for one of several members is to make it again from the others.
func TestWhatToDoDependsOnTheMembers(t *testing.T) {
	alone := Options{Name: "m0"}
	assert.Contains(t, alone.recovery(), "control restore")
	several := Options{Name: "m0", Peers: []string{"m0=http://a:1", "m1=http://b:1", "m2=http://c:1"}}
	assert.Contains(t, several.recovery(), "millrace control members remove m0")
	joined := Options{Name: "m3", Peers: []string{"m3=http://a:1"}, Join: true}
	assert.Contains(t, joined.recovery(), "millrace control members remove m3")
}

// TestAFolderInUseIsSaid: a second member on the same folder fails instead of waiting without end.
func TestAFolderInUseIsSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, Options{Data: dir})
	_, err := Open(patient(t), quick(Options{Data: dir}))
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, s.Close())
	s = open(t, Options{Data: dir})
	require.NoError(t, s.Close())
}

// TestAnotherMembersFolderIsAnError: the folder of another member is an error and does not end the process.
func TestAnotherMembersFolderIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept(t, dir, 1)
	require.NoError(t, examine(filepath.Join(dir, "etcd"), zap.NewNop()))
	require.NoError(t, examine(filepath.Join(dir, "none"), zap.NewNop()))
	require.NoError(t, os.Rename(filepath.Join(dir, "etcd", "member", "snap"), filepath.Join(dir, "away")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "etcd", "member", "snap"),
		[]byte("a file where a folder belongs"), 0o600))
	_, err := Open(patient(t), quick(Options{Data: dir}))
	require.Error(t, err)
}
