package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bounded checks a number of bytes: at least the bytes needed, and at most the given number more.
func bounded(t *testing.T, what string, least, got, more int64) {
	t.Helper()
	assert.GreaterOrEqual(t, got, least, what)
	assert.LessOrEqual(t, got, least+more, what)
}

// TestBytesOverEachLink compares the bytes that each mode moves with the sizes of the files and the tensors. Run
// itself compares the mini-batches.
func TestBytesOverEachLink(t *testing.T) {
	for name, o := range map[string]Options{
		"rm1": {Model: "rm1", Rows: 60_000, Batch: 2000, Time: time.Nanosecond},
		"rm2, packed": {Model: "rm2", Rows: 600, Batch: 128, Codec: "snappy", Time: time.Nanosecond,
			Partitions: 1},
		"rm1, a little memory": {Model: "rm1", Rows: 60_000, Batch: 500, SLM: 12 << 20, Time: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := Run(t.Context(), o)
			require.NoError(t, err)
			require.Len(t, results, len(Modes()))
			for i, r := range results {
				assert.Equal(t, Modes()[i], r.Mode)
				assert.Equal(t, o.Rows, r.Rows)
				assert.Positive(t, r.RowsPerSecond)
				assert.NotEmpty(t, r.Notes)
				chunks, tensors, links := r.ChunkBytes, r.TensorBytes, r.Links
				require.Positive(t, chunks)
				// Ends of blocks, of which every window has two; a page that two windows hold; gaps between reads that
				// were joined; offsets of a page index.
				more := chunks/3 + 64<<10
				results := 64 * 1024 * r.MiniBatches // result blocks, of some slices each
				want := map[string]bool{}
				between := func(link string, least, got, more int64) {
					want[link] = true
					bounded(t, string(r.Mode)+" "+link, least, got, more)
				}
				switch r.Mode {
				case InStorage:
					between("flash to drive", chunks, links.FlashToDrive, more)
					between("flash to node", 1, links.FlashToNode, 256<<10+r.digestReads) // footers and page indexes
					between("drive to node", tensors, links.DriveToNode, results)
				case NodeCPU:
					between("flash to node", chunks, links.FlashToNode, more+r.digestReads)
				case Card:
					between("flash to node", chunks, links.FlashToNode, 2*more+r.digestReads)
					between("host to card", chunks, links.HostToCard, more)
					between("card to host", tensors, links.CardToHost, results)
					assert.GreaterOrEqual(t, links.FlashToNode, links.HostToCard-more, "what is stored was read")
				case Pool, Trainer:
					between("node to worker", chunks, links.NodeToWorker, more+r.digestReads)
					between("flash to node", links.NodeToWorker, links.FlashToNode, more)
				}
				if r.Mode != Trainer {
					between("worker to trainer", tensors, links.WorkerToTrainer, 8<<10*r.MiniBatches)
				}
				for link, n := range map[string]int64{
					"flash to drive": links.FlashToDrive, "flash to node": links.FlashToNode,
					"node to worker": links.NodeToWorker, "host to card": links.HostToCard,
					"card to host":  links.CardToHost,
					"drive to node": links.DriveToNode, "worker to trainer": links.WorkerToTrainer,
				} {
					assert.Equal(t, want[link], n > 0, "%s: %s: %d bytes", r.Mode, link, n)
				}
				assert.Equal(t, links.NodeToWorker+links.HostToCard+links.CardToHost+links.WorkerToTrainer,
					r.NetworkBytes)
			}
		})
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, o := range []Options{
		{Model: "rm9"}, {Modes: []Mode{"moon"}}, {Rows: -1}, {Rows: 1, Partitions: 2}, {Partitions: -1}, {Batch: -1},
		{SLM: -1}, {Time: -1},
	} {
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions, "%+v", o)
	}
}
