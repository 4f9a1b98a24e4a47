package jobfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// peer is a source for tests.
type peer struct {
	raw   []byte
	piece int           // bytes of a piece; 0: as many as a Store sends
	fail  error         // of every request
	cut   int64         // from this byte on every request fails; 0: none does
	wait  chan struct{} // every request waits until it is closed; nil: none waits
	asked atomic.Int32
}

func (p *peer) source(name string) Source {
	return Source{Name: name, Read: func(
		ctx context.Context, _ vocabulary.Digest, offset int64,
	) ([]byte, int64, error) {
		p.asked.Add(1)
		if p.wait != nil {
			select {
			case <-p.wait:
			case <-ctx.Done():
				return nil, 0, ctx.Err()
			}
		}
		if p.fail != nil {
			return nil, 0, p.fail
		}
		if p.cut > 0 && offset >= p.cut {
			return nil, 0, errors.New("the peer is gone")
		}
		n := min(len(p.raw)-int(offset), MaxPiece)
		if p.piece > 0 {
			n = min(n, p.piece)
		}
		return p.raw[offset:][:n], int64(len(p.raw)), nil
	}}
}

// newTestCache makes a cache of peers.
func newTestCache(t *testing.T, o CacheOptions, peers ...*peer) *Cache {
	t.Helper()
	leaks.Check(t)
	if o.Store == nil {
		o.Store = openStore(t, Options{})
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	o.Sources = func(vocabulary.Digest) (list []Source) {
		for i, p := range peers {
			list = append(list, p.source(fmt.Sprint("peer ", i)))
		}
		return list
	}
	c := NewCache(o)
	t.Cleanup(c.Close)
	return c
}

func TestAcquire(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	p := &peer{raw: raw, piece: 100}
	c := newTestCache(t, CacheOptions{}, p)
	v, release, err := c.Acquire(t.Context(), want)
	require.NoError(t, err)
	assert.Equal(t, want.Digest, v.Digest)
	asked := p.asked.Load()
	again, releaseAgain, err := c.Acquire(t.Context(), want)
	require.NoError(t, err)
	assert.Same(t, v, again, "two jobs share a table")
	assert.Equal(t, asked, p.asked.Load())
	counts := c.Counts()
	assert.Equal(t, Counts{Fetched: 1, FetchedBytes: want.Bytes, Loaded: 1, MemoryBytes: v.MemoryBytes()}, counts)
	release()
	release()
	assert.Equal(t, 1, c.Counts().Loaded)
	releaseAgain()
	assert.Zero(t, c.Counts().Loaded)
	_, release, err = c.Acquire(t.Context(), want)
	require.NoError(t, err)
	release()
	assert.Equal(t, asked, p.asked.Load(), "the file is on the disk")
}

// TestAcquireChecksTheLength: a job that understates a file's length gets no more memory than the cache has.
func TestAcquireChecksTheLength(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	c := newTestCache(t, CacheOptions{Memory: memoryFactor * leastBytes}, &peer{raw: raw})
	require.NoError(t, c.Fetch(t.Context(), want))
	_, _, err := c.Acquire(t.Context(), want)
	require.ErrorIs(t, err, ErrRoom)
	want.Bytes = leastBytes
	_, _, err = c.Acquire(t.Context(), want)
	require.ErrorIs(t, err, ErrRequest)
	assert.Zero(t, c.Counts().Loaded)
}

func TestSeveralAtOnceFetchOnce(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	p := &peer{raw: raw}
	c := newTestCache(t, CacheOptions{}, p)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			v, release, err := c.Acquire(t.Context(), want)
			if assert.NoError(t, err) {
				assert.Equal(t, want.Digest, v.Digest)
				release()
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, 1, p.asked.Load())
	assert.EqualValues(t, 1, c.Counts().Fetched)
}

// TestAFetchGoesOn: a caller that cannot wait gets ErrFetching, and a later call the result.
func TestAFetchGoesOn(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	p := &peer{raw: raw, wait: make(chan struct{})}
	c := newTestCache(t, CacheOptions{Wait: time.Millisecond}, p)
	_, _, err := c.Acquire(t.Context(), want)
	require.ErrorIs(t, err, ErrFetching)
	_, _, err = c.Acquire(t.Context(), File{Digest: want.Digest, Bytes: want.Bytes + 8})
	require.ErrorIs(t, err, ErrRequest)
	close(p.wait)
	require.Eventually(t, func() bool {
		_, release, err := c.Acquire(t.Context(), want)
		if err == nil {
			release()
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	assert.EqualValues(t, 1, p.asked.Load())
}

func TestHostilePeers(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	wrong := bytes.Clone(raw)
	wrong[len(wrong)/2] ^= 1
	_, other := vocabularyOf(t, 999)
	for name, bad := range map[string]*peer{
		"a byte differs":    {raw: wrong, piece: 1000},
		"another file":      {raw: other},
		"more bytes":        {raw: append(bytes.Clone(raw), 0)},
		"half, then gone":   {raw: wrong, piece: 500, cut: 4500},
		"not there":         {fail: ErrMissing},
		"always an error":   {fail: errors.New("no")},
		"too large a piece": {raw: make([]byte, 2*MaxPiece), piece: 2 * MaxPiece},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCache(t, CacheOptions{}, bad, &peer{raw: raw})
			v, release, err := c.Acquire(t.Context(), want)
			require.NoError(t, err)
			assert.Equal(t, want.Digest, v.Digest)
			release()

			c = newTestCache(t, CacheOptions{}, bad)
			_, _, err = c.Acquire(t.Context(), want)
			require.ErrorIs(t, err, ErrMissing)
			require.ErrorContains(t, err, want.Digest.String())
			assert.Empty(t, c.o.Store.Files())
			assert.EqualValues(t, 1, c.Counts().Failed)
		})
	}
}

func TestPiecesBehindTheEnd(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	c := newTestCache(t, CacheOptions{})
	for _, piece := range [][]byte{nil, append(bytes.Clone(raw), 1)} {
		c.o.Sources = func(vocabulary.Digest) []Source {
			return []Source{{Name: "p", Read: func(context.Context, vocabulary.Digest, int64) ([]byte, int64, error) {
				return piece, want.Bytes, nil
			}}}
		}
		_, _, err := c.Acquire(t.Context(), want)
		require.ErrorIs(t, err, ErrDigest)
	}
}

// TestNoRoom: neither a full disk nor too little memory takes the files of others.
func TestNoRoom(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	small, smallRaw := vocabularyOf(t, 10)
	p := &peer{raw: raw}
	c := newTestCache(t, CacheOptions{Store: openStore(t, Options{Most: want.Bytes - 1})}, p)
	_, _, err := c.Acquire(t.Context(), want)
	require.ErrorIs(t, err, ErrRoom)

	c = newTestCache(t, CacheOptions{Memory: memoryFactor*want.Bytes - 1}, p)
	_, _, err = c.Acquire(t.Context(), want)
	require.ErrorIs(t, err, ErrRoom)
	assert.ErrorContains(t, err, "memory")
	p.raw = smallRaw
	_, release, err := c.Acquire(t.Context(), small)
	require.NoError(t, err)
	release()
	assert.Zero(t, c.Counts().MemoryBytes)
}

// TestTheDiskDamagesAFile: it is fetched again.
func TestTheDiskDamagesAFile(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	p := &peer{raw: raw}
	c := newTestCache(t, CacheOptions{}, p)
	_, release, err := c.Acquire(t.Context(), want)
	require.NoError(t, err)
	release()
	require.NoError(t, os.Truncate(c.o.Store.path(want.Digest), 100))
	_, release, err = c.Acquire(t.Context(), want)
	require.NoError(t, err)
	release()
	assert.EqualValues(t, 2, c.Counts().Fetched)
}

func TestCloseEndsFetches(t *testing.T) {
	want, raw := vocabularyOf(t, 1000)
	c := newTestCache(t, CacheOptions{Wait: time.Millisecond}, &peer{raw: raw, wait: make(chan struct{})})
	_, _, err := c.Acquire(t.Context(), want)
	require.ErrorIs(t, err, ErrFetching)
	c.Close()
	_, ok := c.o.Store.Size(want.Digest)
	assert.False(t, ok)
}
