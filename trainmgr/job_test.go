package trainmgr

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/tensor"
)

// fakeStorage makes mini-batches from their names. Its drives can be slow, and fail at a mini-batch.
type fakeStorage struct {
	reports []api.DriveReport
	data    *api.Dataset
	p       float64
	delay   time.Duration
	failAt  map[uint64]error // by number
	opened  atomic.Int64
	running atomic.Int64
	most    atomic.Int64

	mu       sync.Mutex
	jobs     map[dataset.Digest]*api.Job
	plans    map[uint64]*dataset.Plan // by epoch
	alive    atomic.Int64             // mini-batches not released
	finished int
}

// newFake makes drives that each hold some of the partitions, each of rows rows.
func newFake(t require.TestingT, rows int64, holds ...[]int) *fakeStorage {
	n := 0
	for _, h := range holds {
		for _, p := range h {
			n = max(n, p+1)
		}
	}
	return newFakeOf(t, slices.Repeat([]int64{rows}, n), holds...)
}

// newFakeOf makes drives that each hold some of the partitions, whose rows are given.
func newFakeOf(t require.TestingT, rows []int64, holds ...[]int) *fakeStorage {
	var parts []dataset.Partition
	for i, n := range rows {
		parts = append(parts, dataset.Partition{Name: fmt.Sprintf("part-%03d", i), Bytes: n, Rows: n,
			RowGroups: []int64{n}})
	}
	m, err := dataset.NewManifest(parts)
	require.NoError(t, err)
	f := &fakeStorage{p: 1000, jobs: map[dataset.Digest]*api.Job{}, plans: map[uint64]*dataset.Plan{},
		data: &api.Dataset{Manifest: m, Columns: columntypes.TextSchema(false)}}
	for i, h := range holds {
		f.data.Drives = append(f.data.Drives, api.Drive{Name: fmt.Sprint("drive", i), Partitions: h, Compute: true,
			Threads: 1, Streams: 2})
	}
	return f
}

func spec() *pipeline.Spec {
	s, err := pipeline.Parse([]byte("name: t\nbatch: 10\nlabel: {column: label}\n" +
		"sparse: [{columns: [cat_0], ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 100}]}]\n"))
	if err != nil {
		panic(err)
	}
	return s
}

func (f *fakeStorage) Dataset(context.Context) (*api.Dataset, error) { return f.data, nil }

func (f *fakeStorage) Prepare(_ context.Context, job *api.Job) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[job.Digest] = job
	return nil
}

func (f *fakeStorage) Measure(context.Context, dataset.Digest, string) (api.Measurement, error) {
	return api.Measurement{RowsPerSecond: f.p}, nil
}

func (f *fakeStorage) Open(_ context.Context, o api.SplitRequest) (api.Stream, error) {
	f.opened.Add(1)
	f.most.Store(max(f.most.Load(), f.running.Add(1)))
	return &fakeStream{f: f, o: o, next: o.From}, nil
}

func (f *fakeStorage) Report(context.Context, dataset.Digest) ([]api.DriveReport, error) {
	return f.reports, nil
}

func (f *fakeStorage) Finish(context.Context, dataset.Digest) error {
	f.finished++
	return nil
}

// planOf returns the plan that a split is of.
func (f *fakeStorage) planOf(o api.SplitRequest) (*dataset.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.plans[o.Epoch]; p != nil {
		return p, nil
	}
	job := f.jobs[o.Job]
	options, manifest := job.Plan, job.Manifest
	if options.Epoch = o.Epoch; manifest == nil {
		manifest = f.data.Manifest
	}
	p, err := dataset.NewPlan(manifest, options)
	f.plans[o.Epoch] = p
	return p, err
}

type fakeStream struct {
	f    *fakeStorage
	o    api.SplitRequest
	next int
}

func (s *fakeStream) Next(ctx context.Context) (*tensor.MiniBatch, error) {
	if s.next == s.o.Split.Fragments {
		return nil, io.EOF
	}
	number := s.o.Split.FirstFragment + uint64(s.next)
	if err := s.f.failAt[number]; err != nil {
		return nil, err
	}
	if s.f.delay > 0 {
		select {
		case <-time.After(s.f.delay):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	plan, err := s.f.planOf(s.o)
	if err != nil {
		return nil, err
	}
	cut, err := plan.Fragment(number)
	if err != nil {
		return nil, err
	}
	var place tensor.Fragment
	place.Index, place.Of = plan.Place(cut)
	s.next++
	s.f.alive.Add(1)
	mb := tensor.New(&tensor.Schema{Label: true, Keys: []tensor.Key{{Name: "cat_0", NumEmbeddings: 100}},
		IDs: tensor.Int64}, cut.Rows, func() { s.f.alive.Add(-1) })
	mb.Name = tensor.Name{Job: [32]byte(s.o.Job), Epoch: s.o.Epoch, Number: cut.MiniBatch}
	mb.Fragment = place
	mb.Label = make([]float32, cut.Rows)
	mb.Values64 = make([]int64, cut.Rows)
	for i := range mb.Values64 {
		mb.Values64[i] = int64(cut.Partition)*1_000_000 + cut.First + int64(i)
	}
	return mb, nil
}

func (s *fakeStream) Close() error {
	s.f.running.Add(-1)
	return nil
}

// take collects the rows and numbers of at most n mini-batches (all if n < 0), leaving the last unacknowledged when it
// stops early.
func take(t require.TestingT, j *Job, n int) (rows []int64, numbers []uint64) {
	for mb, err := range j.MiniBatches(context.Background()) {
		require.NoError(t, err)
		if n >= 0 && len(numbers) == n {
			break
		}
		rows = append(rows, mb.Values64...)
		numbers = append(numbers, mb.Name.Number)
	}
	return rows, numbers
}

func allRows(f *fakeStorage, rows int64) map[int64]bool {
	want := map[int64]bool{}
	for p := range f.data.Manifest.Partitions {
		for r := range rows {
			want[int64(p)*1_000_000+r] = true
		}
	}
	return want
}

func TestEveryRowOnceInBothOrders(t *testing.T) {
	for _, order := range []dataset.Order{dataset.Fastest, dataset.Deterministic} {
		t.Run(order.String(), func(t *testing.T) {
			f := newFake(t, 1005, []int{0, 1}, []int{2}, []int{3, 0})
			j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Order: order, QueueBytes: 500, SplitBatches: 4,
				RowsPerSecond: 1500})
			require.NoError(t, err)
			assert.Equal(t, 2, j.Allocation().Drives)
			rows, numbers := take(t, j, -1)
			want := allRows(f, 1005)
			for _, r := range rows {
				require.True(t, want[r], "row %d came twice or from nowhere", r)
				delete(want, r)
			}
			require.Empty(t, want)
			if order == dataset.Deterministic {
				for i, n := range numbers {
					require.EqualValues(t, i, n)
				}
			}
			require.True(t, j.Checkpoint().Mark == j.Plan().MiniBatches())
			r, err := j.Report(t.Context())
			require.NoError(t, err)
			assert.EqualValues(t, 4*1005, r.Rows)
			assert.LessOrEqual(t, r.DrivesBusiest, 2)
			assert.LessOrEqual(t, r.QueueMaxBytes, int64(500+10*12))
			require.NoError(t, j.Close())
			assert.Zero(t, f.alive.Load(), "mini-batches not released")
			assert.Zero(t, f.running.Load(), "streams not closed")
		})
	}
}

func TestDeterministicOrderIsTheSameWithAnyDrives(t *testing.T) {
	var first []int64
	for _, holds := range [][][]int{{{0, 1, 2}}, {{0}, {1}, {2}}, {{2, 1}, {0, 1}}} {
		f := newFake(t, 333, holds...)
		j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Order: dataset.Deterministic, Seed: 7,
			SplitBatches: 3})
		require.NoError(t, err)
		rows, _ := take(t, j, -1)
		if first == nil {
			first = rows
		}
		require.Equal(t, first, rows)
	}
}

func TestResumeDeliversWhatWasNotAcknowledged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		order := rapid.SampledFrom([]dataset.Order{dataset.Fastest, dataset.Deterministic}).Draw(rt, "order")
		f := newFake(rt, int64(rapid.IntRange(1, 400).Draw(rt, "rows")), []int{0, 1}, []int{2})
		o := Options{Pipeline: spec(), Order: order, SplitBatches: rapid.IntRange(1, 6).Draw(rt, "split"),
			QueueBytes: 300}
		seen := map[int64]int{}
		for range 50 {
			j, err := Submit(context.Background(), f, o)
			require.NoError(rt, err)
			rows, _ := take(rt, j, rapid.IntRange(1, 30).Draw(rt, "take"))
			for _, r := range rows {
				seen[r]++
			}
			token := j.Checkpoint()
			require.NoError(rt, j.Close())
			if token.Mark == j.Plan().MiniBatches() {
				break
			}
			text, err := token.MarshalText()
			require.NoError(rt, err)
			o.Resume = new(dataset.Token)
			require.NoError(rt, o.Resume.UnmarshalText(text))
		}
		require.Len(rt, seen, 3*int(f.data.Manifest.Partitions[0].Rows))
		for r, n := range seen {
			require.Equal(rt, 1, n, "row %d was delivered %d times", r, n)
		}
		require.Zero(rt, f.alive.Load())
	})
}

func TestResumeRefusesATokenOfAnotherJob(t *testing.T) {
	f := newFake(t, 100, []int{0})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec()})
	require.NoError(t, err)
	token := j.Checkpoint()
	_, err = Submit(t.Context(), f, Options{Pipeline: spec(), Seed: 1, Resume: &token})
	require.ErrorIs(t, err, dataset.ErrOtherJob)
}

// TestResumeRefusesAFileThatWasWrittenSince checks a token with the stamps of its files. A token alone is compared
// with the manifest.
func TestResumeRefusesAFileThatWasWrittenSince(t *testing.T) {
	f := newFake(t, 100, []int{0})
	name := f.data.Manifest.Partitions[0].Name
	f.data.Stamps = map[string]api.Stamp{name: {Place: "m:/" + name, State: "2"}}
	j, err := Submit(t.Context(), f, Options{Pipeline: spec()})
	require.NoError(t, err)
	token := j.Checkpoint()
	for _, c := range []struct {
		stamps  map[string]api.Stamp
		changed bool
	}{
		{nil, false}, {f.data.Stamps, false}, {map[string]api.Stamp{name: {Place: "m:/" + name, State: "1"}}, true},
		{map[string]api.Stamp{name: {Place: "n:/" + name, State: "1"}}, false},
	} {
		_, err = Submit(t.Context(), f, Options{Pipeline: spec(), Resume: &token, ResumeStamps: c.stamps})
		if !c.changed {
			require.NoError(t, err)
			continue
		}
		var since *api.ChangedSinceError
		require.ErrorAs(t, err, &since)
		assert.Equal(t, name, since.Partition)
		assert.ErrorContains(t, err, "resume by the token alone")
	}
}

func TestEpochsDifferAndAllArrive(t *testing.T) {
	f := newFake(t, 200, []int{0}, []int{1})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Epochs: 3, Order: dataset.Deterministic,
		SplitBatches: 2})
	require.NoError(t, err)
	rows, _ := take(t, j, -1)
	require.Len(t, rows, 3*400)
	assert.NotEqual(t, rows[:400], rows[400:800], "another epoch, another order of splits")
	assert.ElementsMatch(t, rows[:400], rows[800:])
}

func TestAFailureEndsTheJobAndNamesItsPlace(t *testing.T) {
	boom := errors.New("row group 3, column cat_7, page 2: checksum")
	f := newFake(t, 500, []int{0}, []int{1})
	f.failAt = map[uint64]error{20: boom}
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Shuffle: dataset.ShuffleNone,
		Order: dataset.Deterministic})
	require.NoError(t, err)
	var last error
	n := 0
	for mb, err := range j.MiniBatches(t.Context()) {
		if last = err; err == nil {
			require.EqualValues(t, n, mb.Name.Number)
			n++
		}
	}
	require.ErrorIs(t, last, boom)
	assert.ErrorContains(t, last, "drive drive0: split 1 (partition part-000, rows 160 to 319)")
	assert.LessOrEqual(t, n, 20, "nothing behind the failure is delivered in plan order")
	require.NoError(t, j.Close())
	assert.Zero(t, f.alive.Load())
}

func TestAStoppedTrainerStopsTheDrives(t *testing.T) {
	f := newFake(t, 100_000, []int{0}, []int{1})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), QueueBytes: 1200})
	require.NoError(t, err)
	for range j.MiniBatches(t.Context()) {
		require.Eventually(t, func() bool { return f.alive.Load() >= 10 }, time.Minute, time.Millisecond)
		time.Sleep(20 * time.Millisecond) // a longer pause would only give them more time to make too many
		// 1,200 bytes of queue hold 10 mini-batches of 120; each of four workers may hold one more, the trainer has
		// one.
		assert.LessOrEqual(t, f.alive.Load(), int64(10+4+1))
		break
	}
	assert.Zero(t, f.alive.Load())
}

func TestNoGoroutineOutlivesTheIteration(t *testing.T) {
	leaks.Check(t)
	f := newFake(t, 5000, []int{0}, []int{1})
	f.delay = 50 * time.Microsecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	j, err := Submit(ctx, f, Options{Pipeline: spec()})
	require.NoError(t, err)
	n := 0
	var last error
	for _, err := range j.MiniBatches(ctx) {
		if n++; n == 5 {
			cancel()
		}
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
}

func TestOneIterationAtATimeAndNoneAfterClose(t *testing.T) {
	f := newFake(t, 100, []int{0})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec()})
	require.NoError(t, err)
	for range j.MiniBatches(t.Context()) {
		for _, err := range j.MiniBatches(t.Context()) {
			require.ErrorIs(t, err, ErrOptions)
		}
		require.ErrorIs(t, j.Close(), ErrOptions)
		break
	}
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
	assert.Equal(t, 1, f.finished)
	for _, err := range j.MiniBatches(t.Context()) {
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestAcknowledgeWhenTold(t *testing.T) {
	f := newFake(t, 100, []int{0})
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Order: dataset.Deterministic})
	require.NoError(t, err)
	for mb := range j.MiniBatches(t.Context()) {
		require.Zero(t, j.Checkpoint().Mark)
		require.NoError(t, j.Acknowledge(mb.Name))
		require.EqualValues(t, 1, j.Checkpoint().Mark)
		require.ErrorIs(t, j.Acknowledge(tensor.Name{}), dataset.ErrOtherJob)
		break
	}
	require.EqualValues(t, 1, j.Checkpoint().Mark)
}

// model stands for a trainer's state.
type model struct {
	weights []byte
	steps   int
}

func (m *model) hash() [32]byte { return sha256.Sum256(append([]byte{byte(m.steps)}, m.weights...)) }

func (m *model) step(context.Context, *tensor.MiniBatch) error {
	m.weights[m.steps%len(m.weights)]++
	m.steps++
	return nil
}

func TestMeasuringTDoesTheModelNoHarm(t *testing.T) {
	fail := errors.New("out of memory")
	for _, c := range []struct {
		name string
		err  error
	}{{"steps succeed", nil}, {"a step fails", fail}} {
		t.Run(c.name, func(t *testing.T) {
			m := &model{weights: make([]byte, 16)}
			before := m.hash()
			step := Step{
				Run: func(ctx context.Context, mb *tensor.MiniBatch) error {
					err := m.step(ctx, mb)
					if m.steps > 3 && c.err != nil {
						return c.err
					}
					return err
				},
				Snapshot: func() (func() error, error) {
					saved := model{weights: append([]byte(nil), m.weights...), steps: m.steps}
					return func() error { *m = saved; return nil }, nil
				},
			}
			mb, err := Dummy(&tensor.Schema{Label: true}, 8, nil)
			require.NoError(t, err)
			_, err = Throughput(t.Context(), mb, ThroughputOptions{Time: time.Millisecond}, step)
			require.ErrorIs(t, err, c.err)
			assert.Equal(t, before, m.hash())
		})
	}
}

func TestTIsTheSlowestRanks(t *testing.T) {
	mb, err := Dummy(&tensor.Schema{Label: true}, 1000, nil)
	require.NoError(t, err)
	wait := func(d time.Duration) Step {
		return Step{Run: func(context.Context, *tensor.MiniBatch) error { time.Sleep(d); return nil }}
	}
	got, err := Throughput(t.Context(), mb, ThroughputOptions{Time: 20 * time.Millisecond}, wait(time.Millisecond),
		wait(10*time.Millisecond))
	require.NoError(t, err)
	assert.Less(t, got, 1000/0.010+1, "1,000 rows in at least 10 ms")
	_, err = Throughput(t.Context(), mb, ThroughputOptions{})
	require.ErrorIs(t, err, ErrOptions)
}

func TestDummyHasTheSchemasShape(t *testing.T) {
	s := &tensor.Schema{Label: true, Dense: []string{"a", "b"}, Keys: []tensor.Key{{Name: "x", NumEmbeddings: 3,
		List: true}, {Name: "y"}}, IDs: tensor.Int32}
	mb, err := Dummy(s, 5, map[string]float64{"x": 2.6})
	require.NoError(t, err)
	require.NoError(t, mb.Validate())
	assert.Len(t, mb.Values32, 5*3+5)
	for _, v := range mb.Values32 {
		assert.Less(t, v, int32(3))
	}
}

// TestStepWithoutRun: a step that cannot be run is a wrong option, said before anything is opened.
func TestStepWithoutRun(t *testing.T) {
	for _, ranks := range [][]Step{{{}}, {{Run: func(context.Context, *tensor.MiniBatch) error { return nil }}, {}}} {
		_, err := Submit(context.Background(), nil, Options{Pipeline: &pipeline.Spec{}, Ranks: ranks})
		require.ErrorIs(t, err, ErrOptions)
		require.ErrorContains(t, err, "has no Run: give the function that trains one step")
		_, err = Throughput(context.Background(), nil, ThroughputOptions{}, ranks...)
		require.ErrorIs(t, err, ErrOptions)
		require.ErrorContains(t, err, "has no Run: give the function that trains one step")
	}
}
