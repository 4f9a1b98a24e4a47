package private

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/sdk/processor"
)

// TestMemoryIsBoundedAtAnyThreadCount counts the memory that the process uses by default, for every number of engine
// threads and up to 16 local ranks: the engine's, and that of the buffers with two mini-batches of RM1 each rank.
func TestMemoryIsBoundedAtAnyThreadCount(t *testing.T) {
	const (
		most        = 400_000_000 // PSS of a process
		miniBatch   = 8192 * 368  // RM1's tensors
		pagesAndOwn = 55_000_000  // the binary's pages (38 MB) and Go's own memory, as measured
	)
	for threads := 1; threads <= maxThreads; threads++ {
		for ranks := 1; ranks <= 16; ranks++ {
			m := divideEngineMemory(0, threads, ranks)
			streams := m.streams * ranks
			used := uint64(streams) * m.ofStream
			assert.LessOrEqual(t, used, uint64(max(DefaultEngineBytes, ranks*leastStreamBytes)), "%d threads, %d ranks",
				threads, ranks)
			assert.GreaterOrEqual(t, m.ofStream, uint64(leastStreamBytes))
			assert.GreaterOrEqual(t, streams, min(threads, DefaultEngineBytes/leastStreamBytes)-ranks, "threads work")
			assert.LessOrEqual(t, streams, threads+ranks)
			if ranks == 1 {
				assert.Less(t, used+DefaultQueueBytes+2*miniBatch+pagesAndOwn, uint64(most), "%d threads", threads)
			}
			// A stream whose mini-batches are larger has as much as before there was a bound.
			assert.GreaterOrEqual(t, m.reserved, host.MemoryOfStreams(max(streams, 3))+used)
			assert.Zero(t, m.reserved%4096)
		}
	}
}

// TestMoreEngineMemoryMakesMoreStreams checks the bound that a trainer gives, down to the least that works and up to
// the most that is taken.
func TestMoreEngineMemoryMakesMoreStreams(t *testing.T) {
	for _, c := range []struct {
		bound          int64
		threads, ranks int
		streams        int
		ofStream       uint64
	}{
		{1, 8, 1, 2, leastStreamBytes},
		{1, 8, 4, 1, leastStreamBytes},
		{9*leastStreamBytes - 1, 8, 1, 8, (9*leastStreamBytes - 1) / 8},
		{9 * leastStreamBytes, 8, 1, 9, leastStreamBytes},
		{1 << 30, 8, 1, 9, (1 << 30) / 9},
		{1 << 30, 255, 1, 28, (1 << 30) / 28},
		{maxEngine, maxThreads, 1, maxThreads + 1, maxEngine / (maxThreads + 1)},
	} {
		m := divideEngineMemory(c.bound, c.threads, c.ranks)
		assert.Equal(t, c.streams, m.streams, "%+v", c)
		assert.Equal(t, c.ofStream, m.ofStream, "%+v", c)
		assert.LessOrEqual(t, m.reserved, uint64(csd.MaxSLM))
		assert.GreaterOrEqual(t, m.reserved-uint64(m.streams*c.ranks)*m.ofStream,
			uint64(m.streams*c.ranks)*processor.MinStreamMemory)
	}
}
