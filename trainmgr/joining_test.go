package trainmgr

import (
	"context"
	"errors"
	"io"
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
		runs := j.source.(*storageSource).maxRuns()
		most := o.QueueBytes + int64(2*runs+2*runs/streamRuns+1)*miniBatchBytes
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
		if rapid.Bool().Draw(rt, "scaled") {
			o.AllDrives, o.RowsPerSecond, o.Autoscale.Every = false, 1500, time.Microsecond
		}
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

// TestMiniBatchesAreJoinedOfBothSides runs jobs whose splits are shared between drives, which hold some partitions and
// fail now and then, and the trainer's own CPUs: a fragment that a drive did not bring comes from the other side.
func TestMiniBatchesAreJoinedOfBothSides(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		remote, o := drawSlow(rt), drawJoined(rt)
		rows := make([]int64, len(remote.data.Manifest.Partitions))
		every := make([]int, len(rows))
		for p := range rows {
			rows[p], every[p] = remote.data.Manifest.Partitions[p].Rows, p
		}
		held := rapid.Permutation(every).Draw(rt, "held")
		held = held[:rapid.IntRange(0, len(held)).Draw(rt, "held elsewhere")]
		for i := range remote.data.Drives {
			d := &remote.data.Drives[i]
			d.Partitions = slices.DeleteFunc(d.Partitions, func(p int) bool { return !slices.Contains(held, p) })
		}
		local := newFakeOf(rt, rows, every)
		local.data.Drives[0].Streams = rapid.IntRange(1, 3).Draw(rt, "own streams")
		remote.failAt = map[uint64]error{}
		for _, n := range rapid.SliceOfN(rapid.Uint64Range(0, 60), 0, 3).Draw(rt, "failures") {
			remote.failAt[n] = errGone
		}
		ratio := rapid.SampledFrom([]float64{0, 0.3, 0.5, 1}).Draw(rt, "ratio")
		o.AllDrives, o.RowsPerSecond = false, 1500
		o.Offload = Offload{Local: local, RetryAfter: time.Millisecond, Ratio: &ratio}
		stop := rapid.IntRange(-1, 40).Draw(rt, "stop")
		inBubble(t, func() {
			numbers, token := deliverJoined(rt, remote, o, stop, 1)
			o.Resume = &token
			rest, last := deliverJoined(rt, remote, o, -1, 1)
			require.Len(rt, slices.Concat(numbers, rest), int(last.Mark))
			require.Empty(rt, last.Ranges)
			require.Zero(rt, remote.alive.Load())
			require.Zero(rt, local.alive.Load())
		})
	})
}

// TestFragmentsOfAStorageAreNotTrusted: a fragment that is not the one of the plan ends the job with an error that says
// what came and what was to come. Partitions of 25 rows are cut into fragments of 10, 10, 5 and of 5, 10, 10 rows.
func TestFragmentsOfAStorageAreNotTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(mb *tensor.MiniBatch)
		says   string
	}{
		"a fragment as a whole": {func(mb *tensor.MiniBatch) { mb.Fragment = tensor.Fragment{} },
			"/0/2 came with 5 rows, want"},
		"another number of fragments": {func(mb *tensor.MiniBatch) { mb.Fragment.Of++ },
			"/0/2 (fragment 0, from 0, of 3) came with 5 rows, want"},
		"a fragment of another split": {func(mb *tensor.MiniBatch) { mb.Fragment.Index++ },
			"/0/2 (fragment 1, from 0, of 2) came beyond [0, 3)"},
		"no such fragment": {func(mb *tensor.MiniBatch) { mb.Fragment.Index = -1 }, "came beyond [0, 3)"},
		"a row too many":   {func(mb *tensor.MiniBatch) { mb.Rows++ }, "came with 6 rows, want"},
		"one that came": {func(mb *tensor.MiniBatch) { mb.Name.Number, mb.Fragment = 1, tensor.Fragment{} },
			"/0/1 came where"},
		"another schema": {func(mb *tensor.MiniBatch) { mb.Schema = &tensor.Schema{Label: true} },
			"/0/2: fragment 0 of 2: tensor: shape: "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, 25, []int{0}, []int{1})
			w := &wrongStorage{f, func(_ int, mb *tensor.MiniBatch) (*tensor.MiniBatch, error) {
				if mb == nil {
					return nil, io.EOF
				}
				if mb.Fragment == (tensor.Fragment{Index: 0, Of: 2}) {
					c.change(mb)
				}
				return mb, nil
			}}
			j, err := Submit(t.Context(), w, Options{Pipeline: spec(), AllDrives: true, Boundary: dataset.BoundaryNone,
				Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic})
			require.NoError(t, err)
			var last error
			for _, err := range j.MiniBatches(t.Context()) {
				last = err
			}
			require.ErrorContains(t, last, c.says)
			require.NoError(t, j.Close())
			require.Zero(t, f.alive.Load())
		})
	}
}

// TestAReportCountsJoinedMiniBatchesOnce: a mini-batch of two drives' rows counts for the drive of its first row, and
// its rows and fragments for the drives that made them.
func TestAReportCountsJoinedMiniBatchesOnce(t *testing.T) {
	f := newFake(t, 25, []int{0}, []int{1})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), AllDrives: true, Boundary: dataset.BoundaryNone,
		Shuffle: dataset.ShuffleNone})
	require.NoError(t, err)
	rows, _ := take(t, j, -1)
	require.Len(t, rows, 50)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 50, r.Rows)
	require.EqualValues(t, 5, r.MiniBatches)
	require.Len(t, r.PerDrive, 2)
	for i, miniBatches := range []int64{3, 2} {
		require.EqualValues(t, 25, r.PerDrive[i].Rows)
		require.EqualValues(t, 3, r.PerDrive[i].Fragments)
		require.EqualValues(t, miniBatches, r.PerDrive[i].MiniBatches)
	}
	require.NoError(t, j.Close())
}
