package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

// backedUp makes a backup of a member that has led. The backup holds the key of a job and the key of a node, and a
// third key was deleted.
func backedUp(t testing.TB) (path string, fence uint64) {
	t.Helper()
	o := quick(Options{Data: t.TempDir(), TTL: time.Second})
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	term, err := s.Campaign(t.Context(), "lost")
	require.NoError(t, err)
	require.NoError(t, term.Commit(t.Context(), Put("job/1/spec", []byte("a")), Put("job/1/state", []byte("b")),
		Put("job/2/spec", []byte("c")), Put("node/n0", []byte("d"))))
	require.NoError(t, term.Commit(t.Context(), Delete("job/2/spec")))
	path = filepath.Join(t.TempDir(), "control.snapshot")
	b, err := SaveBackup(path, func(w io.Writer) error { return s.Snapshot(t.Context(), w) })
	require.NoError(t, err)
	require.Equal(t, path, b.File)
	require.Equal(t, 1, b.Jobs)
	require.Equal(t, 1, b.Nodes)
	require.Positive(t, b.Revision)
	return path, term.Fence()
}

// TestSaveBackup keeps a whole backup, replaces no file, and leaves no file behind after a failure.
func TestSaveBackup(t *testing.T) {
	t.Parallel()
	path, _ := backedUp(t)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = SaveBackup(path, func(io.Writer) error { t.Error("it was asked for all the same"); return nil })
	require.ErrorIs(t, err, fs.ErrExist)

	cut := errors.New("the connection is gone")
	for name, c := range map[string]struct {
		write func(io.Writer) error
		want  error
	}{
		"the connection breaks": {func(w io.Writer) error {
			_, err := w.Write(whole[:4096])
			return errors.Join(err,
				cut)
		}, cut},
		"it ends early": {func(w io.Writer) error { _, err := w.Write(whole[:4096]); return err }, ErrBackup},
		"nothing comes": {func(io.Writer) error { return nil }, ErrBackup},
		"somebody was quicker": {func(w io.Writer) error {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "other"), []byte("theirs"), 0o600))
			_, err := w.Write(whole)
			return err
		}, fs.ErrExist},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := SaveBackup(filepath.Join(filepath.Dir(path), "other"), c.write)
			require.ErrorIs(t, err, c.want)
			left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*partial*"))
			require.NoError(t, err)
			assert.Empty(t, left)
			if b, err := os.ReadFile(filepath.Join(filepath.Dir(path), "other")); err == nil {
				assert.Equal(t, "theirs", string(b))
				require.NoError(t, os.Remove(filepath.Join(filepath.Dir(path), "other")))
			}
		})
	}
}

// TestDamagedBackups: a backup with damage at any place is refused by name, and Restore makes nothing of it.
func TestDamagedBackups(t *testing.T) {
	t.Parallel()
	path, _ := backedUp(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	at := filepath.Join(t.TempDir(), "damaged")
	refuse := func(b []byte, what string) {
		t.Helper()
		require.NoError(t, os.WriteFile(at, b, 0o600))
		data := filepath.Join(t.TempDir(), "data")
		_, err := Restore(RestoreOptions{File: at, Data: data})
		require.ErrorIs(t, err, ErrBackup, what)
		require.ErrorContains(t, err, at, what)
		assert.NoDirExists(t, data, what)
	}
	for i := 0; i < len(whole); i += len(whole)/40 + 1 {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		refuse(b, fmt.Sprintf("bit %d of byte %d", i%8, i))
		refuse(whole[:i], fmt.Sprintf("%d bytes", i))
	}
	refuse(append(bytes.Clone(whole), 0), "a byte more")
	_, err = Restore(RestoreOptions{File: filepath.Join(t.TempDir(), "none"), Data: t.TempDir()})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// sealed appends a checksum to bytes, as a backup has it.
func sealed(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(bytes.Clone(b), sum[:]...)
}

// FuzzReadBackup reads files whose checksum is right: no contents of the pages end the process.
func FuzzReadBackup(f *testing.F) {
	path, _ := backedUp(f)
	whole, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(0, []byte{})
	f.Add(16, []byte{0xff, 0xff, 0xff})
	f.Add(4096+8, []byte{4})
	f.Add(8192, bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, at int, with []byte) {
		b := bytes.Clone(whole[:len(whole)-sha256.Size])
		if at >= 0 && at < len(b) {
			copy(b[at:], with)
		}
		name := filepath.Join(t.TempDir(), "backup")
		require.NoError(t, os.WriteFile(name, sealed(b), 0o600))
		if _, err := ReadBackup(name); err != nil {
			require.ErrorIs(t, err, ErrBackup)
		}
	})
}

// TestAnotherEtcdsSnapshot: the snapshot of another etcd is refused, because restoring it would make an empty control
// plane without an error.
func TestAnotherEtcdsSnapshot(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir(), Prefix: "/somebody/else"})
	defer s.Close()
	_, err := s.Campaign(patient(t), "x")
	require.NoError(t, err)
	_, err = SaveBackup(filepath.Join(t.TempDir(), "b"), func(w io.Writer) error { return s.Snapshot(patient(t), w) })
	require.ErrorIs(t, err, ErrBackup)
	require.ErrorContains(t, err, "holds no control plane")
}

// TestARestoredMember: a restored member has the contents of the backup, and its leaders have greater fences than all
// leaders before.
func TestARestoredMember(t *testing.T) {
	t.Parallel()
	path, fence := backedUp(t)
	data := filepath.Join(t.TempDir(), "deeper", "data")
	// files that a killed attempt left
	require.NoError(t, os.MkdirAll(filepath.Join(data, "etcd.restoring", "member"), 0o700))
	r, err := Restore(RestoreOptions{File: path, Data: data})
	require.NoError(t, err)
	require.Greater(t, r.Fence, fence)
	require.NoDirExists(t, filepath.Join(data, "etcd.restoring"))
	_, err = Restore(RestoreOptions{File: path, Data: data})
	require.ErrorIs(t, err, fs.ErrExist)
	s := open(t, Options{Data: data, TTL: time.Second})
	defer s.Close()
	term, err := s.Campaign(patient(t), "new")
	require.NoError(t, err)
	assert.Greater(t, term.Fence(), r.Fence)
	var keys []string
	require.NoError(t, term.Scan(patient(t), "", func(k string, _ []byte) error {
		if !strings.HasPrefix(k, electionKey) {
			keys = append(keys, k)
		}
		return nil
	}))
	assert.Equal(t, []string{fencesKey, "format", "job/1/spec", "job/1/state", "node/n0"}, keys)
	require.NoError(t, term.Commit(patient(t), Put("job/1/state", []byte("new"))))
	require.NoError(t, term.Resign(patient(t)))
}

// TestRestoredFences restores one backup twice, the second time a second later. The leaders of the second control plane
// have greater fences than those of the first, even if the first control plane led for long. A wrong clock does not
// make fences smaller than those that follow from the backup itself.
func TestRestoredFences(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	b := Backup{Revision: 5000, first: uint64(now.Add(-time.Hour).Unix()) << fenceBits}
	first, second := b.above(now.Add(time.Hour)), b.above(now.Add(time.Hour+time.Second))
	assert.EqualValues(t, 1<<fenceBits, second-first)
	assert.Equal(t, uint64(now.Add(time.Hour).Unix())<<fenceBits, b.first+uint64(first))
	for _, wrong := range []time.Time{time.Unix(0, 0), time.Unix(-1<<40, 0), now.Add(-2 * time.Hour)} {
		assert.EqualValues(t, 5000+leastBump, b.above(wrong))
	}
	b.first = 0
	assert.EqualValues(t, 5000+leastBump, b.above(now))
}

// TestRestoreForThreeMembers: three members are restored one by one, from the same backup and to the same revision, and
// form one control plane.
func TestRestoreForThreeMembers(t *testing.T) {
	t.Parallel()
	path, fence := backedUp(t)
	peers := []string{"m0=" + freeURL(t), "m1=" + freeURL(t), "m2=" + freeURL(t)}
	revision, members := int64(0), make([]*Store, len(peers))
	var wg sync.WaitGroup
	for i := range members {
		o := Options{Data: t.TempDir(), Name: fmt.Sprintf("m%d", i), Peers: peers}
		r, err := Restore(RestoreOptions{File: path, Data: o.Data, Name: o.Name, Peers: peers, Revision: revision})
		require.NoError(t, err)
		revision = r.Revision
		wg.Go(func() {
			s, err := Open(patient(t), quick(o))
			if assert.NoError(t, err) {
				members[i] = s
			}
		})
	}
	wg.Wait()
	for _, m := range members {
		require.NotNil(t, m)
	}
	term, err := members[1].Campaign(patient(t), "new")
	require.NoError(t, err)
	assert.Greater(t, term.Fence(), fence)
	require.NoError(t, term.Commit(patient(t), Put("job/3/spec", []byte("e"))))
	list, err := members[0].Members(patient(t))
	require.NoError(t, err)
	assert.Len(t, list, 3)
	h, err := members[2].Healthy(patient(t))
	require.NoError(t, err)
	assert.Empty(t, h.Alarms)
	for _, m := range members {
		wg.Go(func() { assert.NoError(t, m.Close()) })
	}
	wg.Wait()
}

// TestRestoreRefuses checks that Restore refuses to make members that could not be started.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	path, _ := backedUp(t)
	for want, o := range map[string]RestoreOptions{
		"none of the peers": {Name: "x", Peers: []string{"m0=http://127.0.0.1:1"}},
		"want NAME=http":    {Name: "m0", Peers: []string{"m0"}},
		"want more":         {Revision: 1},
	} {
		o.File, o.Data = path, filepath.Join(t.TempDir(), "data")
		_, err := Restore(o)
		require.ErrorContains(t, err, want)
		assert.NoDirExists(t, o.Data)
	}
}

// TestRestoreByRootForAService gives the folder to the owner of the folder above.
func TestRestoreByRootForAService(t *testing.T) {
	if os.Geteuid() != 0 {
		shared.Missing(t, "only root makes what another owns")
	}
	t.Parallel()
	const service = 64999
	path, _ := backedUp(t)
	data := t.TempDir()
	require.NoError(t, os.Chown(data, service, service))
	_, err := Restore(RestoreOptions{File: path, Data: data})
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		assert.EqualValues(t, service, info.Sys().(*syscall.Stat_t).Uid, path)
		return nil
	}))
}
