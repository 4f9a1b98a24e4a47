package jobfiles

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// selectionOf makes a selection of a number of rows, every third of which passes, and returns its file.
func selectionOf(t *testing.T, rows int64) (File, []byte) {
	t.Helper()
	m, err := dataset.NewManifest([]dataset.Partition{{Name: "p", Bytes: 1, Rows: rows, RowGroups: []int64{rows}}})
	require.NoError(t, err)
	b, err := selection.NewBuilder(m, dataset.Digest{1})
	require.NoError(t, err)
	passes := make([]bool, rows)
	for i := range passes {
		passes[i] = i%3 == 0
	}
	require.NoError(t, b.Add(0, 0, passes))
	s, err := b.Finish()
	require.NoError(t, err)
	raw := s.Encode()
	return File{Digest: vocabulary.Digest(s.Digest), Bytes: int64(len(raw)), Kind: Selection}, raw
}

// from returns a source of one file.
func from(raw []byte) func(vocabulary.Digest) []Source {
	return func(vocabulary.Digest) []Source {
		return []Source{{Name: "peer", Read: func(
			_ context.Context, _ vocabulary.Digest, offset int64,
		) ([]byte, int64, error) {
			if raw == nil {
				return nil, 0, ErrMissing
			}
			return raw[offset:min(int64(len(raw)), offset+MaxPiece)], int64(len(raw)), nil
		}}}
	}
}

// TestSelections: a selection is fetched by its digest, counted while it is in memory, and fetched again if its file
// changed on the disk.
func TestSelections(t *testing.T) {
	want, raw := selectionOf(t, 6<<20)
	require.Greater(t, len(raw), MaxPiece)
	folder := t.TempDir()
	c := NewCache(CacheOptions{Store: openStore(t, Options{Folder: folder}), Memory: want.Bytes, Sources: from(raw)})
	defer c.Close()
	s, release, err := c.AcquireSelection(t.Context(), want)
	require.NoError(t, err)
	assert.Equal(t, dataset.Digest(want.Digest), s.Digest)
	assert.Equal(t, want.Bytes, c.Counts().MemoryBytes)
	_, _, err = c.AcquireSelection(t.Context(), want)
	require.ErrorIs(t, err, ErrRoom, "there is memory for one")
	release()
	release()
	assert.Zero(t, c.Counts().MemoryBytes)

	path := filepath.Join(folder, want.Digest.String())
	changed := bytes.Clone(raw)
	changed[len(changed)/2] ^= 1
	require.NoError(t, os.WriteFile(path, changed, 0o600))
	_, release, err = c.AcquireSelection(t.Context(), want)
	require.NoError(t, err)
	release()
	onDisk, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(raw, onDisk))
}

// TestForeignSelections: another selection, damaged bytes, and a vocabulary are refused by their digests, and nothing
// is kept of them.
func TestForeignSelections(t *testing.T) {
	want, raw := selectionOf(t, 9000)
	_, other := selectionOf(t, 9001)
	damaged := bytes.Clone(raw)
	damaged[len(damaged)/2] ^= 1
	vocabularyFile, words := vocabularyOf(t, 50)
	for name, c := range map[string]struct {
		want File
		sent []byte
		err  error
	}{
		"another selection": {File{Digest: want.Digest, Bytes: int64(len(other))}, other, ErrDigest},
		"damaged":           {want, damaged, ErrDigest},
		"a vocabulary":      {vocabularyFile, words, ErrDigest},
		"nothing":           {want, nil, ErrMissing},
		"another length":    {File{Digest: want.Digest, Bytes: want.Bytes + 8}, raw, ErrDigest},
		"too short":         {File{Digest: want.Digest, Bytes: 3}, raw, ErrRequest},
	} {
		store := openStore(t, Options{})
		cache := NewCache(CacheOptions{Store: store, Memory: 1 << 30, Sources: from(c.sent)})
		_, _, err := cache.AcquireSelection(t.Context(), c.want)
		require.ErrorIs(t, err, c.err, name)
		assert.ErrorContains(t, err, c.want.Digest.String(), name)
		assert.Empty(t, store.Files(), name)
		assert.Zero(t, cache.Counts().MemoryBytes, name)
		cache.Close()
	}
}
