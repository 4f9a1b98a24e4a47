package jobfiles

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// acquireContent returns what a file holds as load reads it, and a function that gives it back. It fetches the file if
// the Store lacks it. The content takes about as much memory as the file, which counts until the content is given back.
func acquireContent[T any](
	ctx context.Context, c *Cache, want File, load func(File) (T, error),
) (content T, release func(), err error) {
	if err := c.reserveContent(want); err != nil {
		return content, nil, err
	}
	content, err = loadContent(ctx, c, want, load)
	if errors.Is(err, ErrDigest) { // the file was damaged on the disk and is removed: it is fetched again, once
		content, err = loadContent(ctx, c, want, load)
	}
	var once sync.Once
	release = func() { once.Do(func() { c.freeContent(want) }) }
	if err != nil {
		release()
		return content, nil, err
	}
	return content, release, nil
}

// reserveContent counts the memory of a file's content.
func (c *Cache) reserveContent(want File) error {
	if err := want.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if used := c.memoryUsed(); want.Bytes > c.o.Memory-used {
		return fmt.Errorf("%w: %v %v needs %d bytes of memory, and %d of %d bytes are in use (vocabularies.memory)",
			ErrRoom, want.Kind, want.Digest, want.Bytes, used, c.o.Memory)
	}
	c.contents += want.Bytes
	return nil
}

func (c *Cache) freeContent(want File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contents -= want.Bytes
}

// loadContent fetches a file if the Store lacks it, and reads it.
func loadContent[T any](ctx context.Context, c *Cache, want File, load func(File) (T, error)) (content T, err error) {
	release, ok := c.o.Store.Hold(want.Digest)
	if !ok {
		if err := c.Fetch(ctx, want); err != nil {
			return content, err
		}
		if release, ok = c.o.Store.Hold(want.Digest); !ok {
			return content, fmt.Errorf("%w: %v %v was removed at once", ErrRoom, want.Kind, want.Digest)
		}
	}
	defer release()
	return load(want)
}
