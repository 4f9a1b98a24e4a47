package heartbeat

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheFence holds fence.json, which a node of a later version reads when it starts.
func TestFormOfTheFence(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	require.NoError(t, OpenFence(dir, log).See(1<<50))
	written, err := os.ReadFile(filepath.Join(dir, "fence.json"))
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/fence.json", string(written))
	assert.EqualValues(t, 1<<50, OpenFence("testdata", log).Get())
}
