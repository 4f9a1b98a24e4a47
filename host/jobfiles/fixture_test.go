package jobfiles

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/vocabulary"
)

// vocabularyOf makes a vocabulary of a number of keys, and returns its file.
func vocabularyOf(t testing.TB, keys int) (File, []byte) {
	t.Helper()
	b, err := vocabulary.NewBuilder([]vocabulary.Column{{Name: "c"}}, vocabulary.Rules{}, vocabulary.BuilderOptions{})
	require.NoError(t, err)
	ids := make([]int64, keys)
	for i := range ids {
		ids[i] = int64(i) * 7919
	}
	require.NoError(t, b.Add(0, 0, ids, nil))
	path := filepath.Join(t.TempDir(), "v")
	made, err := b.Finish(path)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return File{Digest: made.Digest, Bytes: int64(len(raw))}, raw
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1e9, 0)} }

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openStore opens a store in a folder of its own.
func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	if o.Most == 0 {
		o.Most = 1 << 30
	}
	s, err := Open(o)
	require.NoError(t, err)
	return s
}

// put puts a file in pieces of a size, and returns the error of the first piece that fails.
func put(s *Store, owner string, want File, raw []byte, size int) error {
	for at := 0; at < len(raw); at += size {
		if _, err := s.Append(owner, want, int64(at), raw[at:min(at+size, len(raw))]); err != nil {
			return err
		}
	}
	return nil
}
