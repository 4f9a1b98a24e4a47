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
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"inspect":    {[]string{"dataset", "inspect", pipe}, "not a regular file"},
		"import":     {[]string{"dataset", "import", "--out", dir + "/out", pipe}, "not a regular file"},
		"put":        {[]string{"drive", "put", drive, pipe}, "not a regular file"},
		"vocabulary": {[]string{"vocabulary", "info", pipe}, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := millrace(t, c.args...)
			assert.Equal(t, exitFailed, code)
			assert.Empty(t, stdout)
			errorLine(t, stderr, pipe, c.says)
		})
	}
}
