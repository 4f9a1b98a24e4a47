package partitions

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheSums holds sums.json, which a node of a later version reads when it starts.
func TestFormOfTheSums(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	openSums(dir, log).put("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d", "day/part-0.parquet", []byte{0xab, 0xcd})
	written, err := os.ReadFile(filepath.Join(dir, "sums.json"))
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/sums.json", string(written))
	assert.Equal(t, []byte{0xab, 0xcd}, openSums("testdata", log).get("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d",
		"day/part-0.parquet"))
}
