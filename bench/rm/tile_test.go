package rm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
)

// TestTile checks that rows are repeated in their order and cut where enough were made.
func TestTile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.tsv")
	write := func(s string) { require.NoError(t, os.WriteFile(path, []byte(s), 0o600)) }
	write("a\nbb\r\n\n\nccc") // the last line does not end
	for rows, want := range map[int64]string{
		1: "a\n", 2: "a\nbb\n", 3: "a\nbb\nccc\n", 4: "a\nbb\nccc\na\n",
		8: "a\nbb\nccc\na\nbb\nccc\na\nbb\n", 9: "a\nbb\nccc\na\nbb\nccc\na\nbb\nccc\n",
	} {
		got, distinct, err := Tile(path, rows)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
		assert.Equal(t, min(rows, 3), distinct)
	}
	_, _, err := Tile(path, 0)
	require.ErrorIs(t, err, workload.ErrOptions)
	write("\n\n")
	_, _, err = Tile(path, 1)
	require.ErrorIs(t, err, workload.ErrOptions)
	_, _, err = Tile(filepath.Join(t.TempDir(), "none"), 1)
	require.ErrorIs(t, err, os.ErrNotExist)
	write("a\n" + strings.Repeat("x", text.MaxLine) + "\n")
	got, _, err := Tile(path, 2)
	require.NoError(t, err)
	assert.Len(t, got, 2+text.MaxLine+1)
	write("a\n" + strings.Repeat("x", maxTiledLine+1) + "\n")
	_, _, err = Tile(path, 2)
	require.ErrorIs(t, err, text.ErrLineTooLong)
	require.ErrorContains(t, err, "row 2")
}
