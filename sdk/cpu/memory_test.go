package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/processor"
)

// TestEachThreadHasRoomToLend: several threads' mini-batches are lent as one's are, but not at any price.
func TestEachThreadHasRoomToLend(t *testing.T) {
	memory := map[int]uint64{-1: 512 << 20, 0: 512 << 20, 1: 512 << 20, 2: 1 << 30, 8: 4 << 30, 1 << 40: 4 << 30}
	for threads, want := range memory {
		require.Equal(t, want, memoryOf(Options{Threads: threads}), "%d threads", threads)
	}
	require.EqualValues(t, 1<<20, memoryOf(Options{Threads: 4, Processor: processor.Options{SLM: 1 << 20}}))
}
