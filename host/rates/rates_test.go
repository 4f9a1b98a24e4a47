package rates

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
)

// TestWhatIsTaken checks which records of a file are taken: not those that had not settled long ago, nor those of a
// version that counted the slow beginning.
func TestWhatIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "rates.json")
	open := func() *Kept { return Open(path, slog.New(slog.DiscardHandler)) }
	key := Key{Drive: "d", Engine: "drive", Pipeline: "p", Image: "i", Batch: 8, Threads: 1, Streams: 2}
	measured := api.Measurement{RowsPerSecond: 1000, Rows: 40, Elapsed: time.Second, Spread: 0.1}
	open().Put(key, measured)
	got, ok := open().Get(key)
	assert.True(t, ok)
	assert.Equal(t, measured, got)
	assert.Equal(t, map[string]float64{"p": 1000}, open().Of("d", "i"))
	assert.Empty(t, open().Of("d", "another"))
	other := key
	other.Batch++
	_, ok = open().Get(other)
	assert.False(t, ok)

	var records []map[string]any
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &records))
	require.Len(t, records, 1)
	taken := func() bool {
		b, err := json.Marshal(records)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, ok := open().Get(key)
		return ok
	}
	for age, want := range map[time.Duration]bool{unsettledTime - time.Minute: true, unsettledTime + time.Minute: false} {
		records[0]["measured"] = time.Now().Add(-age).Format(time.RFC3339Nano)
		assert.Equal(t, want, taken(), "P that had not settled %v ago", age)
	}
	records[0]["settled"] = true
	assert.True(t, taken())
	delete(records[0], "spread_share")
	assert.False(t, taken())

	require.NoError(t, os.WriteFile(path, []byte("nonsense"), 0o600))
	_, ok = open().Get(key)
	assert.False(t, ok, "a file that cannot be read is begun again")
}
