package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/wait"
)

const (
	// LongestRead is the most bytes of one request: DPP reads 1.25 MiB at once over its network.
	LongestRead = 1280 << 10
	// shortestRead is the fewest bytes that one request for a file's columns asks for, even if memory is scarce.
	shortestRead = 64 << 10
	// DefaultMemory is the memory of a cache: forty columns of two streams, each with one read in use and one ahead.
	DefaultMemory = 192 << 20
	// MinMemory is the least memory of a cache.
	MinMemory = 4 * LongestRead
	// DefaultRequests is how many requests are under way at once.
	DefaultRequests = 32
)

// Options of a cache. The zero value works.
type Options struct {
	Memory   int64 // bytes of all readers' segments together; 0 is DefaultMemory, at least MinMemory
	Requests int   // under way at once; 0 is DefaultRequests
	Retry    Retry
}

// Cache bounds what all readers of a process hold and ask for: memory and requests. It is safe for concurrent use.
type Cache struct {
	memory   int64
	retry    Retry
	requests chan struct{} // a token for each request under way

	mu           sync.Mutex // guards what follows, and all segments and readers of the cache
	used         int64      // bytes of segments and of spare buffers
	spareBuffers map[int][][]byte
	memoryFreed  wait.Broadcast // It wakes reads when memory becomes free or evictable.
	useCount     uint64         // counts uses of segments
	segments     map[*segment]struct{}
}

// NewCache returns a cache without readers.
func NewCache(o Options) (*Cache, error) {
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Requests == 0 {
		o.Requests = DefaultRequests
	}
	if o.Memory < MinMemory || o.Requests < 1 {
		return nil, fmt.Errorf("%d bytes of memory and %d requests at once: want at least %d bytes and one request",
			o.Memory, o.Requests, MinMemory)
	}
	return &Cache{
		memory: o.Memory, retry: o.Retry.withDefaults(), requests: make(chan struct{}, o.Requests),
		spareBuffers: map[int][][]byte{}, segments: map[*segment]struct{}{},
	}, nil
}

// Statistics count what readers did.
type Statistics struct {
	Requests int64         `json:"requests"`       // Requests counts those that were answered with bytes, or failed.
	Bytes    int64         `json:"bytes"`          // Bytes counts those that came.
	Unneeded int64         `json:"unneeded_bytes"` // Unneeded counts bytes that came and were never read.
	Retries  int64         `json:"retries"`        // Retries counts those of requests.
	Waited   time.Duration `json:"waited_ns"`      // between attempts, as servers or the backoff asked
	Stalled  time.Duration `json:"stalled_ns"`     // for which reads waited for bytes that had not come yet
}

// Add adds what another reader did.
func (s *Statistics) Add(o Statistics) {
	s.Requests += o.Requests
	s.Bytes += o.Bytes
	s.Unneeded += o.Unneeded
	s.Retries += o.Retries
	s.Waited += o.Waited
	s.Stalled += o.Stalled
}

// segment is the bytes of one request.
type segment struct {
	reader     *Reader
	from, to   int64
	buffer     []byte        // its capacity is a size class
	done       chan struct{} // closed when the request ended; err is then set
	err        error
	pins       int  // reads that copy from it
	begunAhead bool // the request was begun before a read wanted it
	touched    bool // a read took bytes from it
	bytesRead  intervals
	lastUse    uint64
}

// ended reports whether the request ended.
func (g *segment) ended() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// exhausted reports whether every byte was read.
func (g *segment) exhausted() bool { return g.bytesRead.total == g.to-g.from }

// sizeClasses are the capacities of buffers.
var sizeClasses = [...]int{4 << 10, 16 << 10, shortestRead, 128 << 10, 256 << 10, 512 << 10, LongestRead}

// sizeClassOf returns the capacity of a buffer for n bytes.
func sizeClassOf(n int64) int {
	for _, class := range sizeClasses {
		if n <= int64(class) {
			return class
		}
	}
	return LongestRead
}

// reserveBuffer returns a buffer of n bytes, or nil where the memory lacks room. With force, segments that were not
// read whole give way too. Without force a quarter of the memory stays free for reads that wait. The cache is locked.
func (c *Cache) reserveBuffer(n int64, force bool) []byte {
	class, memory := sizeClassOf(n), c.memory
	if !force {
		memory -= memory / 4
	}
	if list := c.spareBuffers[class]; len(list) > 0 {
		b := list[len(list)-1]
		c.spareBuffers[class] = list[:len(list)-1]
		return b[:n]
	}
	for c.used+int64(class) > memory {
		if !c.dropSpareBuffer() && !c.evictSegment(force) {
			return nil
		}
		if list := c.spareBuffers[class]; len(list) > 0 {
			b := list[len(list)-1]
			c.spareBuffers[class] = list[:len(list)-1]
			return b[:n]
		}
	}
	c.used += int64(class)
	return make([]byte, n, class)
}

// dropSpareBuffer gives one spare buffer to the garbage collector.
func (c *Cache) dropSpareBuffer() bool {
	for class, list := range c.spareBuffers {
		if len(list) > 0 {
			list[len(list)-1] = nil
			c.spareBuffers[class] = list[:len(list)-1]
			c.used -= int64(class)
			return true
		}
	}
	return false
}

// evictSegment drops the segment that is least likely to be needed again. Segments that were read whole go first, then
// those that were read in part, then those that were not read at all; among equals the segment that was used longest
// ago goes first. Without force only segments that were read whole are dropped.
func (c *Cache) evictSegment(force bool) bool {
	rank := func(g *segment) int {
		switch {
		case g.exhausted():
			return 0
		case g.touched:
			return 1
		}
		return 2
	}
	var victim *segment
	for g := range c.segments {
		if g.pins > 0 || !g.ended() || !force && !g.exhausted() {
			continue
		}
		if victim == nil || rank(g) < rank(victim) || rank(g) == rank(victim) && g.lastUse < victim.lastUse {
			victim = g
		}
	}
	if victim == nil {
		return false
	}
	c.dropSegment(victim)
	return true
}

// dropSegment forgets a segment that no read uses, and keeps its buffer for another segment.
func (c *Cache) dropSegment(g *segment) {
	delete(c.segments, g)
	g.reader.removeSegment(g)
	if g.err == nil {
		g.reader.statistics.Unneeded += g.to - g.from - g.bytesRead.total
	}
	class := cap(g.buffer)
	c.spareBuffers[class] = append(c.spareBuffers[class], g.buffer)
	g.buffer = nil
	c.wakeReads()
}

// wakeReads wakes the reads that wait for memory, because some became free or evictable.
func (c *Cache) wakeReads() {
	c.memoryFreed.Broadcast()
}

// fetchSegment carries out a segment's request under the reader's context.
func (c *Cache) fetchSegment(g *segment) {
	defer g.reader.fetches.Done()
	var seen Statistics
	err := c.fillSegment(g, &seen)
	c.mu.Lock()
	defer c.mu.Unlock()
	g.reader.statistics.Add(seen)
	g.err = err
	close(g.done)
	if err != nil {
		var changed *ChangedError
		if errors.As(err, &changed) {
			g.reader.permanentErr = err // no later read may mix old and new bytes
		}
		if g.pins == 0 {
			c.dropSegment(g)
		}
	}
	c.wakeReads()
}

// fillSegment fills a segment's buffer, and tries again what fails for a time.
func (c *Cache) fillSegment(g *segment, seen *Statistics) error {
	ctx, src := g.reader.ctx, g.reader.source
	select {
	case c.requests <- struct{}{}:
		defer func() { <-c.requests }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	retry, waited := c.retry, c.retry.Waited
	retry.Waited = func(d time.Duration) {
		seen.Retries++
		seen.Waited += d
		if waited != nil {
			waited(d)
		}
	}
	return retry.Do(ctx, src.Name(), func(ctx context.Context) error {
		seen.Requests++
		n, err := readFull(ctx, src, g.buffer, g.from)
		seen.Bytes += int64(n)
		return err
	})
}
