package demo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func small() Options {
	return Options{Rows: 6000, RowsPerSecond: 1e6, SLM: 64 << 20, Measure: time.Millisecond}
}

// TestTheMainJob: from nothing to a report in which every row was delivered once, by drives that counted it
// themselves; nothing is left behind.
func TestTheMainJob(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	o := small()
	o.Epochs = 2
	var said []string
	o.Say = func(s string) { said = append(said, s) }
	last := map[string][2]int64{}
	meter := func(name string) func(int64, int64) {
		return func(done, total int64) {
			assert.GreaterOrEqual(t, done, last[name][0], "%s goes back", name)
			last[name] = [2]int64{done, total}
		}
	}
	o.Generated, o.Stored, o.Trained = meter("generated"), meter("stored"), meter("trained")
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	assert.EqualValues(t, 12_000, r.Rows)
	assert.Positive(t, r.TRowsPerSecond)
	assert.Positive(t, r.PRowsPerSecond)
	assert.Len(t, r.PerDrive, 2)
	for _, d := range r.PerDrive {
		assert.EqualValues(t, 6000, d.Rows)
		assert.Equal(t, "drive (vendor)", d.Engine)
		assert.EqualValues(t, d.BytesMoved, d.Counters.FlashToDRAMBytes+d.Counters.FlashLentBytes)
		assert.EqualValues(t, d.Rows, d.Counters.Rows)
	}
	for name, v := range last {
		assert.Equal(t, v[1], v[0], "%s did not come to its end", name)
	}
	assert.Equal(t, int64(12_000), last["trained"][0])
	assert.Contains(t, strings.Join(said, "\n"), "stand-in trainer", "it is declared as one")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestMoreDrivesThanPartitions checks that drives without partitions do nothing.
func TestMoreDrivesThanPartitions(t *testing.T) {
	o := small()
	o.Drives, o.Partitions = 3, 2
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	assert.EqualValues(t, 6000, r.Rows)
	require.Len(t, r.PerDrive, 3)
	assert.Zero(t, r.PerDrive[2].Rows)
}

// TestAFolderIsKept: data and drives are there afterwards, and a folder that holds something is not touched.
func TestAFolderIsKept(t *testing.T) {
	o := small()
	o.Dir = filepath.Join(t.TempDir(), "demo")
	_, err := Run(t.Context(), o)
	require.NoError(t, err)
	for _, name := range []string{"rm1/part-00003.parquet", "drive0.flash", "drive0.flash.json", "drive1.flash"} {
		assert.FileExists(t, filepath.Join(o.Dir, name))
	}
	before, err := os.ReadFile(filepath.Join(o.Dir, "drive0.flash"))
	require.NoError(t, err)
	_, err = Run(t.Context(), o)
	require.ErrorContains(t, err, "name an empty folder")
	after, err := os.ReadFile(filepath.Join(o.Dir, "drive0.flash"))
	require.NoError(t, err)
	assert.True(t, string(before) == string(after))
}

func TestCancelledDemoLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, at := range []string{"generated", "stored", "trained"} {
		ctx, cancel := context.WithCancel(t.Context())
		o := small()
		stop := func(int64, int64) { cancel() }
		switch at {
		case "generated":
			o.Generated = stop
		case "stored":
			o.Stored = stop
		default:
			o.Trained = stop
		}
		_, err := Run(ctx, o)
		cancel()
		require.ErrorIs(t, err, context.Canceled, at)
		left, err := os.ReadDir(os.Getenv("TMPDIR"))
		require.NoError(t, err)
		assert.Empty(t, left, at)
	}
}
