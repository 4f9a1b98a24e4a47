//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPipesAreRefused: a named pipe without a writer is refused at once. Opening it would wait, and no interrupt
// would end that.
func TestPipesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.parquet")
	require.NoError(t, syscall.Mkfifo(pipe, 0o644))
	allEngines(t, func(t *testing.T, engine []string) {
		refused(t, []string{"not a regular file"}, append([]string{"--pipeline", "rm1", "--in", pipe}, engine...)...)
	})
	refused(t, []string{"not a regular file"}, "--pipeline", "rm1", "--in", filepath.Join(dir, "*.parquet"))
	drive := "file:" + dir + "/d.flash"
	must(t, "drive", "create", drive+"?size=1MiB")
	for name, args := range map[string][]string{
		"inspect":    {"dataset", "inspect", pipe},
		"import":     {"dataset", "import", "--out", dir + "/out", pipe},
		"put":        {"drive", "put", drive, pipe},
		"vocabulary": {"vocabulary", "info", pipe},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := millrace(t, args...)
			assert.Equal(t, exitFailed, code)
			assert.Empty(t, stdout)
			errorLine(t, stderr, pipe, "not a regular file")
		})
	}
}
