package jobfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

// AcquireSelection does for a selection what Acquire does for a vocabulary. Its memory counts until it is given back.
func (c *Cache) AcquireSelection(ctx context.Context, want File) (*selection.Selection, func(), error) {
	want.Kind = Selection
	return acquireContent(ctx, c, want, c.o.Store.loadSelection)
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
	case err != nil && s.isIntact(want.Digest):
		return nil, fmt.Errorf("%w: %v is not a selection: %w", ErrRequest, want.Digest, err)
	}
	s.o.Logger.Warn("a selection changed on the disk and is removed", "digest", want.Digest.String(), "error", err)
	removal := s.remove(want.Digest)
	return nil, errors.Join(fmt.Errorf("%w: selection %v: its file changed on the disk", ErrDigest, want.Digest), err,
		removal)
}
