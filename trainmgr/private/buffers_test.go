package private

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/shared"
)

// TestBuffersAreBounded: for every order in which a trainer keeps buffers and gives them back, all buffers together
// have at most the limit and 20 grains (two of the largest mini-batches), or there are no more than leastBuffers. The
// pool gives no buffer only if the buffers that the trainer keeps exceed the limit by more than the mini-batch's size.
func TestBuffersAreBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		shared.Missing(t, "the private process needs Linux: memory files")
	}
	errFull := errors.New("none is free")
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(1, 40).Draw(t, "limit")) * bufferGrain
		p := newBufferPool(limit)
		defer func() { require.NoError(t, p.close()) }()
		var kept []int
		known := map[int]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(kept) > 0 && rapid.Bool().Draw(t, "give back") {
				i := rapid.IntRange(0, len(kept)-1).Draw(t, "which")
				require.NoError(t, p.release(kept[i]))
				require.ErrorIs(t, p.release(kept[i]), ErrProtocol, "it was given back already")
				kept = append(kept[:i], kept[i+1:]...)
				continue
			}
			size := rapid.Int64Range(1, 9*bufferGrain).Draw(t, "size")
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(errFull)
			b, retired, err := p.acquire(ctx, size)
			for _, id := range retired {
				require.True(t, known[id], "the trainer does not know what is retired")
				require.NotContains(t, kept, id)
				delete(known, id)
			}
			if err != nil {
				require.ErrorIs(t, err, errFull)
				keptBytes := int64(0)
				for _, id := range kept {
					keptBytes += p.buffers[id].file.size()
				}
				rounded := (size + bufferGrain - 1) / bufferGrain * bufferGrain
				require.Greater(t, keptBytes, limit+rounded, "a trainer that keeps so little waits for ever")
				continue
			}
			require.GreaterOrEqual(t, b.file.size(), size)
			require.NotContains(t, kept, b.id)
			b.passed = true
			known[b.id] = true
			kept = append(kept, b.id)
			require.True(t, p.total <= limit+20*bufferGrain || len(p.buffers) <= leastBuffers)
		}
	})
}

func TestAClosedPoolGivesNothing(t *testing.T) {
	p := newBufferPool(1)
	require.NoError(t, p.close())
	_, _, err := p.acquire(t.Context(), 1)
	require.ErrorIs(t, err, errPoolClosed)
	assert.ErrorIs(t, p.release(0), ErrProtocol)
}

// TestSmallMiniBatchesTakeFewDescriptors keeps mini-batches of few bytes until there is no buffer for another.
func TestSmallMiniBatchesTakeFewDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		shared.Missing(t, "the private process needs Linux: memory files")
	}
	for _, limit := range []int64{1 << 20, DefaultQueueBytes, DefaultQueueBytes - 1, 1 << 30} {
		p := newBufferPool(limit)
		most := int(min(limit/bufferGrain, mostBuffers)) + 2
		for range most {
			b, _, err := p.tryAcquire(100)
			require.NoError(t, err)
			if b == nil {
				break
			}
		}
		b, _, err := p.tryAcquire(100)
		require.NoError(t, err)
		assert.Nil(t, b, "%d buffers of %d bytes", len(p.buffers), limit)
		assert.GreaterOrEqual(t, len(p.buffers), most-2)
		require.NoError(t, p.close())
	}
}
