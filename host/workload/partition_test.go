package workload

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/wholefile"
)

// TestOverwriteThatFailsLeavesTheSetBefore: a data set of which some partitions were replaced, or removed, has lost
// rows, and nothing says so.
func TestOverwriteThatFailsLeavesTheSetBefore(t *testing.T) {
	out := t.TempDir()
	o := Options{Model: small(false), Rows: 10_000, Out: out, Partitions: 5}
	files, err := Generate(t.Context(), o)
	require.NoError(t, err)
	before := read(t, files)
	same := func() {
		t.Helper()
		assert.Equal(t, before, read(t, files))
		entries, err := os.ReadDir(out)
		require.NoError(t, err)
		assert.Len(t, entries, 5)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	o.Seed, o.Overwrite, o.Progress = 1, true, func(done, _ int64) {
		if done > 5000 {
			cancel(why)
		}
	}
	_, err = Generate(ctx, o)
	require.ErrorIs(t, err, why)
	same()
	in, _ := lines(3000, true)
	_, _, err = Import(t.Context(), io.MultiReader(strings.NewReader(in), iotest.ErrReader(why)),
		ImportOptions{Out: out, PartitionRows: 1000, Overwrite: true})
	require.ErrorIs(t, err, why)
	same()
}

// TestTwoAtOnce: two runs with one folder would write the same files.
func TestTwoAtOnce(t *testing.T) {
	out := t.TempDir()
	o := Options{Model: small(false), Rows: 100, Out: out}
	var second error
	other := o
	o.Progress = func(int64, int64) { _, second = Generate(t.Context(), other) }
	files, err := Generate(t.Context(), o)
	require.NoError(t, err)
	require.ErrorIs(t, second, wholefile.ErrBusy)
	require.ErrorContains(t, second, out)
	assert.Equal(t, want(o.Model, 0, 100), read(t, files))
}
