package vocabularies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

// AcquireSelection does for a selection what Acquire does for a vocabulary. Its memory counts until it is given back.
func (c *Cache) AcquireSelection(ctx context.Context, want File) (*selection.Selection, func(), error) {
	want.Kind = Selection
	if err := c.reserveSelection(want); err != nil {
		return nil, nil, err
	}
	made, err := c.loadSelection(ctx, want)
	if errors.Is(err, ErrDigest) { // the file was damaged on the disk and is removed: it is fetched again, once
		made, err = c.loadSelection(ctx, want)
	}
	var once sync.Once
	release := func() { once.Do(func() { c.freeSelection(want) }) }
	if err != nil {
		release()
		return nil, nil, err
	}
	return made, release, nil
}

// reserveSelection counts the memory of a selection, which is about that of its file.
func (c *Cache) reserveSelection(want File) error {
	if err := want.check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if used := c.memoryUsed(); want.Bytes > c.o.Memory-used {
		return fmt.Errorf("%w: selection %v needs %d bytes of memory, and %d of %d bytes are in use (vocabularies.memory)",
			ErrRoom, want.Digest, want.Bytes, used, c.o.Memory)
	}
	c.selected += want.Bytes
	return nil
}

func (c *Cache) freeSelection(want File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.selected -= want.Bytes
}

// loadSelection fetches a selection if the Store lacks it, and reads it.
func (c *Cache) loadSelection(ctx context.Context, want File) (*selection.Selection, error) {
	release, ok := c.o.Store.Hold(want.Digest)
	if !ok {
		if err := c.Fetch(ctx, want); err != nil {
			return nil, err
		}
		if release, ok = c.o.Store.Hold(want.Digest); !ok {
			return nil, fmt.Errorf("%w: selection %v was removed at once", ErrRoom, want.Digest)
		}
	}
	defer release()
	return c.o.Store.loadSelection(want)
}

// loadSelection reads the whole file of a selection. A file that has changed on the disk is removed.
func (s *Store) loadSelection(want File) (*selection.Selection, error) {
	size, ok := s.Size(want.Digest)
	if !ok {
		return nil, fmt.Errorf("selection %v: %w", want.Digest, ErrMissing)
	}
	if size != want.Bytes {
		return nil, fmt.Errorf("%w: selection %v: its file has %d bytes, not %d", ErrRequest, want.Digest, size, want.Bytes)
	}
	made, err := selection.Load(s.path(want.Digest))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.forget(want.Digest)
		return nil, fmt.Errorf("selection %v: %w: its file was removed", want.Digest, ErrMissing)
	case err == nil && made.Digest == dataset.Digest(want.Digest):
		return made, nil
	case err != nil && !errors.Is(err, selection.ErrDamaged):
		return nil, fmt.Errorf("selection %v: %w", want.Digest, err)
	}
	s.o.Logger.Warn("a selection changed on the disk and is removed", "digest", want.Digest.String(), "error", err)
	removal := s.remove(want.Digest)
	return nil, errors.Join(fmt.Errorf("%w: selection %v: its file changed on the disk", ErrDigest, want.Digest), err,
		removal)
}
