package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/partition"
)

// memorySource is a source of bytes in memory, which records the requests.
type memorySource struct {
	data     []byte
	identity Identity
	fail     func(request int) error // nil lets the request succeed
	hold     chan struct{}           // if not nil, requests wait until it is closed

	mu       sync.Mutex // guards what follows
	requests []interval
	running  int
	most     int // how many ran at once, at most
}

func newMemorySource(size int) *memorySource {
	data := make([]byte, size)
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(i)*0x9e3779b97f4a7c15)
	}
	return &memorySource{data: data, identity: Identity{Kind: ByETag, Value: `"1"`, Size: int64(size)}}
}

func (s *memorySource) Name() string       { return "memory" }
func (s *memorySource) Size() int64        { return int64(len(s.data)) }
func (s *memorySource) Identity() Identity { return s.identity }
func (s *memorySource) Close() error       { return nil }

func (s *memorySource) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, interval{off, off + int64(len(b))})
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	if s.fail != nil {
		if err := s.fail(n); err != nil {
			return 0, err
		}
	}
	return bytes.NewReader(s.data).ReadAt(b, off)
}

// asked returns the intervals that were requested so far.
func (s *memorySource) asked() []interval {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]interval{}, s.requests...)
}

func newCache(t require.TestingT, o Options) *Cache {
	c, err := NewCache(o)
	require.NoError(t, err)
	return c
}

// checkMemory checks that segments and spare buffers have as many bytes as the cache counts, and no more than its
// limit.
func (c *Cache) checkMemory(t require.TestingT) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var held int64
	for g := range c.segments {
		held += int64(cap(g.buffer))
	}
	for class, list := range c.spareBuffers {
		held += int64(class * len(list))
	}
	require.Equal(t, held, c.used)
	require.LessOrEqual(t, c.used, c.memory)
}

// TestReaderReadsWhatLiesThere reads at random places from several goroutines, with little memory and requests that
// fail temporarily. The bytes must be the source's, and the bounds must hold.
func TestReaderReadsWhatLiesThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := newMemorySource(rapid.IntRange(0, 7<<20).Draw(t, "size"))
		every := rapid.IntRange(2, 9).Draw(t, "failing")
		src.fail = func(n int) error {
			if n%every == 0 {
				return &UnreachableError{Name: "memory", Err: io.ErrClosedPipe}
			}
			return nil
		}
		cache := newCache(t, Options{
			Memory: MinMemory, Requests: rapid.IntRange(1, 4).Draw(t, "requests"),
			Retry: Retry{Attempts: 50, Wait: func(context.Context, time.Duration) error { return nil }},
		})
		r := cache.NewReader(src)
		if rapid.Bool().Draw(t, "whole") {
			r.setLayout(wholeLayout(src.Size(), int64(rapid.IntRange(0, 1000).Draw(t, "rows"))))
		}
		var group sync.WaitGroup
		for i := range 3 {
			seed := rapid.Uint64().Draw(t, "seed")
			group.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 2))
				defer r.Expect(nil, int64(100*i), 100)()
				for range 6 {
					off := rng.Int64N(src.Size() + 2)
					b := make([]byte, rng.IntN(1<<21))
					if rng.IntN(3) == 0 {
						r.Prepare([]partition.Run{{From: uint64(off), Len: uint64(len(b))}})
					}
					n, err := r.ReadAt(b, off)
					want := src.data[min(off, src.Size()):min(off+int64(len(b)), src.Size())]
					if n < len(b) {
						assert.ErrorIs(t, err, io.EOF)
					} else {
						assert.NoError(t, err)
					}
					assert.True(t, bytes.Equal(want, b[:n]), "bytes %d+%d", off, len(b))
					cache.checkMemory(t)
				}
			})
		}
		group.Wait()
		require.NoError(t, r.Close())
		cache.checkMemory(t)
		require.Empty(t, cache.segments)
		require.LessOrEqual(t, src.most, cap(cache.requests))
		var asked int64
		for _, q := range src.asked() {
			require.LessOrEqual(t, q.to-q.from, int64(LongestRead))
			asked += q.to - q.from
		}
		s := r.Statistics()
		require.EqualValues(t, len(src.requests), s.Requests)
		require.LessOrEqual(t, s.Bytes, asked)
		require.LessOrEqual(t, s.Unneeded, s.Bytes)
		require.Equal(t, s.Requests > 0, s.Retries > 0, "the first request fails")
	})
}

// columns returns a layout of row groups. Every column chunk has chunk bytes, and the chunks lie one behind the other
// from byte 4.
func columns(groups, leaves int, chunk, rows int64) layout {
	var l layout
	at := int64(4)
	for g := range groups {
		l.groups = append(l.groups, rowGroup{int64(g) * rows, int64(g+1) * rows})
		for i := range leaves {
			l.chunks = append(l.chunks, chunkPlace{interval: interval{at, at + chunk}, firstPage: at, group: g, leaf: i})
			at += chunk
		}
	}
	return l
}

// TestColumnsAreJoined reads every second one of forty small columns, and checks that they come by requests of 1.25
// MiB.
func TestColumnsAreJoined(t *testing.T) {
	const chunk = 50_000
	src := newMemorySource(4 + 40*chunk)
	l := columns(1, 40, chunk, 1000)
	for i := 39; i >= 0; i -= 2 {
		l.chunks = append(l.chunks[:i], l.chunks[i+1:]...)
	}
	r := newCache(t, Options{}).NewReader(src)
	r.setLayout(l)
	b := make([]byte, 5000)
	for at := int64(0); at < chunk; at += 5000 {
		for _, c := range l.chunks {
			n, err := r.ReadAt(b, c.from+at)
			require.NoError(t, err)
			require.True(t, bytes.Equal(src.data[c.from+at:][:n], b))
		}
	}
	require.NoError(t, r.Close())
	asked := src.asked()
	require.Len(t, asked, 2, "%v", asked)
	slices.SortFunc(asked, func(a, b interval) int { return int(a.from - b.from) })
	assert.Equal(t, interval{4, 4 + LongestRead}, asked[0])
	assert.Equal(t, l.chunks[19].to, asked[1].to)
	s := r.Statistics()
	assert.EqualValues(t, 2, s.Requests)
	assert.EqualValues(t, s.Bytes-20*chunk, s.Unneeded)
}

// TestOnlyRowsOfStreamsAreRead: for a stream over a tenth of a row group's rows, the bytes that are read of large
// chunks stay near a tenth of them, read-ahead included, in fewer than 12 requests.
func TestOnlyRowsOfStreamsAreRead(t *testing.T) {
	const chunk = 20 << 20
	src := newMemorySource(4 + 2*chunk)
	r := newCache(t, Options{}).NewReader(src)
	r.setLayout(columns(1, 2, chunk, 1000))
	forget := r.Expect(nil, 100, 100)
	b := make([]byte, 10_000)
	for at := chunk/10 - 10_000; at < 2*chunk/10; at += len(b) {
		for c := range 2 {
			_, err := r.ReadAt(b, int64(4+c*chunk+at))
			require.NoError(t, err)
		}
	}
	forget()
	require.NoError(t, r.Close())
	s := r.Statistics()
	assert.Less(t, s.Bytes, int64(2*(chunk/10+2*(chunk/slackShare+slackBytes))))
	assert.Greater(t, s.Bytes, int64(2*chunk/10))
	assert.Less(t, s.Requests, int64(12))
}

// TestReadAhead: a read of a column's first bytes also requests the bytes after them; a read at the end of a column's
// chunk requests the same column's chunk in the next row group.
func TestReadAhead(t *testing.T) {
	const chunk = 2 * LongestRead
	src := newMemorySource(4 + 4*chunk)
	r := newCache(t, Options{}).NewReader(src)
	r.setLayout(columns(2, 2, chunk, 1000))
	b := make([]byte, 100)
	_, err := r.ReadAt(b, 4)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(src.asked()) == 2 }, time.Minute, time.Millisecond)
	assert.ElementsMatch(t, []interval{{4, 4 + LongestRead}, {4 + LongestRead, 4 + chunk}}, src.asked())
	_, err = r.ReadAt(b, 4+LongestRead)
	require.NoError(t, err)
	following := interval{4 + 2*chunk, 4 + 2*chunk + LongestRead} // the column's next row group
	require.Eventually(t, func() bool { return slices.Contains(src.asked(), following) }, time.Minute, time.Millisecond)
	require.NoError(t, r.Close())
}

// TestFooterComesAtOnce: of a file without a known layout, two reads near the end are one request.
func TestFooterComesAtOnce(t *testing.T) {
	src := newMemorySource(1 << 20)
	r := newCache(t, Options{}).NewReader(src)
	for _, at := range []int64{1<<20 - 8, 1<<20 - 65536, 0} {
		_, err := r.ReadAt(make([]byte, 4), at)
		require.NoError(t, err)
	}
	require.NoError(t, r.Close())
	assert.Equal(t, []interval{{1<<20 - footerRead, 1 << 20}, {0, firstRead}}, src.asked())
}

// TestRetriesAreBounded: waits double up to a limit, are as long as the server asks up to MaxRetryAfter, and end after
// the last attempt with its error.
func TestRetriesAreBounded(t *testing.T) {
	leaks.Check(t)
	var waits []time.Duration
	src := newMemorySource(100)
	src.fail = func(n int) error {
		if n == 2 {
			return &ThrottledError{Name: "memory", Status: 503, After: 7 * time.Second}
		}
		if n == 3 {
			return &ThrottledError{Name: "memory", Status: 503, After: time.Hour}
		}
		return &TruncatedError{Name: "memory", Want: 100, Got: 3}
	}
	c := newCache(t, Options{Retry: Retry{
		Attempts: 8, First: 100 * time.Millisecond, Longest: time.Second, Random: func() float64 { return 0.5 },
		Wait: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
	}})
	r := c.NewReader(src)
	_, err := r.ReadAt(make([]byte, 4), 0)
	var truncated *TruncatedError
	require.ErrorAs(t, err, &truncated)
	assert.ErrorContains(t, err, "given up after 8 attempts")
	ms := time.Millisecond
	assert.Equal(t, []time.Duration{
		50 * ms, 100 * ms, 7 * time.Second, MaxRetryAfter, 500 * ms, 500 * ms, 500 * ms,
	}, waits)
	s := r.Statistics()
	assert.EqualValues(t, 7, s.Retries)
	assert.Equal(t, 1750*ms-50*ms+7*time.Second+MaxRetryAfter-50*ms, s.Waited)
	src.fail = nil // the next read asks again
	_, err = r.ReadAt(make([]byte, 4), 0)
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

// TestAttemptsEnd: an attempt without an answer ends after its timeout and is followed by another attempt.
func TestAttemptsEnd(t *testing.T) {
	src := newMemorySource(100)
	src.hold = make(chan struct{})
	r := newCache(t, Options{Retry: Retry{Attempts: 2, Timeout: 10 * time.Millisecond, First: 1}}).NewReader(src)
	_, err := r.ReadAt(make([]byte, 4), 0)
	var unreachable *UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.ErrorIs(t, err, errAttemptTimeout)
	assert.Len(t, src.asked(), 2)
	require.NoError(t, r.Close())
}

// TestChangeIsForGood: after one read found that the object has changed, all reads fail, also those of bytes that were
// read before, and no request is repeated.
func TestChangeIsForGood(t *testing.T) {
	leaks.Check(t)
	src := newMemorySource(4 << 20)
	r := newCache(t, Options{}).NewReader(src)
	_, err := r.ReadAt(make([]byte, 4), 0)
	require.NoError(t, err)
	src.fail = func(int) error { return &ChangedError{Name: "memory", Pinned: src.identity} }
	_, err = r.ReadAt(make([]byte, 4), 1<<20)
	var changed *ChangedError
	require.ErrorAs(t, err, &changed)
	src.fail = nil
	_, err = r.ReadAt(make([]byte, 4), 0)
	require.ErrorAs(t, err, &changed)
	require.ErrorAs(t, r.Failed(), &changed)
	assert.Zero(t, r.Statistics().Retries)
	require.NoError(t, r.Close())
}

// TestReadsEndWithTheirContext checks that a waiting read ends with its context, or with the reader, and that the
// next read succeeds.
func TestReadsEndWithTheirContext(t *testing.T) {
	leaks.Check(t)
	src := newMemorySource(1 << 20)
	src.hold = make(chan struct{})
	r := newCache(t, Options{}).NewReader(src)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	_, err := r.ReadAtContext(ctx, make([]byte, 4), 0)
	require.ErrorIs(t, err, why)
	result := make(chan error)
	go func() {
		_, err := r.ReadAt(make([]byte, 4), 0)
		result <- err
	}()
	require.Eventually(t, func() bool {
		r.cache.mu.Lock()
		defer r.cache.mu.Unlock()
		return len(r.segments) == 1 && r.segments[0].pins == 1
	}, time.Minute, time.Millisecond)
	close(src.hold)
	require.NoError(t, <-result)
	require.NoError(t, r.Close())
	_, err = r.ReadAt(make([]byte, 4), 0)
	require.ErrorIs(t, err, ErrReaderClosed)
}

// TestMemoryIsShared: eight readers that together want more memory than the cache has all read the right bytes, and the
// cache stays within its memory.
func TestMemoryIsShared(t *testing.T) {
	c := newCache(t, Options{Memory: MinMemory})
	var group sync.WaitGroup
	for i := range 8 {
		src := newMemorySource(6<<20 + i)
		r := c.NewReader(src)
		r.ExpectAll()
		group.Go(func() {
			b := make([]byte, len(src.data))
			_, err := r.ReadAt(b, 0)
			assert.NoError(t, err)
			assert.True(t, bytes.Equal(src.data, b))
			c.checkMemory(t)
			assert.NoError(t, r.Close())
		})
	}
	group.Wait()
	c.checkMemory(t)
}

func TestCacheRefuses(t *testing.T) {
	for _, o := range []Options{{Memory: MinMemory - 1}, {Memory: -1}, {Requests: -1}} {
		_, err := NewCache(o)
		require.Error(t, err, "%+v", o)
	}
	newCache(t, Options{Memory: MinMemory, Requests: 1})
}

func TestIntervalsCountEachByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s intervals
		seen := map[int64]bool{}
		for range rapid.IntRange(0, 30).Draw(t, "adds") {
			from := rapid.Int64Range(0, 60).Draw(t, "from")
			to := from + rapid.Int64Range(0, 9).Draw(t, "bytes")
			s.add(from, to)
			for i := from; i < to; i++ {
				seen[i] = true
			}
			require.EqualValues(t, len(seen), s.total, fmt.Sprint(s.list))
			for i := 1; i < len(s.list); i++ {
				require.Less(t, s.list[i-1].to, s.list[i].from)
			}
		}
	})
}

// shortSource ends its first answers early, as an io.ReaderAt does at its end.
type shortSource struct {
	*memorySource
	short int // answers
}

func (s *shortSource) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	if s.short > 0 {
		s.short--
		n, err := s.memorySource.ReadAt(ctx, b[:len(b)/2], off)
		if err == nil {
			err = io.EOF
		}
		return n, err
	}
	return s.memorySource.ReadAt(ctx, b, off)
}

func TestSequenceDoesNotEndEarly(t *testing.T) {
	retry := Retry{Attempts: 3, Wait: func(context.Context, time.Duration) error { return nil }}
	src := &shortSource{newMemorySource(1000), 2}
	got, err := io.ReadAll(NewSequence(t.Context(), src, retry))
	require.NoError(t, err)
	assert.Equal(t, src.data, got)
	src.short = 3
	_, err = io.ReadAll(NewSequence(t.Context(), src, retry))
	var truncated *TruncatedError
	require.ErrorAs(t, err, &truncated)
	assert.EqualValues(t, 500, truncated.Got)
}
