package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNamesOfFilesDoNotSteerTheTerminal: columns and members are called as somebody else pleased.
func TestNamesOfFilesDoNotSteerTheTerminal(t *testing.T) {
	dir := t.TempDir()
	odd := "\x1b]0;owned\a\xff\nrow"
	path := filepath.Join(dir, "a\x1b[31m.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := parquet.NewGenericWriter[any](f, parquet.NewSchema("s", parquet.Group{odd: parquet.Int(32)}))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())

	out := must(t, "dataset", "inspect", path)
	assert.Contains(t, out, `"\x1b]0;owned\a\xff\nrow"`)
	assert.Contains(t, out, `a\x1b[31m.parquet`)
	assert.NotContains(t, out, "\x1b")

	drive := "file:" + filepath.Join(dir, "d.flash")
	must(t, "drive", "create", drive+"?size=16MiB")
	out = must(t, "drive", "put", drive, path) + must(t, "drive", "ls", drive)
	assert.Contains(t, out, `a\x1b[31m.parquet`)
	assert.NotContains(t, out, "\x1b")

	code, _, stderr := millrace(t, "dataset", "inspect", filepath.Join(dir, "none\x1b[31m"))
	assert.Equal(t, exitFailed, code)
	errorLine(t, stderr, `none\x1b[31m`)
	assert.NotContains(t, stderr, "\x1b")
}
