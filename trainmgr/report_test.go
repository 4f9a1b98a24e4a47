package trainmgr

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// gated is storage whose mini-batches come when the test lets them.
type gated struct {
	*fakeStorage
	gate chan struct{}
}

func (g *gated) Open(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
	s, err := g.fakeStorage.Open(ctx, o)
	return &gatedStream{s, g.gate}, err
}

type gatedStream struct {
	api.Stream
	gate chan struct{}
}

func (s *gatedStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	select {
	case <-s.gate:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return s.Stream.Next(ctx)
}

// TestStallIsWhatTheTrainerWaits: a trainer that is slower than the drives never stalls. For a trainer that is faster,
// the report counts the stalls and their time and names the drives as the cause. The clock is the test's: it advances
// only while all goroutines wait.
func TestStallIsWhatTheTrainerWaits(t *testing.T) {
	const batches, wait = 6, 10 * time.Millisecond
	run := func(t *testing.T, fast bool) *Report {
		g := &gated{newFake(t, 10*batches, []int{0}), make(chan struct{})}
		j, err := Submit(t.Context(), g, Options{Pipeline: spec(), AllDrives: true})
		require.NoError(t, err)
		var work sync.WaitGroup
		make1 := func(d time.Duration) {
			work.Go(func() {
				time.Sleep(d)
				g.gate <- struct{}{}
			})
		}
		depth := func() int {
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.tally.current == nil {
				return 0
			}
			return j.tally.current.Statistics().Depth
		}
		make1(0)
		n := 0
		for _, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
			n++
			if fast {
				// the trainer asks at once, and the drive takes its time; the last one finds the end of the split
				make1(wait)
				continue
			}
			make1(0)
			for n < batches && depth() == 0 { // the trainer takes its time
				time.Sleep(time.Millisecond)
			}
		}
		work.Wait()
		require.Equal(t, batches, n)
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		require.NoError(t, j.Close())
		return r
	}
	synctest.Test(t, func(t *testing.T) {
		slow := run(t, false)
		assert.Zero(t, slow.Stalls)
		assert.Zero(t, slow.StallSeconds)
		assert.Contains(t, slow.HeldBackBy, "the trainer")
	})
	synctest.Test(t, func(t *testing.T) {
		fast := run(t, true)
		assert.Equal(t, batches-1, fast.Stalls, "every mini-batch but the first")
		assert.InDelta(t, (batches-1)*wait.Seconds(), fast.StallSeconds, 1e-9)
		assert.Contains(t, fast.HeldBackBy, "the drives")
	})
}

// TestWhatHeldTheJobBack checks the cause of stalls that the report derives from its numbers.
func TestWhatHeldTheJobBack(t *testing.T) {
	for name, c := range map[string]struct {
		r    Report
		says string
	}{
		"nothing ran": {Report{}, "nothing has run"},
		"no stall": {Report{ElapsedSeconds: 10, MiniBatches: 1, StallSeconds: 0.1},
			"the trainer: it waited 1.0%"},
		"drives": {Report{ElapsedSeconds: 10, MiniBatches: 1, StallSeconds: 5, DecodeSeconds: 3,
			TransformSeconds: 2}, "most of their time in decode"},
		"drives, moving": {Report{ElapsedSeconds: 10, MiniBatches: 1, StallSeconds: 5, MoveSeconds: 3},
			"most of their time in move"},
		"drives, as foretold": {Report{ElapsedSeconds: 10, MiniBatches: 1, StallSeconds: 5, ExpectedStallSecond: 4,
			AllocationNote: "too few", FetchSeconds: 1},
			"as foretold (too few); they spent most of their time in fetch"},
		"the queue's bound": {Report{ElapsedSeconds: 10, MiniBatches: 1, StallSeconds: 5, WorkersBlockedSec: 6},
			"raise the queue's bytes"},
	} {
		assert.Contains(t, c.r.bottleneck(false), c.says, name)
		assert.NotContains(t, c.r.bottleneck(true), "most of their time", "%s: the model says which stage binds", name)
	}
}

// TestReportCountsWhatTheTrainerGot checks that the report counts every mini-batch that the trainer got, the one after
// which it stops included.
func TestReportCountsWhatTheTrainerGot(t *testing.T) {
	f := newFake(t, 95, []int{0})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), AllDrives: true, Order: dataset.Deterministic,
		Shuffle: dataset.ShuffleNone})
	require.NoError(t, err)
	report := func() *Report {
		r, err := j.Report(t.Context())
		require.NoError(t, err)
		return r
	}
	assert.Zero(t, report().Rows)
	n := 0
	for range j.MiniBatches(t.Context()) {
		n++
		assert.EqualValues(t, n, report().MiniBatches, "in the middle")
		if n == 3 {
			break
		}
	}
	r := report()
	assert.EqualValues(t, 3, r.MiniBatches)
	assert.EqualValues(t, 30, r.Rows)
	assert.EqualValues(t, 3*10*12, r.Bytes)
	_, numbers := take(t, j, -1) // the third was not acknowledged, and comes again
	assert.Len(t, numbers, 8)
	assert.EqualValues(t, 11, report().MiniBatches)
}

func TestResumeRefusesAnEpochThatTheJobHasNot(t *testing.T) {
	f := newFake(t, 100, []int{0})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Epochs: 3})
	require.NoError(t, err)
	take(t, j, 25)
	token := j.Checkpoint()
	require.EqualValues(t, 2, token.Epoch)
	require.NoError(t, j.Close())
	_, err = Submit(t.Context(), f, Options{Pipeline: spec(), Epochs: 2, Resume: &token})
	require.ErrorIs(t, err, ErrOptions)
	assert.ErrorContains(t, err, "epoch 2")
	j, err = Submit(t.Context(), f, Options{Pipeline: spec(), Epochs: 3, Resume: &token})
	require.NoError(t, err)
	_, numbers := take(t, j, -1)
	assert.Len(t, numbers, 5)
}

// TestResumeOfAFinishedEpochGoesOnWithTheNext resumes from the token of a finished epoch: a job of two epochs goes on
// with the second, whose end leaves nothing to iterate; a job of one epoch is accepted.
func TestResumeOfAFinishedEpochGoesOnWithTheNext(t *testing.T) {
	f := newFake(t, 100, []int{0})
	digest := func(o Options) dataset.Token {
		j, err := Submit(t.Context(), f, o)
		require.NoError(t, err)
		take(t, j, -1)
		return j.Checkpoint()
	}
	token := digest(Options{Pipeline: spec()})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Epochs: 2, Resume: &token})
	require.NoError(t, err, "epochs are not part of a job's identity")
	rows, _ := take(t, j, -1)
	assert.Len(t, rows, 100)
	n := 0
	for mb, err := range j.MiniBatches(t.Context()) {
		assert.Nil(t, mb, "all epochs are done")
		assert.ErrorIs(t, err, ErrNothingLeft)
		assert.ErrorContains(t, err, "epoch 1, mark 10")
		n++
	}
	assert.Equal(t, 1, n, "one error")
	_, err = Submit(t.Context(), f, Options{Pipeline: spec(), Resume: &token})
	require.NoError(t, err)
}

// TestAnIterationWithoutAMiniBatchSaysWhy: an iteration over a job of which nothing is left yields one error,
// ErrNothingLeft. An iteration that ended without an error would look like a training that was done.
func TestAnIterationWithoutAMiniBatchSaysWhy(t *testing.T) {
	f := newFake(t, 100, []int{0})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec()})
	require.NoError(t, err)
	take(t, j, -1)
	token := j.Checkpoint()
	j, err = Submit(t.Context(), f, Options{Pipeline: spec(), Resume: &token})
	require.NoError(t, err)
	n := 0
	for mb, err := range j.MiniBatches(t.Context()) {
		require.Nil(t, mb)
		require.ErrorIs(t, err, ErrNothingLeft)
		n++
	}
	require.Equal(t, 1, n)
	require.NoError(t, j.Close())
}

func TestOptionsRefused(t *testing.T) {
	f := newFake(t, 100, []int{0})
	step := Step{Run: func(context.Context, *tensor.MiniBatch) error { return nil }}
	for name, o := range map[string]Options{
		"no pipeline":          {},
		"epochs":               {Pipeline: spec(), Epochs: -1},
		"queue":                {Pipeline: spec(), QueueBytes: -1},
		"drives":               {Pipeline: spec(), MaxDrives: -1},
		"T and all drives":     {Pipeline: spec(), AllDrives: true, RowsPerSecond: 1},
		"steps and all drives": {Pipeline: spec(), AllDrives: true, Ranks: []Step{step}},
		"T below zero":         {Pipeline: spec(), RowsPerSecond: -1},
		"order":                {Pipeline: spec(), Order: 2},
	} {
		_, err := Submit(t.Context(), f, o)
		require.ErrorIs(t, err, ErrOptions, name)
	}
	_, err := Submit(t.Context(), f, Options{Pipeline: spec(), Window: 99, Shuffle: dataset.ShuffleRows})
	require.ErrorIs(t, err, dataset.ErrOptions)
	assert.Empty(t, f.jobs, "nothing was prepared")
}

// TestADriveWithoutRowsIsNotMeasured: the allocation has no P of a drive whose partitions have no rows or that has no
// partitions, and the job yields all rows.
func TestADriveWithoutRowsIsNotMeasured(t *testing.T) {
	f := newFake(t, 100, []int{0}, []int{1}, nil)
	f.data.Manifest.Partitions[1].Rows = 0
	f.data.Manifest.Partitions[1].RowGroups = []int64{}
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), RowsPerSecond: 1e6})
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"drive0": 1000}, j.Allocation().P)
	rows, _ := take(t, j, -1)
	assert.Len(t, rows, 100)
}

// wrongStorage is storage whose streams pass every mini-batch and every end through change.
type wrongStorage struct {
	*fakeStorage
	change func(n int, mb *tensor.MiniBatch) (*tensor.MiniBatch, error)
}

func (w *wrongStorage) Open(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
	s, err := w.fakeStorage.Open(ctx, o)
	return &wrongStream{Stream: s, change: w.change}, err
}

type wrongStream struct {
	api.Stream
	n      int
	change func(int, *tensor.MiniBatch) (*tensor.MiniBatch, error)
}

func (s *wrongStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	mb, err := s.Stream.Next(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.n++
	return s.change(s.n, mb)
}

// TestStorageIsNotTrusted: storage that yields a mini-batch of another name, one too few or one too many ends the job
// with an error that names the drive and says what was wrong. The trainer gets the mini-batches before the wrong one.
func TestStorageIsNotTrusted(t *testing.T) {
	wants := map[string]struct {
		said  string
		right uint64 // mini-batches before the wrong one
	}{
		"another number": {"/0/6 came beyond [0, 6)", 0},
		"another epoch":  {"/7/0 came where", 0},
		"one too few":    {"it ended before mini-batch 2 of [0, 6)", 2},
		"one too many":   {"/0/6 came beyond [0, 6)", 6},
	}
	for name, change := range map[string]func(*fakeStorage) func(n int, mb *tensor.MiniBatch) (*tensor.MiniBatch,
		error){
		"another number": func(*fakeStorage) func(int, *tensor.MiniBatch) (*tensor.MiniBatch, error) {
			return func(n int, mb *tensor.MiniBatch) (*tensor.MiniBatch, error) {
				if mb == nil {
					return nil, io.EOF
				}
				mb.Name.Number++
				return mb, nil
			}
		},
		"another epoch": func(*fakeStorage) func(int, *tensor.MiniBatch) (*tensor.MiniBatch, error) {
			return func(n int, mb *tensor.MiniBatch) (*tensor.MiniBatch, error) {
				if mb == nil {
					return nil, io.EOF
				}
				mb.Name.Epoch = 7
				return mb, nil
			}
		},
		"one too few": func(*fakeStorage) func(int, *tensor.MiniBatch) (*tensor.MiniBatch, error) {
			return func(n int, mb *tensor.MiniBatch) (*tensor.MiniBatch, error) {
				if n == 3 {
					mb.Release()
					return nil, io.EOF
				}
				return mb, nil
			}
		},
		"one too many": func(f *fakeStorage) func(int, *tensor.MiniBatch) (*tensor.MiniBatch, error) {
			var last tensor.Name
			return func(n int, mb *tensor.MiniBatch) (*tensor.MiniBatch, error) {
				if mb != nil {
					last = mb.Name
					return mb, nil
				}
				f.alive.Add(1)
				more := tensor.New(&tensor.Schema{Label: true}, 0, func() { f.alive.Add(-1) })
				more.Name = last
				more.Name.Number++
				return more, nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, 60, []int{0})
			w := &wrongStorage{f, change(f)}
			j, err := Submit(t.Context(), w, Options{Pipeline: spec(), AllDrives: true, Order: dataset.Deterministic})
			require.NoError(t, err)
			var last error
			for mb, err := range j.MiniBatches(t.Context()) {
				if last = err; err == nil {
					require.Less(t, mb.Name.Number, wants[name].right)
					require.Zero(t, mb.Name.Epoch)
				}
			}
			assert.ErrorContains(t, last, "drive0")
			assert.ErrorContains(t, last, wants[name].said)
			require.NoError(t, j.Close())
			assert.Zero(t, f.alive.Load())
			assert.Zero(t, f.running.Load())
		})
	}
}

// TestReportNotesDrivesThatDoNotTell: the report's notes have the problem of a drive whose counters cannot be read, and
// nothing about the other drive.
func TestReportNotesDrivesThatDoNotTell(t *testing.T) {
	f := newFake(t, 10, []int{0})
	f.reports = []api.DriveReport{{Name: "d0", Rows: 10, Problem: "read its counters: it is gone"}, {Name: "d1"}}
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), AllDrives: true})
	require.NoError(t, err)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.Contains(t, r.Notes, "drive d0: read its counters: it is gone")
	assert.NotContains(t, strings.Join(r.Notes, "\n"), "drive d1")
}
