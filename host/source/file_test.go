package source

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFiles reads a file by its path, opens it by its URI, pins it, and checks that a file that was written again, or
// has another time, is a ChangedError.
func TestFiles(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "day_0.parquet")
	require.NoError(t, os.WriteFile(path, []byte(contents), 0o600))
	stores := &Stores{}
	src, err := stores.Open(ctx, ParseLocation(path), Identity{})
	require.NoError(t, err)
	assert.Equal(t, path, src.Name())
	assert.EqualValues(t, len(contents), src.Size())
	b := make([]byte, 7)
	n, err := src.ReadAt(ctx, b, 30)
	assert.Equal(t, io.EOF, err)
	assert.Equal(t, "uvwxyz", string(b[:n]))
	for _, uri := range []string{"file:" + path, "file://" + path} {
		again, err := stores.Open(ctx, ParseLocation(uri), src.Identity())
		require.NoError(t, err, uri)
		require.NoError(t, again.Close())
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = src.ReadAt(ended, b, 0)
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, os.WriteFile(path, []byte("another"), 0o600))
	var changed *ChangedError
	_, err = src.ReadAt(ctx, b, 0)
	require.ErrorAs(t, err, &changed)
	assert.EqualValues(t, 7, changed.Found.Size)
	_, err = stores.Open(ctx, ParseLocation(path), src.Identity())
	require.ErrorAs(t, err, &changed)
	require.NoError(t, src.Close())

	// The same bytes and length at another time are another state of the file.
	src, err = stores.Open(ctx, ParseLocation(path), Identity{})
	require.NoError(t, err)
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	_, err = src.ReadAt(ctx, b, 0)
	require.ErrorAs(t, err, &changed)
	require.NoError(t, src.Close())
}

// TestFilesList lists files by a pattern and by a folder. A folder among them is left out of the list and refused by
// Open; a pattern that matches nothing, and a file that does not exist, is a NotFoundError.
func TestFilesList(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for i, name := range []string{"day_1", "day_0", "night"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), make([]byte, i), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "day_2"), 0o700))
	stores := &Stores{}
	day := func(i int) string { return filepath.Join(dir, "day_"+string(rune('0'+i))) }
	objects, err := stores.List(ctx, ParseLocation(filepath.Join(dir, "day_*")))
	require.NoError(t, err)
	assert.Equal(t, []Object{{Location: ParseLocation(day(0)), Size: 1}, {Location: ParseLocation(day(1))}}, objects)
	objects, err = stores.List(ctx, ParseLocation("file:"+dir+"/"))
	require.NoError(t, err)
	assert.Len(t, objects, 3)
	var missing *NotFoundError
	_, err = stores.List(ctx, ParseLocation(filepath.Join(dir, "week_*")))
	require.ErrorAs(t, err, &missing)
	_, err = stores.Open(ctx, ParseLocation(filepath.Join(dir, "week_0")), Identity{})
	require.ErrorAs(t, err, &missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	var unsupported *UnsupportedError
	_, err = stores.Open(ctx, ParseLocation(day(2)), Identity{})
	require.ErrorAs(t, err, &unsupported)
	_, err = stores.List(ctx, ParseLocation("["))
	require.Error(t, err)
}

// TestStoresChoose: the scheme chooses the store. The error of a scheme without a store names the reason.
func TestStoresChoose(t *testing.T) {
	stores := &Stores{Web: newWeb(t, nil)}
	url := serve(t, honest)
	src, err := stores.Open(context.Background(), ParseLocation(url), Identity{})
	require.NoError(t, err)
	assert.EqualValues(t, len(contents), src.Size())
	var unsupported *UnsupportedError
	for uri, text := range map[string]string{
		"s3://bucket/key": "without a client for S3", "gs://bucket/key": `"gs" names no store`,
	} {
		_, err = stores.Open(context.Background(), ParseLocation(uri), Identity{})
		require.ErrorAs(t, err, &unsupported)
		require.ErrorContains(t, err, text)
		_, err = stores.List(context.Background(), ParseLocation(uri))
		require.ErrorAs(t, err, &unsupported)
	}
}
