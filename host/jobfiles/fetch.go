package jobfiles

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Source is a peer that may have files.
type Source struct {
	Name string // for logs and errors
	// Read returns the bytes of a file from an offset on, as many as the peer sends at once, and the length of the file.
	Read func(ctx context.Context, digest vocabulary.Digest, offset int64) (piece []byte, total int64, err error)
}

// Bounds of a fetch.
const (
	pieceTime  = 15 * time.Second // of one piece
	pieceTries = 3
	pieceRest  = 200 * time.Millisecond // before a piece is asked for again
)

// fetchOwner is the owner of files that are fetched, which no uploader has.
const fetchOwner = "\x00fetch"

// fetch is a file that is being fetched, once for all callers.
type fetch struct {
	want  File
	ended chan struct{} // closed when err is set
	err   error
	have  int64 // guarded by Cache.mu
}

// Fetch waits until a file is in the Store, and no longer than Acquire does.
func (c *Cache) Fetch(ctx context.Context, want File) error {
	if c.o.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.Wait)
		defer cancel()
	}
	if err := want.check(); err != nil {
		return err
	}
	c.mu.Lock()
	f, ok := c.fetches[want.Digest]
	if ok && f.want != want {
		c.mu.Unlock()
		return fmt.Errorf("%w: %v %v of %d bytes is being fetched as a %v of %d bytes", ErrRequest, want.Kind,
			want.Digest, want.Bytes, f.want.Kind, f.want.Bytes)
	}
	if !ok {
		f = &fetch{want: want, ended: make(chan struct{})}
		c.fetches[want.Digest] = f
		c.wg.Go(func() { c.run(f) })
	}
	c.mu.Unlock()
	select {
	case <-f.ended:
		return f.err
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("%w: %v %v: %d of %d bytes are here", ErrFetching, want.Kind, want.Digest, f.have, want.Bytes)
	}
}

// run carries a fetch out.
func (c *Cache) run(f *fetch) {
	err := c.fetchFile(f)
	c.mu.Lock()
	if f.err = err; err == nil {
		c.counts.Fetched++
		c.counts.FetchedBytes += f.want.Bytes
	} else {
		c.counts.Failed++
	}
	delete(c.fetches, f.want.Digest)
	c.mu.Unlock()
	close(f.ended)
}

// fetchFile asks one source after the other.
func (c *Cache) fetchFile(f *fetch) error {
	var errs []error
	for _, source := range c.o.Sources(f.want.Digest) {
		whole, err := c.fetchFrom(source, f)
		if errors.Is(err, ErrDigest) && !whole { // the wrong bytes may be those of an earlier source
			_, err = c.fetchFrom(source, f)
		}
		if err == nil {
			c.o.Logger.Info(f.want.Kind.String()+" was fetched", "digest", f.want.Digest.String(), "from", source.Name,
				"bytes", f.want.Bytes)
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", source.Name, err))
		if c.ctx.Err() != nil || errors.Is(err, ErrRoom) {
			return errors.Join(errs...)
		}
		c.o.Logger.Warn(f.want.Kind.String()+" was not fetched", "digest", f.want.Digest.String(), "from", source.Name,
			"error", err)
	}
	remedy := "submit the job again to put it there"
	if f.want.Kind == Selection {
		remedy = "the leader makes it again"
	}
	missing := fmt.Errorf("%v %v: %w: no member of the control plane sent it; %s", f.want.Kind, f.want.Digest, ErrMissing,
		remedy)
	return errors.Join(append([]error{missing}, errs...)...)
}

// fetchFrom fetches a file from one source. What an earlier source sent is kept until the bytes turn out to be wrong:
// whole is false if the file begins with such bytes.
func (c *Cache) fetchFrom(source Source, f *fetch) (whole bool, err error) {
	have, err := c.o.Store.Append(fetchOwner, f.want, 0, nil)
	whole = have == 0
	for tries := 0; err == nil && have < f.want.Bytes; {
		piece, total, readErr := c.readPiece(source, f.want, have)
		switch {
		case readErr == nil && total != f.want.Bytes:
			return true, fmt.Errorf("%w %v: it has %d bytes there, and the job says %d", ErrDigest, f.want.Digest, total,
				f.want.Bytes)
		case readErr == nil && (len(piece) == 0 || len(piece) > MaxPiece || int64(len(piece)) > total-have):
			return true, fmt.Errorf("%w %v: a piece of %d bytes at byte %d of %d", ErrDigest, f.want.Digest, len(piece), have,
				total)
		case readErr != nil && (tries == pieceTries-1 || c.ctx.Err() != nil || errors.Is(readErr, ErrMissing)):
			return whole, readErr
		case readErr != nil:
			tries++
			_ = wait.Sleep(c.ctx, pieceRest) // the next reading fails when the context has ended
			continue
		}
		tries = 0
		if have, err = c.o.Store.Append(fetchOwner, f.want, have, piece); err == nil {
			c.mu.Lock()
			f.have = have
			c.mu.Unlock()
		}
	}
	return whole, err
}

// readPiece reads one piece in bounded time.
func (c *Cache) readPiece(source Source, want File, offset int64) ([]byte, int64, error) {
	ctx, cancel := context.WithTimeout(c.ctx, pieceTime)
	defer cancel()
	return source.Read(ctx, want.Digest, offset)
}
