package trainmgr

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

func TestJoinerReturnsAMiniBatchWhenItsLastFragmentComes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type place struct {
			number uint64
			tensor.Fragment
		}
		var all []place
		missing := map[uint64]int{}
		for number := range uint64(rapid.IntRange(1, 4).Draw(rt, "mini-batches")) {
			of := rapid.IntRange(2, 5).Draw(rt, "fragments")
			for i := range of {
				all = append(all, place{number, tensor.Fragment{Index: i, Of: of}})
			}
			missing[number] = of
		}
		j := joiner{waiting: map[uint64][]*tensor.MiniBatch{}}
		alive := 0
		order := rapid.Permutation(all).Draw(rt, "order")
		come := rapid.IntRange(0, len(order)).Draw(rt, "come")
		for _, p := range order[:come] {
			alive++
			part := tensor.New(&tensor.Schema{Label: true}, 0, func() { alive-- })
			part.Name.Number, part.Fragment = p.number, p.Fragment
			whole := j.add(part)
			missing[p.number]--
			require.Equal(rt, missing[p.number] == 0, whole != nil)
			for i, w := range whole {
				require.Equal(rt, p.number, w.Name.Number)
				require.Equal(rt, i, w.Fragment.Index)
				w.Release()
			}
		}
		if come == len(order) {
			require.Empty(rt, j.waiting)
			require.Zero(rt, alive)
		}
		j.drain()
		require.Zero(rt, alive)
	})
}

// slowStorage is a storage whose drives take their time for every fragment.
type slowStorage struct {
	*fakeStorage
	delays map[string]time.Duration // by drive
}

func (s *slowStorage) Open(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
	stream, err := s.fakeStorage.Open(ctx, o)
	return &slowStream{stream, s.delays[o.Drive]}, err
}

type slowStream struct {
	api.Stream
	delay time.Duration
}

func (s *slowStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	time.Sleep(s.delay)
	return s.Stream.Next(ctx)
}

// fakeRow is the value that fakeStream gives a row of a partition.
func fakeRow(partition int, row int64) int64 { return int64(partition)*1_000_000 + row }

// sequenceOf returns the rows of a plan in the order of its sequence.
func sequenceOf(p *dataset.Plan) (rows []int64) {
	for split := range p.All() {
		for r := range split.Rows {
			rows = append(rows, fakeRow(split.Partition, split.First+r))
		}
	}
	return rows
}

// drawSlow draws drives that hold partitions of any sizes, some of them twice, and are fast or slow.
func drawSlow(rt *rapid.T) *slowStorage {
	rows := rapid.SliceOfN(rapid.Int64Range(1, 70), 1, 25).Draw(rt, "rows")
	rows[0] += 9 // a job without a mini-batch is refused
	drives := rapid.IntRange(1, 4).Draw(rt, "drives")
	holds := make([][]int, drives)
	for p := range rows {
		for _, d := range rapid.SliceOfNDistinct(rapid.IntRange(0, drives-1), 1, 2, rapid.ID).Draw(rt, "holders") {
			holds[d] = append(holds[d], p)
		}
	}
	s := &slowStorage{newFakeOf(rt, rows, holds...), map[string]time.Duration{}}
	for i := range s.data.Drives {
		d := &s.data.Drives[i]
		d.Streams = rapid.IntRange(1, 3).Draw(rt, "streams")
		s.delays[d.Name] = rapid.SampledFrom([]time.Duration{0, 1, 7, 1000}).Draw(rt, "delay")
	}
	return s
}

// drawJoined draws the options of a job whose mini-batches are joined from several splits.
func drawJoined(rt *rapid.T) Options {
	o := Options{Pipeline: spec(), AllDrives: true, Boundary: dataset.BoundaryNone,
		Tail:         rapid.SampledFrom([]dataset.Tail{dataset.KeepTail, dataset.DropTail}).Draw(rt, "tail"),
		Shuffle:      rapid.SampledFrom([]dataset.Shuffle{dataset.ShuffleSplits, dataset.ShuffleNone}).Draw(rt, "shuffle"),
		Order:        rapid.SampledFrom([]dataset.Order{dataset.Fastest, dataset.Deterministic}).Draw(rt, "order"),
		SplitBatches: rapid.IntRange(1, 4).Draw(rt, "split_batches"),
		Seed:         rapid.Uint64().Draw(rt, "seed"),
		QueueBytes:   rapid.SampledFrom([]int64{1, 119, 120, 121, 500, 5000}).Draw(rt, "queue"),
	}
	return o
}

// deliverJoined submits a job with those options and takes mini-batches until the trainer has acknowledged some, or all
// if stop is negative. It checks each mini-batch against the sequence of the plan, and returns the mini-batches that
// were acknowledged and the job's token.
func deliverJoined(rt *rapid.T, storage api.Storage, o Options, stop int,
	step time.Duration) (numbers []uint64, token dataset.Token) {
	j, err := Submit(context.Background(), storage, o)
	require.NoError(rt, err)
	plan := j.Plan()
	sequence := sequenceOf(plan)
	for mb, err := range j.MiniBatches(context.Background()) {
		if errors.Is(err, ErrNothingLeft) {
			break
		}
		require.NoError(rt, err)
		if len(numbers) == stop {
			break
		}
		time.Sleep(step)
		first := int(mb.Name.Number) * plan.Options().Batch
		require.Equal(rt, sequence[first:min(first+plan.Options().Batch, len(sequence))], mb.Values64)
		require.Zero(rt, mb.Fragment)
		if n := len(numbers); n > 0 && o.Order == dataset.Deterministic {
			require.Less(rt, numbers[n-1], mb.Name.Number)
		}
		numbers = append(numbers, mb.Name.Number)
	}
	const miniBatchBytes = 10 * (4 + 8)
	for _, queue := range j.tally.epochs {
		most := o.QueueBytes + int64(j.source.(*storageSource).splitsAhead()+2)*miniBatchBytes
		require.LessOrEqual(rt, queue.MaxBytes, most)
		require.Zero(rt, queue.Bytes)
	}
	token = j.Checkpoint()
	require.NoError(rt, j.Close())
	return numbers, token
}

// inBubble runs a function in a bubble of synctest, in which a wait for what cannot come ends the test. A failure of
// the function is one of the caller's.
func inBubble(t *testing.T, run func()) {
	var failure any
	synctest.Test(t, func(*testing.T) {
		defer func() { failure = recover() }()
		run()
	})
	if failure != nil {
		panic(failure)
	}
}

// TestMiniBatchesAreJoinedOverAnyDrives runs jobs over any drives, splits and queues, however small, in both orders. A
// trainer stops somewhere, and another goes on from its token.
func TestMiniBatchesAreJoinedOverAnyDrives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		storage, o := drawSlow(rt), drawJoined(rt)
		step := rapid.SampledFrom([]time.Duration{0, 3}).Draw(rt, "step")
		stop := rapid.IntRange(0, 40).Draw(rt, "stop")
		inBubble(t, func() {
			seen := map[uint64]bool{}
			numbers, token := deliverJoined(rt, storage, o, stop, step)
			o.Resume = &token
			rest, last := deliverJoined(rt, storage, o, -1, step)
			for _, n := range slices.Concat(numbers, rest) {
				require.False(rt, seen[n], "mini-batch %d came twice", n)
				seen[n] = true
			}
			all := int64(0)
			for _, p := range storage.data.Manifest.Partitions {
				all += p.Rows
			}
			if all%10 > 0 && o.Tail == dataset.KeepTail {
				all += 10
			}
			require.Len(rt, seen, int(all/10))
			require.Equal(rt, all/10, int64(last.Mark))
			require.Zero(rt, storage.alive.Load())
		})
	})
}

// TestAFastDriveWaitsForASlowOne has every other split on a drive that is far slower: the fragments that the fast drive
// makes stay few, with a queue of one byte.
func TestAFastDriveWaitsForASlowOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := int64(rapid.IntRange(3, 19).Draw(rt, "rows"))
		var holds [2][]int
		for p := range 100 {
			holds[p%2] = append(holds[p%2], p)
		}
		storage := &slowStorage{newFakeOf(rt, slices.Repeat([]int64{rows}, 100), holds[:]...),
			map[string]time.Duration{"drive1": time.Hour}}
		o := Options{Pipeline: spec(), AllDrives: true, Boundary: dataset.BoundaryNone, Shuffle: dataset.ShuffleNone,
			SplitBatches: 2, QueueBytes: 1}
		inBubble(t, func() {
			numbers, _ := deliverJoined(rt, storage, o, -1, 0)
			require.Len(rt, numbers, int(10*rows))
		})
	})
}
