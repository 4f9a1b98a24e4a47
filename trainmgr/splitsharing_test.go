package trainmgr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/offload"
)

// elsewhere is a remote storage that can be away and come back. While it is away, every call to it fails; streams that
// are open go on.
type elsewhere struct {
	*fakeStorage
	isAway atomic.Bool
}

var errGone = errors.New("connection refused")

func (e *elsewhere) gone() error {
	if e.isAway.Load() {
		return errGone
	}
	return nil
}

func (e *elsewhere) Dataset(ctx context.Context) (*api.Dataset, error) {
	if err := e.gone(); err != nil {
		return nil, err
	}
	return e.fakeStorage.Dataset(ctx)
}

func (e *elsewhere) Prepare(ctx context.Context, job *api.Job) error {
	if err := e.gone(); err != nil {
		return err
	}
	return e.fakeStorage.Prepare(ctx, job)
}

func (e *elsewhere) Report(ctx context.Context, job dataset.Digest) ([]api.DriveReport, error) {
	if err := e.gone(); err != nil {
		return nil, err
	}
	return e.fakeStorage.Report(ctx, job)
}

func (e *elsewhere) Finish(ctx context.Context, job dataset.Digest) error {
	if err := e.gone(); err != nil {
		return err
	}
	return e.fakeStorage.Finish(ctx, job)
}

func (e *elsewhere) Open(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
	if err := e.gone(); err != nil {
		return nil, err
	}
	return e.fakeStorage.Open(ctx, o)
}

// said collects a job's log lines, level by level.
type said struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (s *said) Enabled(context.Context, slog.Level) bool { return true }

func (s *said) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, r.Level.String()+" "+r.Message)
	return nil
}

func (s *said) count(line string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.lines {
		if l == line {
			n++
		}
	}
	return n
}

const (
	saysAllLocal = "WARN no drive and no worker is there: everything is local"
	saysAway     = "WARN a drive is away: the others and the trainer's own CPUs make its splits"
	saysBack     = "INFO drives and workers are there again"
)

// checkRows checks that rows are those of a data set, each once.
func checkRows(t *testing.T, f *fakeStorage, perPartition int64, rows []int64) {
	t.Helper()
	want := allRows(f, perPartition)
	for _, r := range rows {
		require.True(t, want[r], "row %d came twice or from nowhere", r)
		delete(want, r)
	}
	require.Empty(t, want)
}

// sharedOptions returns the options of a job with 4 mini-batches a split. The drives' share is ratio, or is decided by
// the policy if ratio is negative.
func sharedOptions(local api.Storage, order dataset.Order, ratio float64) Options {
	o := Options{Pipeline: spec(), Order: order, SplitBatches: 4, RowsPerSecond: 1500,
		Offload: Offload{Local: local, RetryAfter: time.Millisecond}}
	if ratio >= 0 {
		o.Offload.Ratio = &ratio
	}
	return o
}

// TestSplitsAreSharedAtTheRatio runs a job at several shares: every row comes once, in plan order if the order is
// deterministic, and the number of the drives' splits is within one split of the ratio.
func TestSplitsAreSharedAtTheRatio(t *testing.T) {
	for _, order := range []dataset.Order{dataset.Fastest, dataset.Deterministic} {
		for _, ratio := range []float64{0, 0.3, 0.5, 0.75, 1} {
			t.Run(fmt.Sprint(order, ratio), func(t *testing.T) {
				local := newFake(t, 1005, []int{0, 1, 2, 3})
				remote := newFake(t, 1005, []int{0, 1}, []int{2, 3})
				j, err := Submit(t.Context(), remote, sharedOptions(local, order, ratio))
				require.NoError(t, err)
				rows, numbers := take(t, j, -1)
				checkRows(t, local, 1005, rows)
				if order == dataset.Deterministic {
					assert.True(t, slices.IsSorted(numbers))
				}
				r, err := j.Report(t.Context())
				require.NoError(t, err)
				require.NotNil(t, r.Offload)
				splits := float64(r.Offload.LocalSplits + r.Offload.RemoteSplits)
				assert.InDelta(t, 104, splits, 0)
				assert.InDelta(t, ratio*splits, float64(r.Offload.RemoteSplits), 1)
				assert.EqualValues(t, 4*1005, r.Offload.LocalRows+r.Offload.RemoteRows)
				assert.EqualValues(t, local.opened.Load(), r.Offload.LocalSplits)
				assert.EqualValues(t, remote.opened.Load(), r.Offload.RemoteSplits)
				assert.InDelta(t, ratio, r.Offload.Ratio, 0)
				require.NoError(t, j.Close())
				for _, f := range []*fakeStorage{local, remote} {
					assert.Zero(t, f.alive.Load(), "mini-batches not released")
					assert.Zero(t, f.running.Load(), "streams not closed")
					assert.Equal(t, 1, f.finished)
				}
			})
		}
	}
}

// TestTheRatioIsDecidedFromRates submits without a step to profile: T, and the P of both sides, decide.
func TestTheRatioIsDecidedFromRates(t *testing.T) {
	local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0}, []int{1})
	local.p, remote.p = 300, 600
	o := sharedOptions(local, dataset.Fastest, -1)
	o.RowsPerSecond = 3000
	j, err := Submit(t.Context(), remote, o)
	require.NoError(t, err)
	a := j.Allocation()
	assert.Equal(t, 3, a.Drives, "both drives, and the trainer's own")
	assert.InDelta(t, 1200/1500.0, j.source.(*storageSource).splitSharing.decision.Ratio, 0.002,
		"both sides are done at once")
	assert.Equal(t, map[string]float64{"trainer/drive0": 300, "drive0": 600, "drive1": 600}, a.P)
	assert.InDelta(t, 2010/1500.0, a.Time.Seconds(), 0.01)
	assert.InDelta(t, 2010/1500.0-2010/3000.0, a.ExpectedStall.Seconds(), 0.01)
	require.NoError(t, j.Close())
	// A trainer that the local side sustains takes nothing from the drives.
	o.RowsPerSecond = 250
	j, err = Submit(t.Context(), remote, o)
	require.NoError(t, err)
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	assert.Zero(t, remote.opened.Load())
	require.NoError(t, j.Close())
	// Of drives that are not all needed, as many run as make their share.
	o.RowsPerSecond = 500
	o.Offload.Local.(*fakeStorage).p = 100
	j, err = Submit(t.Context(), remote, o)
	require.NoError(t, err)
	assert.Equal(t, 2, j.Allocation().Drives)
	require.NoError(t, j.Close())
}

// TestWithoutWorkersEverythingIsLocal has no drive at all, and drives that are away when the job begins: the job yields
// all rows of three epochs, and logs once that everything is local.
func TestWithoutWorkersEverythingIsLocal(t *testing.T) {
	away := &elsewhere{fakeStorage: newFake(t, 1005, []int{0, 1})}
	away.isAway.Store(true)
	for name, remote := range map[string]api.Storage{"none": nil, "away": away} {
		t.Run(name, func(t *testing.T) {
			local := newFake(t, 1005, []int{0, 1})
			log := &said{}
			o := sharedOptions(local, dataset.Fastest, -1)
			o.Logger, o.Epochs = slog.New(log), 3
			j, err := Submit(t.Context(), remote, o)
			require.NoError(t, err)
			rows, _ := take(t, j, -1)
			require.Len(t, rows, 3*2010)
			r, err := j.Report(t.Context())
			require.NoError(t, err)
			assert.True(t, r.Offload.RemoteAway)
			require.NoError(t, j.Close())
			assert.Equal(t, 1, log.count(saysAllLocal))
			assert.Zero(t, log.count(saysBack))
		})
	}
}

// TestDrivesComeBack begins a job while its drives are away. They come after some mini-batches, go away while they are
// used, and come again: every row of each epoch comes once, and the drives make splits again.
func TestDrivesComeBack(t *testing.T) {
	for _, order := range []dataset.Order{dataset.Fastest, dataset.Deterministic} {
		t.Run(order.String(), func(t *testing.T) {
			const epochRows = 2 * 4005
			local := newFake(t, 4005, []int{0, 1})
			remote := &elsewhere{fakeStorage: newFake(t, 4005, []int{0}, []int{1})}
			remote.isAway.Store(true)
			log := &said{}
			o := sharedOptions(local, order, 0.8)
			o.Logger, o.QueueBytes, o.Epochs = slog.New(log), 2000, 200
			j, err := Submit(t.Context(), remote, o)
			require.NoError(t, err)
			var rows []int64
			away := func() int { return log.count(saysAllLocal) + log.count(saysAway) }
			phase, opened := 0, int64(0) // opened: their splits when they came again
			for mb, err := range j.MiniBatches(t.Context()) {
				require.NoError(t, err)
				rows = append(rows, mb.Values64...)
				switch {
				case phase == 0 && len(rows) > 500: // they come
					assert.Zero(t, remote.opened.Load())
					remote.isAway.Store(false)
					phase = 1
				case phase == 1 && log.count(saysBack) == 1: // they are used, and go away
					remote.isAway.Store(true)
					phase = 2
				case phase == 2 && away() >= 2: // that is noticed, and they come again
					opened = remote.opened.Load()
					remote.isAway.Store(false)
					phase = 3
				}
				if phase == 3 && len(rows)%epochRows == 0 && remote.opened.Load() > opened {
					break
				}
			}
			require.Equal(t, 3, phase)
			require.Greater(t, remote.opened.Load(), opened)
			for epoch := range slices.Chunk(rows, epochRows) {
				checkRows(t, local, 4005, epoch)
			}
			r, err := j.Report(t.Context())
			require.NoError(t, err)
			assert.Positive(t, r.Offload.RemoteRows)
			require.NoError(t, j.Close())
			back := log.count(saysBack)
			assert.Contains(t, []int{back, back + 1}, away(), "each once, away first")
			assert.Zero(t, remote.running.Load(), "streams not closed")
		})
	}
}

// failsLate is a remote storage of which one stream fails, when many streams wait for room in the input queue.
type failsLate struct {
	*fakeStorage
	waiters func() int
	failed  atomic.Int64 // streams that failed while both streams of the trainer's own CPUs waited
}

func (f *failsLate) Open(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
	stream, err := f.fakeStorage.Open(ctx, o)
	return failingStream{stream, f}, err
}

type failingStream struct {
	api.Stream
	storage *failsLate
}

func (s failingStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	for until := time.Now().Add(time.Minute); ctx.Err() == nil && time.Now().Before(until); {
		if s.storage.waiters() >= 2 {
			s.storage.failed.Add(1)
			return nil, errGone
		}
		time.Sleep(time.Millisecond)
	}
	return nil, errGone
}

// TestTheSplitThatIsDueComesFirst fails the split that the trainer waits for, in plan order, when every stream of the
// trainer's own CPUs waits with mini-batches of later splits for room in the input queue. One of them gives way.
func TestTheSplitThatIsDueComesFirst(t *testing.T) {
	local := newFake(t, 1005, []int{0, 1})
	remote := &failsLate{fakeStorage: newFake(t, 1005, []int{0, 1})}
	o := sharedOptions(local, dataset.Deterministic, 0.3)
	o.QueueBytes, o.Offload.RetryAfter = 200, time.Hour
	j, err := Submit(t.Context(), remote, o)
	require.NoError(t, err)
	remote.waiters = func() int {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.tally.current == nil {
			return 0
		}
		return j.tally.current.Statistics().Waiters
	}
	rows, numbers := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	assert.True(t, slices.IsSorted(numbers))
	require.NoError(t, j.Close())
	assert.Positive(t, remote.failed.Load())
	assert.Zero(t, local.alive.Load()+remote.alive.Load(), "mini-batches not released")
	assert.Zero(t, local.running.Load()+remote.running.Load(), "streams not closed")
}

// TestASplitThatADriveFailsIsMadeHere lets a drive fail in the middle of splits: every row comes exactly once, and the
// report counts splits that were begun again.
func TestASplitThatADriveFailsIsMadeHere(t *testing.T) {
	local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
	remote.failAt = map[uint64]error{}
	for n := range uint64(202) {
		if n%7 == 3 {
			remote.failAt[n] = errGone
		}
	}
	j, err := Submit(t.Context(), remote, sharedOptions(local, dataset.Fastest, 0.5))
	require.NoError(t, err)
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.Positive(t, r.Offload.Redone)
	require.NoError(t, j.Close())
	assert.Zero(t, local.alive.Load()+remote.alive.Load())
}

// TestADriveThatLiesIsNotBelieved lets drives yield mini-batches with other numbers than the job asked for: every row
// comes exactly once, and the drives' mini-batches are released.
func TestADriveThatLiesIsNotBelieved(t *testing.T) {
	local, remote := newFake(t, 1005, []int{0, 1}), newFake(t, 1005, []int{0, 1})
	j, err := Submit(t.Context(), liar{remote}, sharedOptions(local, dataset.Deterministic, 1))
	require.NoError(t, err)
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	require.NoError(t, j.Close())
	assert.Zero(t, remote.alive.Load())
}

// liar yields mini-batches whose numbers are 4 higher than the requested ones.
type liar struct{ *fakeStorage }

func (l liar) Open(ctx context.Context, o api.SplitRequest) (api.Stream, error) {
	o.Split.FirstFragment += 4
	return l.fakeStorage.Open(ctx, o)
}

// TestAnErrorHereEndsTheJob lets a drive and the trainer's own CPUs fail at the same mini-batch: the job ends with the
// error of the trainer's CPUs.
func TestAnErrorHereEndsTheJob(t *testing.T) {
	broken := errors.New("page 3 of column cat_0 is damaged")
	local, remote := newFake(t, 1005, []int{0}), newFake(t, 1005, []int{0})
	local.failAt = map[uint64]error{5: broken}
	remote.failAt = map[uint64]error{5: errGone}
	j, err := Submit(t.Context(), remote, sharedOptions(local, dataset.Fastest, 1))
	require.NoError(t, err)
	var got error
	for _, err := range j.MiniBatches(t.Context()) {
		got = err
	}
	require.ErrorIs(t, got, broken)
	require.NoError(t, j.Close())
}

// TestTheSidesMustHoldTheSameFiles refuses a partition that is another file elsewhere.
func TestTheSidesMustHoldTheSameFiles(t *testing.T) {
	local, remote := newFake(t, 1005, []int{0}), newFake(t, 1004, []int{0})
	_, err := Submit(t.Context(), remote, sharedOptions(local, dataset.Fastest, 0.5))
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "part-000")
	assert.Equal(t, 1, local.finished)
	// Partitions that the job does not have are left out.
	remote = newFake(t, 1005, []int{1, 0}, []int{2})
	j, err := Submit(t.Context(), remote, sharedOptions(local, dataset.Fastest, 1))
	require.NoError(t, err)
	rows, _ := take(t, j, -1)
	checkRows(t, local, 1005, rows)
	require.NoError(t, j.Close())
}

func TestOffloadOptionsAreChecked(t *testing.T) {
	local := newFake(t, 10, []int{0})
	half, more, none := 0.5, 1.01, math.NaN()
	for name, o := range map[string]Offload{
		"ratio without local":   {Ratio: &half},
		"record without local":  {Record: func(offload.Record) {}},
		"cut without local":     {Cut: offload.All},
		"ratio above 1":         {Local: local, Ratio: &more},
		"ratio is not a number": {Local: local, Ratio: &none},
		"policy":                {Local: local, Policy: offload.FastFlowCode + 1},
		"cut":                   {Local: local, Cut: offload.All + 1},
		"retry":                 {Local: local, RetryAfter: -1},
		"metrics":               {Local: local, Metrics: &offload.Metrics{Gthp: -1}},
	} {
		_, err := Submit(t.Context(), local, Options{Pipeline: spec(), RowsPerSecond: 1, Offload: o})
		require.ErrorIs(t, err, ErrOptions, name)
	}
	_, err := Submit(t.Context(), local, Options{Pipeline: spec(), AllDrives: true, Offload: Offload{Local: local}})
	require.ErrorIs(t, err, ErrOptions)
	j, err := Submit(t.Context(), local, Options{Pipeline: spec(), AllDrives: true,
		Offload: Offload{Local: local, Ratio: &half}})
	require.NoError(t, err)
	assert.Equal(t, 2, j.Allocation().Drives)
	require.NoError(t, j.Close())
}

// TestTheTunerDecidesWhileTheQueueHoldsTheEpoch: both sides have made all of an epoch, and the trainer still takes
// mini-batches from the input queue. The tuner goes on to observe what the trainer takes. The policy Paper decides
// once.
func TestTheTunerDecidesWhileTheQueueHoldsTheEpoch(t *testing.T) {
	for _, policy := range []offload.Policy{offload.Extended, offload.Paper} {
		const rows = 10_000
		local, remote := newFake(t, rows/2, []int{0, 1}), newFake(t, rows/2, []int{0, 1})
		var (
			mu  sync.Mutex
			log []offload.Inputs
		)
		o := sharedOptions(local, dataset.Fastest, -1)
		o.Offload.Policy = policy
		o.Offload.Metrics = &offload.Metrics{Gthp: 1e6, Lthp: 1e6}
		o.Offload.Record = func(r offload.Record) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, r.Inputs)
		}
		j, err := Submit(t.Context(), remote, o)
		require.NoError(t, err)
		taken := 0
		for b, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
			if taken == 0 && policy == offload.Extended {
				require.Eventually(t, func() bool { // all is made, and the tuner has decided since
					mu.Lock()
					defer mu.Unlock()
					return len(log) > 1 && log[len(log)-2].LocalRows == rows
				}, time.Minute, 10*time.Millisecond)
			}
			taken += b.Rows
		}
		assert.Equal(t, rows, taken)
		assert.Equal(t, uint64(rows), j.Queue().TakenRows)
		require.NoError(t, j.Close())
		if policy == offload.Paper {
			assert.Empty(t, log)
			continue
		}
		last := log[len(log)-1]
		assert.InDelta(t, rows, last.EpochRows, 0)
		assert.Less(t, last.TakenRows, float64(rows))
		assert.InDelta(t, rows, last.LocalRows+last.RemoteRows, 0)
	}
}

// TestTheRatioFollowsWhileTheJobRuns begins with everything local and a trainer that stalls: the tuner raises the ratio
// until the drives make splits, and its records replay.
func TestTheRatioFollowsWhileTheJobRuns(t *testing.T) {
	local, remote := newFake(t, 200_000, []int{0, 1}), newFake(t, 200_000, []int{0, 1})
	local.delay = 2 * time.Millisecond
	var log []offload.Record
	o := sharedOptions(local, dataset.Fastest, -1)
	o.QueueBytes = 1000
	o.Offload.Metrics = &offload.Metrics{Gthp: 100, Lthp: 100} // an old profile: the trainer was slower then
	o.Offload.Record = func(r offload.Record) { log = append(log, r) }
	j, err := Submit(t.Context(), remote, o)
	require.NoError(t, err)
	share := j.source.(*storageSource).splitSharing
	var ahead atomic.Int64 // a clock that runs faster than time
	share.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	for _, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		ahead.Add(int64(40 * time.Millisecond))
		if share.report().RemoteRows > 1000 {
			break
		}
	}
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.Positive(t, r.Offload.Retunings)
	assert.Positive(t, r.Offload.Ratio)
	assert.Zero(t, r.Offload.Decision.Ratio)
	require.NoError(t, j.Close())
	text, err := json.Marshal(log)
	require.NoError(t, err)
	var read []offload.Record
	require.NoError(t, json.Unmarshal(text, &read))
	require.NoError(t, offload.Replay(read))
}
