package standin

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

func TestStepTakesAsLongAsItsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, err := New(1000)
		require.NoError(t, err)
		mb := tensor.New(&tensor.Schema{}, 500, nil)
		begin := time.Now()
		for range 4 {
			require.NoError(t, tr.Step(t.Context(), mb))
		}
		assert.Equal(t, 2*time.Second, time.Since(begin))
	})
}

func TestStepEndsWithItsContext(t *testing.T) {
	tr, err := New(1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tr.Step(ctx, tensor.New(&tensor.Schema{}, 1000, nil)), context.Canceled)
}

func TestSpeedsRefused(t *testing.T) {
	for _, v := range []float64{0, -1, math.NaN()} {
		_, err := New(v)
		require.ErrorIs(t, err, ErrSpeed)
	}
}
