package splits

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// drive opens splits whose mini-batches have one row. Its fields are guarded by mu.
type drive struct {
	mu      sync.Mutex
	streams int // at once; 0: any number
	open    int
	opens   []int // From of each request
	made    []uint64
	alive   int          // mini-batches that were made and not released
	fail    func() error // asked before each mini-batch; may panic
	failed  []error      // what Options.Failed heard
}

func (d *drive) opener(_ context.Context, r api.SplitRequest) (api.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams > 0 && d.open == d.streams {
		return nil, api.ErrBusy
	}
	d.open++
	d.opens = append(d.opens, r.From)
	name := tensor.Name{Job: [32]byte(r.Job), Epoch: r.Epoch, Number: r.Split.FirstBatch + uint64(r.From)}
	return &source{d: d, name: name, end: r.Split.FirstBatch + uint64(r.Split.Fragments)}, nil
}

// source is one stream of a drive.
type source struct {
	d    *drive
	name tensor.Name
	end  uint64
}

var schema = &tensor.Schema{Label: true}

func (s *source) Next(context.Context) (*tensor.MiniBatch, error) {
	d := s.d
	d.mu.Lock()
	fail := d.fail
	d.mu.Unlock()
	if fail != nil {
		if err := fail(); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.name.Number == s.end {
		return nil, io.EOF
	}
	d.made = append(d.made, s.name.Number)
	d.alive++
	mb := tensor.New(schema, 1, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.alive--
	})
	mb.Name, mb.Label = s.name, []float32{float32(s.name.Number)}
	s.name.Number++
	return mb, nil
}

func (s *source) Close() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.open--
	return nil
}

func (d *drive) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// table makes a Table over a drive. When the test ends nothing may be left of it.
func table(t *testing.T, d *drive, change func(*Options)) *Table {
	o := Options{
		Open: d.opener, Log: slog.New(slog.DiscardHandler), Fence: func() uint64 { return 1 },
		Failed:    func(_ string, err error) { d.set(func() { d.failed = append(d.failed, err) }) },
		NodeBytes: 1 << 20, JobBytes: 1 << 20, Idle: time.Hour, Abandoned: time.Hour, BusyWait: time.Minute,
	}
	if change != nil {
		change(&o)
	}
	s := New(o)
	t.Cleanup(func() {
		s.Close()
		assert.Equal(t, tableState{}, s.state())
		assert.Zero(t, s.Holding())
		d.set(func() {
			assert.Zero(t, d.open, "streams are left open")
			assert.Zero(t, d.alive, "mini-batches are left behind")
		})
	})
	return s
}

// size is the bytes of a mini-batch.
const size = 4

// ask returns a request for a fragment of one of the drive's splits, of 16 fragments each. The last mini-batch of a
// split has rows of the next split too, so the first mini-batch of split p has the number 15 p.
func ask(p int, number, until uint64) Request {
	split := dataset.Split{FirstFragment: uint64(16 * p), Fragments: 16, FirstBatch: uint64(15 * p)}
	return Request{Key: Key{Drive: "d", Place: p}, Split: split, Number: number, Until: until}
}

// take gets a mini-batch and checks that it is the right one.
func take(t *testing.T, s *Table, q Request) *Response {
	t.Helper()
	p, err := s.Get(t.Context(), q, func() {})
	require.NoError(t, err)
	number := q.Number - q.Split.FirstFragment + q.Split.FirstBatch
	require.Equal(t, number, p.MiniBatch().Name.Number)
	require.Equal(t, []float32{float32(number)}, p.MiniBatch().Label)
	return p
}

// TestAStreamMakesTheNextFragment checks that a request fails if the drive makes another mini-batch than that of the
// fragment.
func TestAStreamMakesTheNextFragment(t *testing.T) {
	d := &drive{}
	s := table(t, d, func(o *Options) {
		o.Open = func(ctx context.Context, r api.SplitRequest) (api.Stream, error) {
			r.Split.FirstBatch++
			return d.opener(ctx, r)
		}
	})
	_, err := s.Get(t.Context(), ask(2, 34, 35), func() {})
	require.ErrorContains(t, err, "the drive made mini-batch 33 where 32 was next")
}

func eventually(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, what, time.Minute, time.Millisecond)
}

// TestAheadOfTheRequests checks that mini-batches are made ahead up to until and no further. A mini-batch that was
// written is gone; an unwritten mini-batch stays for the next request.
func TestAheadOfTheRequests(t *testing.T) {
	d := &drive{}
	s := table(t, d, nil)
	p := take(t, s, ask(0, 0, 5))
	eventually(t, func() bool { return s.Holding() == Held{Fragments: 5, Bytes: 5 * size} })
	s.Done(p, true)
	assert.Equal(t, Held{Fragments: 4, Bytes: 4 * size}, s.Holding())
	p = take(t, s, ask(0, 1, 5))
	s.Done(p, false)
	p = take(t, s, ask(0, 1, 5))
	s.Done(p, true)
	d.set(func() { assert.Equal(t, []uint64{0, 1, 2, 3, 4}, d.made) })
	assert.Equal(t, 1, s.Running("d"))
	assert.Zero(t, s.Running("e"))
	for n := uint64(2); n < 16; n++ {
		s.Done(take(t, s, ask(0, n, 16)), true)
	}
	eventually(t, func() bool { return s.Running("") == 0 })
	s.Done(take(t, s, ask(0, 3, 4)), true) // again, all of it was taken
	d.set(func() { assert.Equal(t, []int{0, 3}, d.opens) })
}

// TestTwoWhoWaitForOne checks that two requests that wait for a mini-batch both get it.
func TestTwoWhoWaitForOne(t *testing.T) {
	gate := make(chan struct{})
	d := &drive{fail: func() error { <-gate; return nil }}
	s := table(t, d, nil)
	got := make(chan *Response, 2)
	for range 2 {
		go func() {
			p, err := s.Get(context.Background(), ask(0, 0, 1), func() {})
			assert.NoError(t, err)
			got <- p
		}()
	}
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		r := s.open[ask(0, 0, 1).Key]
		return r != nil && len(r.waiting[0]) == 2
	})
	close(gate)
	a, b := <-got, <-got
	require.Same(t, a.MiniBatch(), b.MiniBatch())
	s.Done(a, true)
	d.set(func() { assert.Equal(t, 1, d.alive) })
	s.Done(b, true)
	d.set(func() { assert.Zero(t, d.alive) })
}

// TestNoMoreThanThereIsRoomFor checks that past a bound only mini-batches are made that requests wait for.
func TestNoMoreThanThereIsRoomFor(t *testing.T) {
	for name, bound := range map[string]func(*Options){
		"node": func(o *Options) { o.NodeBytes = 3 * size },
		"job":  func(o *Options) { o.JobBytes = 3 * size },
	} {
		t.Run(name, func(t *testing.T) {
			d := &drive{}
			s := table(t, d, bound)
			first := take(t, s, ask(0, 0, 16))
			eventually(t, func() bool { return s.Holding().Fragments == 3 })
			p := take(t, s, ask(0, 6, 16)) // past what there is room for, and so is what lies before it
			assert.LessOrEqual(t, s.Holding().Fragments, int64(7))
			s.Done(p, true)
			s.Done(first, true)
			for n := uint64(1); n < 6; n++ {
				s.Done(take(t, s, ask(0, n, 16)), true)
			}
		})
	}
}

// TestAClientThatLeaves checks that a mini-batch whose request was withdrawn is kept for the next request.
func TestAClientThatLeaves(t *testing.T) {
	gate := make(chan struct{})
	d := &drive{fail: func() error { <-gate; return nil }}
	s := table(t, d, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, ask(0, 0, 1), func() {})
	require.ErrorIs(t, err, context.Canceled)
	close(gate)
	s.Done(take(t, s, ask(0, 0, 1)), true)
}

// TestAFailureIsTold checks that waiting requests and Options.Failed get the error, and that the next request tries
// again.
func TestAFailureIsTold(t *testing.T) {
	broken := errors.New("the wire broke")
	for name, c := range map[string]struct {
		fail func() error
		want error
	}{
		"an error": {func() error { return broken }, broken},
		"a panic":  {func() error { panic("a bug") }, processor.ErrPanic},
		"too soon": {func() error { return io.EOF }, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			d := &drive{fail: c.fail}
			s := table(t, d, nil)
			_, err := s.Get(t.Context(), ask(0, 0, 4), func() {})
			require.ErrorIs(t, err, c.want)
			eventually(t, func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return len(d.failed) > 0
			})
			d.set(func() {
				assert.ErrorIs(t, d.failed[0], c.want)
				d.fail = nil
			})
			s.Done(take(t, s, ask(0, 0, 4)), true)
		})
	}
}

// TestAStreamIsGivenUp checks that a split that has nothing to make closes its stream when another split waits for one.
// A split that has work keeps its stream.
func TestAStreamIsGivenUp(t *testing.T) {
	d := &drive{streams: 1}
	s := table(t, d, func(o *Options) { o.BusyWait = 20 * time.Millisecond })
	s.Done(take(t, s, ask(0, 0, 2)), true)
	eventually(t, func() bool {
		p, err := s.Get(t.Context(), ask(1, 16, 18), func() {})
		if err != nil {
			require.ErrorIs(t, err, api.ErrBusy) // the first was not parked yet
			return false
		}
		s.Done(p, true)
		return true
	})
	s.Done(take(t, s, ask(0, 1, 2)), true) // it was made before the stream was closed
	d.set(func() { assert.Empty(t, d.failed, "to be busy is not a failure") })
}

// TestFinish checks the order: responses are cut off and waiting requests refused, then f runs, then the job may come
// back.
func TestFinish(t *testing.T) {
	d := &drive{}
	s := table(t, d, nil)
	cut := make(chan struct{})
	p, err := s.Get(t.Context(), ask(0, 0, 4), func() { close(cut) })
	require.NoError(t, err)
	finished := make(chan error, 1)
	failure := errors.New("memory could not be given back")
	go func() {
		finished <- s.Finish(dataset.Digest{}, func() error {
			d.set(func() {
				assert.Zero(t, d.open)
				assert.Zero(t, d.alive)
			})
			_, err := s.Get(context.Background(), ask(0, 1, 4), func() {})
			assert.ErrorIs(t, err, api.ErrUnknownJob)
			return failure
		})
	}()
	<-cut
	assert.True(t, s.Stopped(p))
	s.Done(p, false)
	require.ErrorIs(t, <-finished, failure)
	s.Done(take(t, s, ask(0, 0, 4)), true)
}

// TestRefuseDrive checks that a drive's splits are refused with the reason, and end. While it drains, open splits go
// on.
func TestRefuseDrive(t *testing.T) {
	d := &drive{}
	s := table(t, d, nil)
	s.Done(take(t, s, ask(0, 0, 4)), true)
	s.RefuseDrive("d", ErrDraining)
	s.Done(take(t, s, ask(0, 1, 4)), true)
	_, err := s.Get(t.Context(), ask(1, 16, 17), func() {})
	require.ErrorIs(t, err, ErrDraining)
	lost := errors.New("it is gone")
	s.RefuseDrive("d", lost)
	assert.Zero(t, s.Running("d"))
	_, err = s.Get(t.Context(), ask(0, 2, 4), func() {})
	require.ErrorIs(t, err, lost)
	s.RefuseDrive("d", nil)
	s.Done(take(t, s, ask(0, 2, 4)), true)
}

// TestDrain checks that new splits are refused, and that Settle waits for the open ones.
func TestDrain(t *testing.T) {
	d := &drive{}
	s := table(t, d, nil)
	p := take(t, s, ask(0, 0, 1))
	s.Drain(true)
	_, err := s.Get(t.Context(), ask(1, 16, 17), func() {})
	require.ErrorIs(t, err, ErrDraining)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Settle(ctx), context.Canceled)
	require.NoError(t, s.SettleDrive(t.Context(), "another"))
	s.Done(p, true)
	settled := make(chan error, 1)
	go func() { settled <- s.Settle(context.Background()) }()
	for n := uint64(1); n < 16; n++ {
		s.Done(take(t, s, ask(0, n, 16)), true)
	}
	require.NoError(t, <-settled)
	s.Drain(false)
	s.Done(take(t, s, ask(1, 16, 17)), true)
}

// TestSweep checks that a split that no client requests is closed: soon if every connection that requested it is
// closed, later otherwise, and not while a response is being written.
func TestSweep(t *testing.T) {
	d := &drive{}
	s := table(t, d, func(o *Options) { o.Abandoned = time.Minute })
	peer := &Peer{}
	q := ask(0, 0, 4)
	q.Peer = peer
	p := take(t, s, q)
	s.Leave(&Peer{}) // another's
	s.Sweep(time.Now().Add(2 * time.Hour))
	assert.Equal(t, 1, s.Running(""), "it is being written")
	s.Done(p, true)
	s.Sweep(time.Now().Add(2 * time.Minute))
	assert.Equal(t, 1, s.Running(""), "its client may think")
	s.Leave(peer)
	s.Sweep(time.Now().Add(30 * time.Second))
	assert.Equal(t, 1, s.Running(""))
	s.Sweep(time.Now().Add(2 * time.Minute))
	assert.Zero(t, s.Running(""))
	s.Done(take(t, s, q), true) // of a connection that is gone
	s.Sweep(time.Now().Add(2 * time.Minute))
	assert.Zero(t, s.Running(""))
}

func TestStateIsInOrder(t *testing.T) {
	d := &drive{}
	s := table(t, d, nil)
	for _, p := range []int{2, 0, 1} {
		s.Done(take(t, s, ask(p, uint64(16*p), uint64(16*p+1))), true)
	}
	eventually(t, func() bool {
		st := s.state()
		require.Len(t, st.Splits, 3)
		for i, x := range st.Splits {
			require.Equal(t, i, x.Place)
			if !x.Streaming || x.Next != uint64(16*i+1) || x.Ready+x.Asked+x.Lent > 0 {
				return false
			}
		}
		return st.Writing == 0 && st.Waiting == 0
	})
}
