package roofline

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/rm"
)

func TestRun(t *testing.T) {
	o := Options{
		Options:  rm.Options{Models: []string{"rm1", "rm5"}, Rows: 600, Time: time.Millisecond},
		CopyTime: time.Millisecond, BufferSize: 1 << 20,
	}
	list, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, list, 2)
	for i, r := range list {
		assert.Equal(t, o.Models[i], r.Model)
		assert.Equal(t, 1, r.Threads)
		assert.Positive(t, r.RowsPerSecond)
		assert.Positive(t, r.CopyBytesPerSecond)
		assert.InDelta(t, r.BytesPerSecond/r.CopyBytesPerSecond, r.Share, 1e-12)
	}
	o.Models = []string{"rm9"}
	_, err = Run(t.Context(), o)
	require.Error(t, err)
}

func TestCopyEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	assert.Positive(t, Copy(ctx, 2, 1<<16, time.Microsecond))
	cancel()
	assert.Zero(t, Copy(ctx, 1, 1<<16, time.Hour))
}
