package jobfiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/vocabulary"
)

// memoryFactor bounds the memory of a vocabulary that is ready for lookups, as a multiple of its file: 8 bytes a key in
// the list, and at most 64 in the table.
const memoryFactor = 9

// CacheOptions configure a Cache.
type CacheOptions struct {
	Store  *Store
	Memory int64 // most bytes of what was acquired
	// Sources returns the peers that may have a file, the best first.
	Sources func(vocabulary.Digest) []Source
	// Wait is how long Acquire waits for a fetch, which then goes on; 0 means as long as the context.
	Wait   time.Duration
	Logger *slog.Logger // nil: silent
}

// Cache returns what files hold, vocabularies ready for lookups, and fetches those that its Store lacks.
type Cache struct {
	o      CacheOptions
	ctx    context.Context // ctx is that of the fetches; it ends with Close.
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	loaded  map[vocabulary.Digest]*loaded
	fetches map[vocabulary.Digest]*fetch
	counts  Counts

	contents int64 // bytes of the selections and modules in memory
}

// Counts are the work of a Cache since it was made, and what it holds.
type Counts struct {
	Fetched, Failed uint64 // fetches that ended
	FetchedBytes    int64  // FetchedBytes counts files that were fetched whole.
	Loaded          int    // vocabularies that are ready for lookups
	MemoryBytes     int64  // MemoryBytes counts their memory, and that of selections and modules.
}

// loaded is a vocabulary in memory, or one that is being read.
type loaded struct {
	ready       chan struct{} // closed when the fields below are set
	vocabulary  *vocabulary.Vocabulary
	err         error
	releaseFile func()

	users  int   // guarded by Cache.mu
	memory int64 // guarded by Cache.mu
}

// NewCache makes a cache. Close ends it.
func NewCache(o CacheOptions) *Cache {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cache{o: o, loaded: map[vocabulary.Digest]*loaded{}, fetches: map[vocabulary.Digest]*fetch{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends the fetches. Vocabularies that were acquired stay usable.
func (c *Cache) Close() {
	c.cancel()
	c.wg.Wait()
}

// Counts returns the counts.
func (c *Cache) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	n.MemoryBytes = c.contents
	for _, l := range c.loaded {
		n.Loaded++
		n.MemoryBytes += l.memory
	}
	return n
}

// Acquire returns a vocabulary that is ready for lookups, and a function that gives it back. It fetches the file if
// the Store lacks it. While the fetch takes longer than the context, or than CacheOptions.Wait, the error wraps
// ErrFetching: the fetch goes on, and a later call takes its result.
func (c *Cache) Acquire(ctx context.Context, want File) (*vocabulary.Vocabulary, func(), error) {
	if err := want.check(); err != nil {
		return nil, nil, err
	}
	for again := true; ; again = false {
		release, ok := c.o.Store.Hold(want.Digest)
		if !ok {
			if err := c.Fetch(ctx, want); err != nil {
				return nil, nil, err
			}
			if release, ok = c.o.Store.Hold(want.Digest); !ok {
				return nil, nil, fmt.Errorf("%w: vocabulary %v was removed at once", ErrRoom, want.Digest)
			}
		}
		if size, ok := c.o.Store.Size(want.Digest); ok && size != want.Bytes { // the memory is reserved by want.Bytes
			release()
			return nil, nil, fmt.Errorf("%w: vocabulary %v: its file has %d bytes, not %d", ErrRequest, want.Digest, size,
				want.Bytes)
		}
		v, releaseMemory, err := c.load(ctx, want, release)
		if again && (errors.Is(err, ErrDigest) || errors.Is(err, ErrMissing)) {
			continue // the file was damaged on the disk and is removed: it is fetched again, once
		}
		return v, releaseMemory, err
	}
}

// load reads a file that is held, once for all callers. It takes the hold over.
func (c *Cache) load(ctx context.Context, want File, releaseFile func()) (*vocabulary.Vocabulary, func(), error) {
	c.mu.Lock()
	l, ok := c.loaded[want.Digest]
	if ok {
		l.users++
		c.mu.Unlock()
		releaseFile() // the first caller holds the file
		select {
		case <-l.ready:
		case <-ctx.Done():
			c.leave(want.Digest, l)
			return nil, nil, context.Cause(ctx)
		}
	} else {
		if err := c.reserve(want); err != nil {
			c.mu.Unlock()
			releaseFile()
			return nil, nil, err
		}
		l = &loaded{ready: make(chan struct{}), releaseFile: releaseFile, users: 1, memory: memoryFactor * want.Bytes}
		c.loaded[want.Digest] = l
		c.mu.Unlock()
		v, err := c.o.Store.Load(want.Digest)
		c.mu.Lock()
		l.vocabulary, l.err = v, err
		if err == nil {
			l.memory = v.MemoryBytes()
		} else {
			delete(c.loaded, want.Digest) // callers that come later read again
		}
		c.mu.Unlock()
		close(l.ready)
	}
	if l.err != nil {
		c.leave(want.Digest, l)
		return nil, nil, l.err
	}
	var once sync.Once
	return l.vocabulary, func() { once.Do(func() { c.leave(want.Digest, l) }) }, nil
}

// reserve returns an error if there is no memory for a vocabulary. c.mu is held.
func (c *Cache) reserve(want File) error {
	used := c.memoryUsed()
	if need := memoryFactor * want.Bytes; used+need > c.o.Memory {
		return fmt.Errorf("%w: vocabulary %v needs up to %d bytes of memory, and %d of %d bytes are in use", ErrRoom,
			want.Digest, need, used, c.o.Memory)
	}
	return nil
}

// memoryUsed returns the bytes of what is in memory. c.mu is held.
func (c *Cache) memoryUsed() int64 {
	used := c.contents
	for _, l := range c.loaded {
		used += l.memory
	}
	return used
}

// leave ends one use of a vocabulary. The last user frees the memory.
func (c *Cache) leave(digest vocabulary.Digest, l *loaded) {
	c.mu.Lock()
	l.users--
	last := l.users == 0
	if last && c.loaded[digest] == l {
		delete(c.loaded, digest)
	}
	c.mu.Unlock()
	if last {
		l.releaseFile()
	}
}
