package source

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
)

const (
	// footerRead is how much of a file's end is read at once: most footers fit, with page indexes before them.
	footerRead = 256 << 10
	// strayRead is the fewest bytes that are read where no column lies: page indexes are small and lie together.
	strayRead = 64 << 10
	// firstRead is the fewest bytes that are read of a file whose footer is not known.
	firstRead = 4 << 10
	// furthestAhead is the most requests that one column is read ahead.
	furthestAhead = 8
)

// ErrReaderClosed says that a read came after Close, or was not finished before it.
var ErrReaderClosed = errors.New("the reader is closed")

// Reader reads a source as a partition does: by windows of columns, each further than the one before. It asks for up
// to LongestRead bytes at once, joins columns that lie near each other, and asks ahead for the bytes that the open
// streams read next. It implements partition.AheadReader. It is safe for concurrent use.
type Reader struct {
	cache   *Cache
	source  Source
	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	fetches sync.WaitGroup // requests under way

	// cache.mu guards the fields below.
	segments       []*segment // sorted by from; they do not overlap
	footer         *format.File
	leaves         map[int]bool // Streams read these leaves of the footer.
	layout         layout       // without chunks until it is known
	longestRequest int64        // bytes of one request
	requestsAhead  int          // requests ahead of a column
	streams        map[int]rowGroup
	streamID       int
	permanentErr   error // every later read fails with it
	statistics     Statistics
}

var _ partition.AheadReader = (*Reader)(nil)

// NewReader returns a reader of a source, which the caller closes after the reader.
func (c *Cache) NewReader(src Source) *Reader {
	r := &Reader{cache: c, source: src, longestRequest: LongestRead, requestsAhead: 1, streams: map[int]rowGroup{},
		leaves: map[int]bool{}}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// Source returns the source that the reader reads.
func (r *Reader) Source() Source { return r.source }

// Describe passes an opened partition's knowledge of the source to the reader: the footer, from which column chunks
// are known, or the rows of a text.
func (r *Reader) Describe(p *partition.Partition) {
	if p.File == nil {
		r.setLayout(wholeLayout(r.source.Size(), p.Rows))
		return
	}
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	r.footer = p.File
	// The samples of the partition's digest would cut the requests for column chunks into pieces.
	for _, g := range slices.Clone(r.segments) {
		if g.pins == 0 && g.ended() && g.err == nil && g.to < r.source.Size() {
			r.cache.dropSegment(g)
		}
	}
}

// ExpectAll announces that the source is read from its beginning to its end, for example to count the rows of a
// text.
func (r *Reader) ExpectAll() { r.setLayout(wholeLayout(r.source.Size(), 0)) }

func (r *Reader) setLayout(l layout) {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	r.applyLayout(l)
}

// applyLayout sets the layout, and longestRequest, which follows from it. The cache is locked.
func (r *Reader) applyLayout(l layout) {
	r.layout = l
	// Two streams have each column's segment in use and one ahead in memory.
	r.longestRequest = min(max(r.cache.memory/(4*int64(l.mostChunksOfGroup())), shortestRead), LongestRead)
}

// Expect implements partition.AheadReader. Columns that any stream read stay in the layout.
func (r *Reader) Expect(columns []string, first, rows int64) (forget func()) {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	r.streamID++
	id := r.streamID
	r.streams[id] = rowGroup{first, first + rows}
	if r.footer != nil {
		before := len(r.leaves)
		for _, name := range columns {
			if leaf, ok := r.footer.Leaf(name); ok {
				r.leaves[leaf.Index] = true
			}
		}
		if len(r.leaves) > before {
			r.applyLayout(parquetLayout(r.footer, r.leaves))
		}
	}
	return func() {
		r.cache.mu.Lock()
		defer r.cache.mu.Unlock()
		delete(r.streams, id)
	}
}

// Prepare begins the requests for runs that are read soon, as far as there is room. It does not wait.
func (r *Reader) Prepare(runs []partition.Run) {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	for _, run := range runs {
		at, end := int64(run.From), min(int64(run.From+run.Len), r.source.Size())
		for at >= 0 && at < end {
			g := r.findSegment(at)
			if g == nil {
				if g = r.beginRequest(at, end, false); g == nil {
					return
				}
			}
			at = g.to
		}
	}
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(b []byte, off int64) (int, error) { return r.ReadAtContext(r.ctx, b, off) }

// ReadAtContext reads as ReadAt does, and ends with ctx.
func (r *Reader) ReadAtContext(ctx context.Context, b []byte, off int64) (int, error) {
	want, end := Clip(b, off, r.source.Size())
	for n := 0; n < len(want); {
		at := off + int64(n)
		g, err := r.acquireSegment(ctx, at, off+int64(len(want)))
		if err != nil {
			return n, err
		}
		copied := 0
		if err = r.awaitSegment(ctx, g); err == nil {
			copied = copy(want[n:], g.buffer[at-g.from:])
		}
		r.releaseSegment(g, at, int64(copied))
		if err != nil {
			return n, err
		}
		n += copied
	}
	return len(want), end
}

// acquireSegment returns the segment that holds a byte, pinned. If there is none, it begins the request, and waits for
// memory.
func (r *Reader) acquireSegment(ctx context.Context, at, end int64) (*segment, error) {
	c := r.cache
	for {
		c.mu.Lock()
		if r.permanentErr != nil {
			defer c.mu.Unlock()
			return nil, r.permanentErr
		}
		g := r.findSegment(at)
		if g == nil {
			g = r.beginRequest(at, end, true)
		}
		if g != nil {
			g.pins++
			if !g.touched {
				g.touched = true
				if g.begunAhead && !g.ended() { // its request was begun too late: later requests begin earlier
					r.requestsAhead = min(r.requestsAhead+1, furthestAhead)
				}
				r.readAhead(g)
			}
			c.mu.Unlock()
			return g, nil
		}
		freed := c.memoryFreed.Changed()
		c.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-r.ctx.Done():
			return nil, context.Cause(r.ctx)
		}
	}
}

// awaitSegment waits for a segment's bytes.
func (r *Reader) awaitSegment(ctx context.Context, g *segment) error {
	if g.ended() {
		return g.err
	}
	began := time.Now()
	defer func() {
		r.cache.mu.Lock()
		r.statistics.Stalled += time.Since(began)
		r.cache.mu.Unlock()
	}()
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// releaseSegment ends the use of a segment, of which n bytes from byte at were read.
func (r *Reader) releaseSegment(g *segment, at, n int64) {
	c := r.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	c.useCount++
	g.lastUse = c.useCount
	g.bytesRead.add(at, at+n)
	g.pins--
	if g.pins > 0 || !g.ended() {
		return
	}
	if g.err != nil {
		c.dropSegment(g)
		return
	}
	c.wakeReads()
}

// findSegment returns the segment that holds a byte, or nil. The cache is locked.
func (r *Reader) findSegment(at int64) *segment {
	i := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].to > at })
	if i == len(r.segments) || r.segments[i].from > at || r.segments[i].ended() && r.segments[i].err != nil {
		return nil
	}
	return r.segments[i]
}

// beginRequest begins the request for a byte that no segment holds; bytes to end are wanted too. It returns nil if the
// memory lacks room. Other segments give way only with force. The cache is locked.
func (r *Reader) beginRequest(at, end int64, force bool) *segment {
	if r.ctx.Err() != nil || r.permanentErr != nil {
		return nil
	}
	i := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].to > at })
	if i < len(r.segments) && r.segments[i].from <= at {
		return nil // it failed, and goes when the last read gives it back
	}
	from, to := r.chooseRange(at, end)
	if i < len(r.segments) {
		to = min(to, r.segments[i].from)
	}
	if i > 0 {
		from = max(from, r.segments[i-1].to)
	}
	buffer := r.cache.reserveBuffer(to-from, force)
	if buffer == nil {
		return nil
	}
	// The evicted segment may have been this reader's.
	i = sort.Search(len(r.segments), func(i int) bool { return r.segments[i].to > at })
	g := &segment{reader: r, from: from, to: to, buffer: buffer, done: make(chan struct{})}
	r.segments = slices.Insert(r.segments, i, g)
	r.cache.segments[g] = struct{}{}
	r.fetches.Add(1)
	go r.cache.fetchSegment(g)
	return g
}

// chooseRange returns the bytes that a request asks for when a read wants the bytes from at to end.
func (r *Reader) chooseRange(at, end int64) (from, to int64) {
	size := r.source.Size()
	if len(r.layout.chunks) == 0 {
		if tail := max(size-footerRead, 0); at >= tail {
			return tail, size
		}
		return at, min(max(min(end, at+r.longestRequest), at+firstRead), size)
	}
	limit := min(at+r.longestRequest, size)
	least := min(end, limit)
	i := r.layout.findChunk(at)
	if i == len(r.layout.chunks) || r.layout.chunks[i].from > at {
		return at, min(max(least, at+strayRead), limit)
	}
	return at, r.layout.requestEnd(at, least, limit, r.openStreams())
}

func (r *Reader) openStreams() []rowGroup {
	streams := make([]rowGroup, 0, len(r.streams))
	for _, s := range r.streams {
		streams = append(streams, s)
	}
	return streams
}

// readAhead begins the requests for the bytes that are read after a segment, as far as memory and requests are free.
func (r *Reader) readAhead(g *segment) {
	streams := r.openStreams()
	for range r.requestsAhead {
		at, ok := r.layout.nextRead(g.from, g.to, streams)
		if !ok || len(r.cache.requests) == cap(r.cache.requests) {
			return
		}
		following := r.findSegment(at)
		if following == nil {
			if following = r.beginRequest(at, at+1, false); following == nil {
				return
			}
			following.begunAhead = true
		}
		g = following
	}
}

// removeSegment takes a segment out of the reader's list. The cache is locked.
func (r *Reader) removeSegment(g *segment) {
	if i := slices.Index(r.segments, g); i >= 0 {
		r.segments = slices.Delete(r.segments, i, i+1)
	}
}

// Failed returns the error that ended the reader for good, as a *ChangedError, or nil.
func (r *Reader) Failed() error {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	return r.permanentErr
}

// Statistics returns the reader's counters so far. Bytes that no read took count as unneeded when their segment gives
// way, at the latest when the reader is closed.
func (r *Reader) Statistics() Statistics {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	return r.statistics
}

// End ends the requests under way; every read fails with cause from then on.
func (r *Reader) End(cause error) {
	c := r.cache
	c.mu.Lock() // so that no request begins after the end of the reader's context
	defer c.mu.Unlock()
	r.cancel(cause)
	if r.permanentErr == nil {
		r.permanentErr = cause
	}
	c.wakeReads()
}

// Close ends the requests under way, and waits for their end. The source stays open.
func (r *Reader) Close() error {
	r.End(ErrReaderClosed)
	c := r.cache
	r.fetches.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range slices.Clone(r.segments) {
		if g.pins == 0 {
			c.dropSegment(g)
		}
	}
	return nil
}
