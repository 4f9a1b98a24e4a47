package jobfiles

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/vocabulary"
)

func TestAFileIsPutInPieces(t *testing.T) {
	s := openStore(t, Options{})
	want, raw := vocabularyOf(t, 1000)
	half := int64(len(raw) / 2)
	for _, step := range []struct {
		name     string
		from, to int64
		have     int64
	}{
		{"a question", 0, 0, 0},
		{"the first half", 0, half, half},
		{"the same again", 0, half, half},
		{"a piece that does not follow", half + 8, want.Bytes, half},
		{"a question", 0, 0, half},
		{"a piece that overlaps", half - 8, want.Bytes, want.Bytes},
		{"a question about a whole file", 0, 0, want.Bytes},
	} {
		_, ok := s.Size(want.Digest)
		require.False(t, ok && step.have < want.Bytes, step.name)
		have, err := s.Append("ann", want, step.from, raw[step.from:step.to])
		require.NoError(t, err, step.name)
		require.Equal(t, step.have, have, step.name)
	}
	assert.Equal(t, []File{want}, s.Files())
	assert.Equal(t, want.Bytes, s.Bytes())
	d, err := s.Describe(want.Digest)
	require.NoError(t, err)
	assert.EqualValues(t, 1000, d.Keys())
	piece, total, err := s.ReadAt(want.Digest, 8)
	require.NoError(t, err)
	assert.Equal(t, raw[8:], piece)
	assert.Equal(t, want.Bytes, total)
	piece, _, err = s.ReadAt(want.Digest, want.Bytes)
	require.NoError(t, err)
	assert.Empty(t, piece)

	again := openStore(t, Options{Folder: s.o.Folder})
	assert.Equal(t, []File{want}, again.Files())
}

func TestPiecesThatAreRefused(t *testing.T) {
	s := openStore(t, Options{})
	want, raw := vocabularyOf(t, 100)
	for name, c := range map[string]struct {
		want   File
		offset int64
		piece  []byte
	}{
		"too small a file":   {File{Digest: want.Digest, Bytes: leastBytes - 1}, 0, raw[:8]},
		"too large a file":   {File{Digest: want.Digest, Bytes: MaxBytes + 1}, 0, raw[:8]},
		"a negative offset":  {want, -1, raw[:8]},
		"behind the end":     {want, want.Bytes - 7, raw[:8]},
		"too large a piece":  {File{Digest: want.Digest, Bytes: 1 << 30}, 0, make([]byte, MaxPiece+1)},
		"an enormous offset": {want, 1<<63 - 1, raw[:8]},
	} {
		_, err := s.Append("", c.want, c.offset, c.piece)
		require.ErrorIs(t, err, ErrRequest, name)
	}
	_, err := s.Append("", File{Digest: want.Digest, Bytes: 1 << 20}, 0, make([]byte, MaxPiece))
	require.NoError(t, err)
	_, err = s.Append("", want, 0, raw)
	require.ErrorIs(t, err, ErrRequest, "another length than that of the file that is being put")
	_, _, err = s.ReadAt(want.Digest, 0)
	require.ErrorIs(t, err, ErrMissing)
	require.NoError(t, put(s, "ann", want, raw, len(raw)))
	for _, offset := range []int64{-1, want.Bytes + 1} {
		_, _, err = s.ReadAt(want.Digest, offset)
		require.ErrorIs(t, err, ErrRequest)
	}
	_, err = s.Append("", File{Digest: want.Digest, Bytes: want.Bytes + 8}, 0, nil)
	require.ErrorIs(t, err, ErrRequest)
}

// TestBytesThatAreNotTheFile: nothing gets a name that is not its SHA-256, or that is not a vocabulary. Another owner's
// upload of the same digest is not hurt.
func TestBytesThatAreNotTheFile(t *testing.T) {
	s := openStore(t, Options{})
	want, raw := vocabularyOf(t, 100)
	other, otherRaw := vocabularyOf(t, 100+8)
	wrong := bytes.Clone(raw)
	wrong[len(wrong)-1] ^= 1
	_, err := s.Append("bob", want, 0, raw[:100])
	require.NoError(t, err)
	require.ErrorIs(t, put(s, "ann", want, wrong, 64), vocabulary.ErrDamaged)
	require.ErrorIs(t, put(s, "ann", File{Digest: want.Digest, Bytes: other.Bytes}, otherRaw, 64), ErrDigest)
	assert.Empty(t, s.Files())
	have, err := s.Append("bob", want, 100, raw[100:])
	require.NoError(t, err)
	assert.Equal(t, want.Bytes, have)
	entries, err := os.ReadDir(s.o.Folder)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no parts are left")
}

func TestAFileThatChangesOnTheDisk(t *testing.T) {
	want, raw := vocabularyOf(t, 100)
	for name, change := range map[string]func(path string) error{
		"a byte":  func(path string) error { return os.WriteFile(path, append(raw[:len(raw)-1:len(raw)-1], 0), 0o600) },
		"cut":     func(path string) error { return os.Truncate(path, 50) },
		"removed": os.Remove,
		"another": func(path string) error {
			_, other := vocabularyOf(t, 101)
			return os.WriteFile(path, other, 0o600)
		},
	} {
		s := openStore(t, Options{})
		require.NoError(t, put(s, "", want, raw, len(raw)))
		require.NoError(t, change(s.path(want.Digest)))
		_, err := s.Load(want.Digest)
		if name == "removed" {
			require.ErrorIs(t, err, ErrMissing, name)
		} else {
			require.ErrorIs(t, err, ErrDigest, name)
		}
		assert.Empty(t, s.Files(), name)
		require.NoError(t, put(s, "", want, raw, len(raw)), name)
		_, err = s.Load(want.Digest)
		require.NoError(t, err, name)
	}
}

// TestRoom: files that nothing holds make room, the least recently used first; held files and young ones do not.
func TestRoom(t *testing.T) {
	now := newClock()
	first, firstRaw := vocabularyOf(t, 100)
	second, secondRaw := vocabularyOf(t, 101)
	third, thirdRaw := vocabularyOf(t, 102)
	s := openStore(t, Options{Most: first.Bytes + second.Bytes, Grace: time.Minute, Unused: time.Hour, Now: now.read})
	require.NoError(t, put(s, "", first, firstRaw, 100))
	now.pass(time.Second)
	require.NoError(t, put(s, "", second, secondRaw, 100))
	release, ok := s.Hold(first.Digest)
	require.True(t, ok)
	_, ok = s.Hold(third.Digest)
	require.False(t, ok)
	now.pass(time.Minute - time.Second)
	require.ErrorIs(t, put(s, "", third, thirdRaw, 100), ErrRoom, "the second is young")
	now.pass(time.Second)
	require.ErrorIs(t, put(s, "", third, thirdRaw, 100), ErrRoom, "a larger file than the second does not fit")
	assert.Equal(t, []File{first}, s.Files())
	release()
	release()
	now.pass(time.Minute)
	require.NoError(t, put(s, "", third, thirdRaw, 100))
	assert.Equal(t, []File{third}, s.Files())

	now.pass(time.Hour - time.Second)
	s.Sweep()
	assert.Len(t, s.Files(), 1)
	release, ok = s.Hold(third.Digest)
	require.True(t, ok)
	now.pass(2 * time.Hour)
	s.Sweep()
	assert.Len(t, s.Files(), 1)
	release()
	now.pass(time.Hour)
	s.Sweep()
	assert.Empty(t, s.Files())
	entries, err := os.ReadDir(s.o.Folder)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// holder is the log of a store, at whose first line somebody wants to hold a file.
type holder struct {
	slog.Handler
	hold func()
}

func (h *holder) Enabled(context.Context, slog.Level) bool { return true }

func (h *holder) Handle(context.Context, slog.Record) error {
	h.hold()
	return nil
}

// TestAFileThatIsHeldIsNotSwept holds a file while a sweep runs: either Hold succeeds and the file stays, or Hold fails
// because the sweep has removed the file.
func TestAFileThatIsHeldIsNotSwept(t *testing.T) {
	now := newClock()
	want, raw := vocabularyOf(t, 100)
	held := false
	var s *Store
	log := &holder{Handler: slog.DiscardHandler, hold: func() { _, held = s.Hold(want.Digest) }}
	s = openStore(t, Options{Now: now.read, Unused: time.Hour, Logger: slog.New(log)})
	require.NoError(t, put(s, "", want, raw, 80))
	now.pass(time.Hour)
	s.Sweep()
	_, err := os.Stat(s.path(want.Digest))
	assert.Equal(t, held, err == nil, "held: %t, the file: %v", held, err)
}

// TestAnOwnersBound: an owner's files are bounded, and do not bound others.
func TestAnOwnersBound(t *testing.T) {
	first, firstRaw := vocabularyOf(t, 100)
	second, secondRaw := vocabularyOf(t, 101)
	s := openStore(t, Options{OwnerMost: first.Bytes, Grace: time.Hour, Unused: time.Hour})
	require.NoError(t, put(s, "ann", first, firstRaw, 100))
	require.ErrorIs(t, put(s, "ann", second, secondRaw, 100), ErrRoom)
	release, ok := s.Hold(first.Digest)
	require.True(t, ok)
	require.ErrorIs(t, put(s, "ann", second, secondRaw, 100), ErrRoom, "the second is larger")
	release()
	require.ErrorIs(t, put(s, "bob", second, secondRaw, 100), ErrRoom, "it is larger than any owner may put")
	s.o.OwnerMost = second.Bytes
	require.NoError(t, put(s, "bob", second, secondRaw, 100))
}

// TestFilesThatJobsNameCount: files that an owner's jobs name count towards its bound, whoever put them, and those that
// other owners' jobs name do not. The owner "" is bounded in what no job names alone.
func TestFilesThatJobsNameCount(t *testing.T) {
	first, firstRaw := vocabularyOf(t, 100)
	second, secondRaw := vocabularyOf(t, 100+8)
	for name, c := range map[string]struct {
		owner string   // of the second file
		users []string // of the first file, which ann put
		held  bool
		fits  bool
	}{
		"own jobs":                  {"ann", []string{"bob", "ann"}, true, false},
		"own jobs, not yet held":    {"ann", []string{"ann"}, false, false},
		"no job":                    {"ann", nil, false, false},
		"no job, and held":          {"ann", nil, true, true}, // a job has just ended
		"another's jobs":            {"ann", []string{"bob"}, true, true},
		"another's file, own job":   {"bob", []string{"bob"}, true, false},
		"another's file and job":    {"bob", []string{"ann"}, true, true},
		"jobs of nobody":            {"", []string{""}, true, true},
		"another's file, unused":    {"bob", nil, false, true},
		"another's file, by nobody": {"bob", []string{""}, true, true},
		"own file, named by nobody": {"ann", []string{""}, true, true},
	} {
		s := openStore(t, Options{OwnerMost: first.Bytes + second.Bytes - 1, Unused: time.Hour,
			Owners: func() map[vocabulary.Digest][]string { return map[vocabulary.Digest][]string{first.Digest: c.users} }})
		require.NoError(t, put(s, "ann", first, firstRaw, 100), name)
		if c.held {
			release, ok := s.Hold(first.Digest)
			require.True(t, ok)
			defer release()
		}
		if err := put(s, c.owner, second, secondRaw, 100); c.fits {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorIs(t, err, ErrRoom, name)
		}
	}
}

// TestUploadsOfAnOwner: one owner leaves others the half of the files that may be put at once.
func TestUploadsOfAnOwner(t *testing.T) {
	s := openStore(t, Options{OwnerMost: 1 << 30})
	begin := func(owner string, i int) error {
		_, err := s.Append(owner, File{Digest: vocabulary.Digest{byte(i)}, Bytes: leastBytes}, 0, []byte{0})
		return err
	}
	for i := range maxUploads / 2 {
		require.NoError(t, begin("ann", i))
	}
	require.ErrorIs(t, begin("ann", maxUploads/2), ErrRoom)
	require.NoError(t, begin("bob", maxUploads/2))
}

func TestPartsThatStopComing(t *testing.T) {
	now := newClock()
	s := openStore(t, Options{Now: now.read, Unused: time.Hour})
	want, raw := vocabularyOf(t, 100)
	_, err := s.Append("", want, 0, raw[:80])
	require.NoError(t, err)
	now.pass(partialLife - 1)
	s.Sweep()
	assert.Equal(t, want.Bytes, s.Bytes())
	now.pass(1)
	s.Sweep()
	assert.Zero(t, s.Bytes())
	have, err := s.Append("", want, 80, raw[80:])
	require.NoError(t, err)
	assert.Zero(t, have, "the caller begins again")
	require.NoError(t, put(s, "", want, raw, 80))

	left := filepath.Join(s.o.Folder, "x"+partialSuffix)
	require.NoError(t, os.WriteFile(left, raw, 0o600))
	again := openStore(t, Options{Folder: s.o.Folder})
	assert.NoFileExists(t, left)
	assert.Len(t, again.Files(), 1)
}

// FuzzAppend puts pieces as a hostile caller might: nothing panics, no file gets a wrong name, and bounds hold.
func FuzzAppend(f *testing.F) {
	want, raw := vocabularyOf(f, 20)
	f.Add(int64(0), int64(0), want.Bytes, uint16(len(raw)))
	f.Add(int64(8), int64(-1), int64(leastBytes), uint16(3))
	f.Fuzz(func(t *testing.T, first, second, size int64, cut uint16) {
		s := openStore(t, Options{Most: 4 * want.Bytes})
		file := File{Digest: want.Digest, Bytes: size}
		n := min(int(cut), len(raw))
		for _, offset := range []int64{first, second, 0} {
			have, err := s.Append("x", file, offset, raw[:n])
			if err == nil {
				require.GreaterOrEqual(t, have, int64(0))
				require.LessOrEqual(t, have, size)
			}
			require.LessOrEqual(t, s.Bytes(), s.o.Most)
		}
		for _, stored := range s.Files() {
			_, err := s.Load(stored.Digest)
			require.NoError(t, err)
		}
	})
}
