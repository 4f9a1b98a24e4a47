package local

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// joinedWays are ways in which the jobs of these tests run: engines, drives and both orders.
func joinedWays() (ways []setup) {
	for _, order := range []dataset.Order{dataset.Fastest, dataset.Deterministic} {
		ways = append(ways,
			setup{place: "files", drives: 1, engine: "cpu", streams: 2, order: order},
			setup{place: "files", drives: 3, engine: "vendor", streams: 1, queue: 1, order: order},
			setup{place: "mem", drives: 2, engine: "standard", streams: 2, lba: 512, seed: 1, order: order})
	}
	return ways
}

// rowsInOrder runs a job and returns the rows of its mini-batches in the order of their numbers, and how many each has.
func rowsInOrder(t *testing.T, d *dataSet, s setup, o trainmgr.Options) (rows []string, sizes []int) {
	byNumber := map[uint64][]string{}
	run(t, s.config(t, d, nil), s.options(t, o, "lists"), func(mb *tensor.MiniBatch) {
		require.Zero(t, mb.Fragment)
		byNumber[mb.Name.Number] = rowsOf(mb)
	})
	for number := range uint64(len(byNumber)) {
		rows = append(rows, byNumber[number]...)
		sizes = append(sizes, len(byNumber[number]))
	}
	return rows, sizes
}

// TestMiniBatchesAcrossFiles compares the rows of jobs whose mini-batches go on across files of odd sizes with those of
// a job whose mini-batches end with their file. A dropped tail is the rows that the epoch's last mini-batch lacks.
func TestMiniBatchesAcrossFiles(t *testing.T) {
	d := newDataSet(t, 130, 1000, 300, 201, 100, 49, 1, 155)
	straight := setup{place: "files", drives: 1, engine: "cpu", streams: 1, order: dataset.Deterministic}
	want, _ := rowsInOrder(t, d, straight, trainmgr.Options{Shuffle: dataset.ShuffleNone})
	require.Len(t, want, 806)
	for _, s := range joinedWays() {
		t.Run(fmt.Sprint(s.order, " ", s.engine), func(t *testing.T) {
			o := trainmgr.Options{Boundary: dataset.BoundaryNone, Shuffle: dataset.ShuffleNone, SplitBatches: 2}
			rows, sizes := rowsInOrder(t, d, s, o)
			assert.Equal(t, want, rows)
			assert.Equal(t, append(slices.Repeat([]int{50}, 16), 6), sizes)

			o.Tail = dataset.DropTail
			rows, _ = rowsInOrder(t, d, s, o)
			assert.Equal(t, want[:800], rows)

			for _, shuffle := range []dataset.Shuffle{dataset.ShuffleSplits, dataset.ShuffleRows} {
				o.Tail, o.Shuffle = dataset.KeepTail, shuffle
				rows, sizes = rowsInOrder(t, d, s, o)
				assert.ElementsMatch(t, want, rows)
				assert.NotEqual(t, want, rows)
				assert.Equal(t, append(slices.Repeat([]int{50}, 16), 6), sizes)
			}
		})
	}
}

// TestRanksShareMiniBatchesAcrossFiles: the shares of three ranks end with mini-batches, which are those of one rank.
func TestRanksShareMiniBatchesAcrossFiles(t *testing.T) {
	d := newDataSet(t, 130, 1000, 300, 201, 100, 49, 1, 155)
	o := trainmgr.Options{Boundary: dataset.BoundaryNone, Seed: 3, SplitBatches: 2}
	for _, s := range joinedWays() {
		all := run(t, s.config(t, d, nil), s.options(t, o, "sets"), nil).sums
		got := map[tensor.Name]uint32{}
		for rank := range 3 {
			share := o
			share.Share = dataset.Share{Rank: rank, Ranks: 3, KeepTail: true}
			of := run(t, s.config(t, d, nil), s.options(t, share, "sets"), nil)
			for name, sum := range of.sums {
				require.NotContains(t, got, name)
				got[name] = sum
			}
			require.Len(t, of.sums, []int{6, 6, 5}[rank])
		}
		require.Equal(t, all, got)
	}
}

// TestResumeInTheMiddleOfAFile stops jobs after every number of mini-batches. Those that go on from the token, perhaps
// in another way, bring the mini-batches that were not acknowledged, and no other.
func TestResumeInTheMiddleOfAFile(t *testing.T) {
	d := newDataSet(t, 130, 1000, 300, 201, 100, 49, 1, 155)
	ways := joinedWays()
	o := trainmgr.Options{Boundary: dataset.BoundaryNone, Shuffle: dataset.ShuffleRows, SplitBatches: 3, Window: 2}
	want := run(t, ways[0].config(t, d, nil), ways[0].options(t, o, "sets"), nil).sums
	require.Len(t, want, 17)
	for stop := range 17 {
		first, second := ways[stop%len(ways)], ways[(stop/2)%len(ways)]
		m, err := Open(t.Context(), first.config(t, d, nil))
		require.NoError(t, err)
		job, err := trainmgr.Submit(t.Context(), m, first.options(t, o, "sets"))
		require.NoError(t, err)
		got := map[tensor.Name]uint32{}
		for mb, err := range job.MiniBatches(t.Context()) {
			require.NoError(t, err)
			if len(got) == stop {
				break
			}
			got[mb.Name] = sum(mb)
		}
		token := job.Checkpoint()
		require.NoError(t, job.Close())
		require.NoError(t, m.Close())

		resumed := second.options(t, o, "sets")
		resumed.Resume = &token
		for name, sum := range run(t, second.config(t, d, nil), resumed, nil).sums {
			require.NotContains(t, got, name, "it was acknowledged")
			got[name] = sum
		}
		require.Equal(t, want, got, "stopped after %d", stop)
	}
}

// TestManyFilesHaveOneShortMiniBatch has 200 files of 9,000 rows: with a batch of 8,192 rows every file would have a
// short mini-batch, and across files only the last one is short.
func TestManyFilesHaveOneShortMiniBatch(t *testing.T) {
	const files, rows, batch = 200, 9_000, 8_192
	d := newDataSet(t, 3_000, 1<<16, rows)
	for i := 1; i < files; i++ {
		d.names = append(d.names, fmt.Sprintf("part-%05d.parquet", i))
		d.parts = append(d.parts, d.parts[0])
	}
	s := setup{place: "files", drives: 2, engine: "cpu", streams: 2, order: dataset.Deterministic}
	var labels []float32
	var sizes []int
	plan := trainmgr.Options{Boundary: dataset.BoundaryNone, Shuffle: dataset.ShuffleNone, Batch: batch}
	o := s.options(t, plan, "fixed")
	run(t, s.config(t, d, nil), o, func(mb *tensor.MiniBatch) {
		labels = append(labels, mb.Label...)
		sizes = append(sizes, mb.Rows)
	})
	assert.Equal(t, append(slices.Repeat([]int{batch}, 219), files*rows-219*batch), sizes)
	require.Len(t, labels, files*rows)
	for file := range files {
		require.True(t, slices.Equal(labels[:rows], labels[file*rows:(file+1)*rows]), "file %d", file)
	}
}
