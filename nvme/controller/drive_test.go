package controller

import (
	"bytes"
	"context"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/cs"
)

// memFlash is flash in memory. Its lock makes it as safe as the interface asks.
type memFlash struct {
	mu       sync.Mutex
	data     []byte
	syncs    int
	readOnly bool
}

func newFlash(n int) *memFlash { return &memFlash{data: make([]byte, n)} }

func (f *memFlash) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copy(p, f.data[off:]), nil
}

func (f *memFlash) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copy(f.data[off:], p), nil
}

func (f *memFlash) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	return nil
}

func (f *memFlash) Size() int64 { return int64(len(f.data)) }

func (f *memFlash) Discard(off, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.data[off : off+n])
	return nil
}

func (f *memFlash) ReadOnly() bool { return f.readOnly }

func (f *memFlash) synced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// stubCompute writes the sum of input, arguments and place over the output (the second to last range), and the result
// is a hash of all. Where it is held, executions wait until ctx ends or the hold is closed.
type stubCompute struct {
	slm     []byte
	slots   stubPrograms
	started chan struct{} // gets a value when an execution begins; nil: no test receives
	hold    chan struct{} // nil: executions do not wait
	// clearing is called before memory is cleared; nil: nothing is.
	clearing func()
}

func newStub(slm int) *stubCompute {
	s := &stubCompute{slm: make([]byte, slm)}
	s.slots.list = []cs.Program{{Occupancy: cs.SlotDevice, Type: cs.ProgramTypeImage, PUID: 1, Bytes: 100},
		{}, {}, {}}
	for region := range s.slots.active {
		s.slots.active[region] = 1
	}
	return s
}

func (s *stubCompute) SLM() []byte               { return s.slm }
func (s *stubCompute) BackendName() string       { return "functional" }
func (s *stubCompute) Programs() programs.Device { return &s.slots }

func (s *stubCompute) ClearSLM(b []byte) {
	if s.clearing != nil {
		s.clearing()
	}
	clear(b)
}

func (s *stubCompute) Log() []byte {
	l := cs.Log{Threads: 1, Rows: 7, Units: []cs.UnitCounter{{Name: "stub", Rows: 7}}}
	return l.Marshal()
}

func (s *stubCompute) Execute(ctx context.Context, x Execution) (uint64, nvme.Status) {
	ranges, args := x.Ranges, x.Args
	if s.started != nil {
		s.started <- struct{}{}
	}
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return 0, nvme.CommandAborted
		}
	}
	h := fnv.New64a()
	h.Write(args)
	if len(ranges) >= 2 {
		in, out := ranges[0], ranges[len(ranges)-2]
		for i := range out.Len {
			b := byte(i)
			if in.Len > 0 {
				b += s.slm[in.Addr+i%in.Len]
			}
			if len(args) > 0 {
				b += args[i%uint64(len(args))]
			}
			s.slm[out.Addr+i] = b
		}
	}
	for _, r := range ranges {
		h.Write(s.slm[r.Addr : r.Addr+r.Len])
	}
	return h.Sum64(), nvme.Success
}

type stubPrograms struct {
	regions int   // 0: one
	weights []int // nil: equal

	mu     sync.Mutex
	list   []cs.Program
	images map[int]string
	active [cs.MaxRegions]int // by region, the slot + 1; 0: none
}

func (p *stubPrograms) Limits() programs.Limits {
	return programs.Limits{Slots: 4, MaxBytes: 2 << 20, Regions: p.regions, Weights: p.weights}
}

func (p *stubPrograms) List() []cs.Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Clone(p.list)
	for i := range list {
		list[i].Active = slices.Contains(p.active[:], i+1)
	}
	return list
}

func (p *stubPrograms) Active(region int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active[region] - 1
}

func (p *stubPrograms) Load(slot int, puid uint64, image []byte) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(image) > 3 && string(image[:3]) == "bad" {
		return nvme.InvalidProgramData
	}
	if p.images == nil {
		p.images = map[int]string{}
	}
	p.images[slot] = string(image)
	p.list[slot] = cs.Program{Occupancy: cs.SlotDownloaded, Type: cs.ProgramTypeImage, PUID: puid,
		Bytes: uint64(len(image))}
	return nvme.Success
}

func (p *stubPrograms) Unload(slot int) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list[slot] = cs.Program{}
	return nvme.Success
}

func (p *stubPrograms) Activate(_ context.Context, region, slot int) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active[region] = slot + 1
	return nvme.Success
}

func (p *stubPrograms) Deactivate(region int) nvme.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active[region] = 0
	return nvme.Success
}

const (
	testFlash = 4 << 20
	testSLM   = 1 << 20
)

// drive is a computing drive of 4 MiB of flash in 512-byte blocks and 1 MiB of memory.
type drive struct {
	*Subsystem
	t       testing.TB
	flash   *memFlash
	compute *stubCompute
}

func newDrive(t testing.TB, change ...func(*Options)) *drive {
	t.Helper()
	d := &drive{t: t, flash: newFlash(testFlash), compute: newStub(testSLM)}
	opt := Options{Flash: d.flash, Compute: d.compute}
	for _, f := range change {
		f(&opt)
	}
	s, err := New(opt)
	require.NoError(t, err)
	d.Subsystem = s
	return d
}

// connect begins an association in process, that the end of the test ends.
func (d *drive) connect() nvme.Conn {
	d.t.Helper()
	c, err := Local(d.Subsystem, HostID{NQN: "nqn.2014-08.org.nvmexpress:uuid:test"})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = c.Close() })
	return c
}

// enabled is a controller with one I/O queue, for tests that play the transport.
func (d *drive) enabled() *Controller {
	d.t.Helper()
	c, err := d.Connect(HostID{NQN: "test", ID: [16]byte{1, 2, 3}}, 0)
	require.NoError(d.t, err)
	require.True(d.t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
	require.True(d.t, c.OpenQueue(1, MaxDepth).OK())
	d.t.Cleanup(func() { _ = c.Close() })
	return c
}

// do sends an admin command and requires its status.
func admin(t testing.TB, c nvme.Conn, cmd nvme.Command, data []byte, want nvme.Status) nvme.Completion {
	t.Helper()
	out, err := c.Admin(context.Background(), &cmd, data)
	requireStatus(t, want, out, err)
	return out
}

// io sends an I/O command and requires its status.
func io(t testing.TB, c nvme.Conn, cmd nvme.Command, data []byte, want nvme.Status) nvme.Completion {
	t.Helper()
	out, err := c.IO(context.Background(), &cmd, data)
	requireStatus(t, want, out, err)
	return out
}

func requireStatus(t testing.TB, want nvme.Status, out nvme.Completion, err error) {
	t.Helper()
	if want.OK() {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, want)
	require.Equal(t, want.Final().DNR(), out.Status().DNR(), "do not retry of %s", want)
}

// reserve reserves n bytes of memory and returns their address.
func reserve(t testing.TB, c nvme.Conn, n uint64) uint64 {
	t.Helper()
	out := admin(t, c, cs.SLMReserve(cs.AnyAddress, n), nil, nvme.Success)
	return out.Result()
}

// pattern is n bytes that differ from place to place.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) + seed
	}
	return b
}

// accessesEnd is a log that fails the test if an association ends before the access of a command to memory does.
type accessesEnd struct{ t testing.TB }

func (l accessesEnd) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("an association ended before its commands did")) {
		l.t.Error(string(line))
	}
	return len(line), nil
}

func withAccessesThatEnd(t testing.TB) func(*Options) {
	return func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(accessesEnd{t}, nil)) }
}
