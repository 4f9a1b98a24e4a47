package faults

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
)

const (
	testNQN   = "nqn.2024-01.io.millrace:faulty"
	blockSize = 512
)

// memory is flash in memory.
type memory struct {
	mu    sync.RWMutex
	data  []byte
	syncs int
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return copy(p, m.data[off:]), nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copy(m.data[off:], p), nil
}

func (m *memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.syncs++
	return nil
}

func (m *memory) Size() int64    { return int64(len(m.data)) }
func (m *memory) ReadOnly() bool { return false }
func (m *memory) Discard(off, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.data[off : off+n])
	return nil
}

// drive is a target with one drive that a script makes go wrong.
type drive struct {
	t       *testing.T
	in      *Injector
	flash   *memory
	sub     *controller.Subsystem
	address string
}

// serve runs a drive by a script; each block of it holds its number.
func serve(t *testing.T, script string) *drive {
	t.Helper()
	s, err := Parse([]byte(script))
	require.NoError(t, err)
	d := &drive{t: t, flash: &memory{data: make([]byte, 4<<20)}}
	for i := 0; i < len(d.flash.data); i += blockSize {
		copy(d.flash.data[i:], block(uint64(i/blockSize)))
	}
	d.in, err = New(s, Options{})
	require.NoError(t, err)
	d.sub, err = controller.New(controller.Options{Flash: d.in.Flash(d.flash), NQN: testNQN, Serial: "F1"})
	require.NoError(t, err)
	target, err := tcp.NewTarget(tcp.TargetOptions{})
	require.NoError(t, err)
	require.NoError(t, target.Add(d.sub))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d.address = l.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- target.Serve(d.in.Listener(l)) }()
	t.Cleanup(func() {
		require.NoError(t, target.Close())
		require.ErrorIs(t, <-ended, tcp.ErrTargetClosed)
		require.Zero(t, d.sub.Associations())
		d.in.mu.Lock()
		defer d.in.mu.Unlock()
		require.Empty(t, d.in.conns, "every connection was closed")
	})
	return d
}

func (d *drive) dial(o tcp.DialOptions) *tcp.Host {
	d.t.Helper()
	o.Address, o.Subsystem = d.address, testNQN
	if o.FirstDelay == 0 {
		o.FirstDelay = 10 * time.Millisecond
	}
	h, err := tcp.Dial(context.Background(), o)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, h.Close()) })
	return h
}

// block is what block n holds.
func block(n uint64) []byte {
	b := make([]byte, blockSize)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], n*0x9e3779b97f4a7c15+uint64(i))
	}
	return b
}

func blocks(first, n uint64) (b []byte) {
	for i := range n {
		b = append(b, block(first+i)...)
	}
	return b
}

func read(c nvme.Conn, slba uint64, b []byte) error {
	cmd := nvme.Read(1, slba, uint32(len(b)/blockSize), blockSize)
	_, err := c.IO(context.Background(), &cmd, b)
	return err
}

func write(c nvme.Conn, slba uint64, b []byte) error {
	cmd := nvme.Write(1, slba, uint32(len(b)/blockSize), blockSize, false)
	_, err := c.IO(context.Background(), &cmd, b)
	return err
}

func flush(c nvme.Conn) error {
	cmd := nvme.Flush(1)
	_, err := c.IO(context.Background(), &cmd, nil)
	return err
}

// readBack reads n blocks in one command and holds them against what was written.
func readBack(t *testing.T, c nvme.Conn, slba, n uint64) {
	t.Helper()
	b := make([]byte, n*blockSize)
	require.NoError(t, read(c, slba, b))
	require.Equal(t, blocks(slba, n), b)
}

func page(t *testing.T, c nvme.Conn, lid uint8, n uint32) []byte {
	t.Helper()
	cmd := nvme.GetLog(lid, nvme.AllNamespaces, 0, n)
	b := make([]byte, n)
	_, err := c.Admin(context.Background(), &cmd, b)
	require.NoError(t, err)
	return b
}

// mediaErrors is what the SMART log says of them, and the latest entry of the error log.
func mediaErrors(t *testing.T, c nvme.Conn) (uint64, nvme.ErrorEntry) {
	t.Helper()
	var log nvme.SMARTLog
	require.NoError(t, log.Unmarshal(page(t, c, nvme.LogSMART, nvme.SMARTLogSize)))
	entries := nvme.UnmarshalErrors(page(t, c, nvme.LogErrors, nvme.ErrorEntrySize))
	require.Len(t, entries, 1)
	return log.MediaErrors, entries[0]
}

// A block that cannot be read fails the commands that touch it, as often as the script says, and no others; the error
// log names it.
func TestFailRead(t *testing.T) {
	d := serve(t, "fail: [{operation: read, lba: 1000, blocks: 2, after: 1, times: 3}]")
	h := d.dial(tcp.DialOptions{})
	readBack(t, h, 1000, 1)
	for i, slba := range []uint64{1000, 993, 1001} {
		readBack(t, h, 992, 8)
		readBack(t, h, 1002, 8)
		b := make([]byte, 16*blockSize)
		err := read(h, slba, b)
		require.ErrorIs(t, err, nvme.UnrecoveredReadError)
		count, e := mediaErrors(t, h)
		assert.EqualValues(t, i+1, count)
		assert.EqualValues(t, i+1, e.Count)
		assert.Equal(t, max(slba, 1000), e.LBA, "the first block that failed")
		assert.Equal(t, nvme.UnrecoveredReadError, e.Status.Code())
		assert.EqualValues(t, nvme.NVMRead, e.Opcode)
		assert.EqualValues(t, 1, e.NSID)
	}
	readBack(t, h, 992, 16)
	require.Equal(t, Stats{Reads: 3}, d.in.Stats())
	require.Equal(t, tcp.Stats{}, h.Stats(), "the connection has nothing to do with it")
}

func TestFailWrite(t *testing.T) {
	d := serve(t, `fail:
- {operation: write, lba: 100, times: 1}
- {operation: write, lba: 200, blocks: 10, status: capacity_exceeded}
- {operation: flush, after: 1, times: 1}`)
	h := d.dial(tcp.DialOptions{})
	readBack(t, h, 96, 8)

	zeros := make([]byte, 8*blockSize)
	require.ErrorIs(t, write(h, 96, zeros), nvme.WriteFault)
	count, e := mediaErrors(t, h)
	assert.EqualValues(t, 1, count)
	assert.EqualValues(t, 100, e.LBA)
	got := make([]byte, 8*blockSize)
	require.NoError(t, read(h, 96, got))
	assert.Equal(t, append(make([]byte, 4*blockSize), blocks(100, 4)...), got, "written up to the block that failed")
	require.NoError(t, write(h, 96, blocks(96, 8)))
	readBack(t, h, 96, 8)

	for range 2 {
		require.ErrorIs(t, write(h, 209, zeros), nvme.CapacityExceeded)
		cmd, data := nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 190, Blocks: 20}})
		_, err := h.IO(t.Context(), &cmd, data)
		require.ErrorIs(t, err, nvme.CapacityExceeded)
	}
	readBack(t, h, 190, 30)
	require.NoError(t, write(h, 210, blocks(210, 8)))

	require.NoError(t, flush(h))
	require.ErrorIs(t, flush(h), nvme.WriteFault)
	require.NoError(t, flush(h))
	require.Equal(t, 2, d.flash.syncs)
	require.Equal(t, Stats{Writes: 5, Flushes: 1}, d.in.Stats())
}

// The rule that stops a transfer first is the one that counts for its place; every rule that it touches has seen it.
func TestFailFirst(t *testing.T) {
	s, err := Parse([]byte("fail: [{operation: read, lba: 9}, {operation: read, lba: 3, times: 1}]"))
	require.NoError(t, err)
	in, err := New(s, Options{})
	require.NoError(t, err)
	in.SetBlockSize(4096)
	f := in.Flash(&memory{data: make([]byte, 1<<20)})
	for _, want := range []int{3 * 4096, 9 * 4096} {
		n, err := f.ReadAt(make([]byte, 16*4096), 0)
		require.ErrorIs(t, err, ErrInjected)
		require.Equal(t, want, n)
	}
	n, err := f.ReadAt(make([]byte, 4096), 8*4096)
	require.NoError(t, err)
	require.Equal(t, 4096, n)
}

// A command that is kept does not keep others: here one for an hour, which its host sends again when the connection is
// gone.
func TestDelay(t *testing.T) {
	d := serve(t, `delay:
- {by: 1h, opcode: read, after: 1, times: 1}
- {by: 10ms, opcode: write, queue: 1}`)
	h := d.dial(tcp.DialOptions{})
	readBack(t, h, 0, 1)
	done := make(chan error, 1)
	got := make([]byte, blockSize)
	go func() { done <- read(h, 999, got) }()
	require.Eventually(t, func() bool { return d.in.Stats().Delays == 1 }, time.Minute, time.Millisecond)
	const n = 20
	var wg sync.WaitGroup
	for i := range uint64(n) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			assert.NoError(t, write(h, 8*i, blocks(1000+8*i, 8))) // in its capsule
			b := make([]byte, 8*blockSize)
			assert.NoError(t, read(h, 8*i, b))
			assert.Equal(t, blocks(1000+8*i, 8), b)
			assert.NoError(t, write(h, 2000+64*i, blocks(64*i, 64))) // asked for
		}()
	}
	wg.Wait()
	select {
	case err := <-done:
		t.Fatal("the command was not kept: ", err)
	default:
	}
	require.EqualValues(t, 1+2*n, d.in.Stats().Delays)
	d.in.GoAway(0)
	require.NoError(t, <-done)
	require.Equal(t, block(999), got)
	require.EqualValues(t, 1, h.Stats().Requeued)
}

// Keep Alive answered too late is a drive that is dead, and the host connects again.
func TestDelayKeepAlive(t *testing.T) {
	d := serve(t, "delay: [{by: 1h, opcode: keep_alive, times: 1}]")
	h := d.dial(tcp.DialOptions{KeepAlive: time.Second})
	require.Eventually(t, func() bool { return h.Stats().Reconnects == 1 }, time.Minute, time.Millisecond)
	readBack(t, h, 0, 8)
	require.EqualValues(t, 1, h.Stats().Reconnects)
	require.EqualValues(t, 1, d.in.Stats().Delays)
}

// TestFlipDigest flips as many digests as the script says. The host counts every wrong data digest, a wrong header
// digest ends the connection, on either side, and the host reads what the drive holds.
func TestFlipDigest(t *testing.T) {
	header := func(direction string) string {
		return "flip: [{digest: header, pdu: 8, times: 1, queue: io, direction: " + direction +
			"}, {digest: header, pdu: 20, queue: io, direction: " + direction + "}]"
	}
	oneBlock := func(i uint64) (lba, count uint64) { return i, 1 }
	for name, c := range map[string]struct {
		script  string
		dial    tcp.DialOptions
		rounds  uint64
		blocks  func(i uint64) (lba, count uint64)
		injects Stats
		host    tcp.Stats
	}{
		"data": {
			"flip: [{digest: data, pdu: 5, times: 3, queue: io}, {digest: data, pdu: 30, queue: 1}]",
			tcp.DialOptions{DataDigest: true, HeaderDigest: true}, 50,
			func(i uint64) (lba, count uint64) { return i * 64, 1 + i },
			Stats{DataDigests: 4}, tcp.Stats{DigestErrors: 4, Requeued: 4},
		},
		"header, sent": {
			header("sent"), tcp.DialOptions{HeaderDigest: true}, 30, oneBlock,
			Stats{HeaderDigests: 2}, tcp.Stats{Reconnects: 2, Requeued: 2},
		},
		"header, received": {
			header("received"), tcp.DialOptions{HeaderDigest: true}, 30, oneBlock,
			Stats{HeaderDigests: 2}, tcp.Stats{Reconnects: 2, Requeued: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := serve(t, c.script)
			h := d.dial(c.dial)
			for i := range c.rounds {
				lba, count := c.blocks(i)
				readBack(t, h, lba, count)
			}
			require.Equal(t, c.injects, d.in.Stats())
			require.Equal(t, c.host, h.Stats())
		})
	}
}

// A write of which the data arrives broken is refused by the drive, and sent again by the host.
func TestFlipDataDigestReceived(t *testing.T) {
	d := serve(t, "flip: [{digest: data, pdu: 2, times: 3, queue: io, direction: received}]")
	h := d.dial(tcp.DialOptions{DataDigest: true})
	const n = 400 // of blocks: more than a capsule holds
	for i := range uint64(4) {
		require.NoError(t, write(h, i*n, blocks(7+i*n, n)))
	}
	for i := range uint64(4) {
		b := make([]byte, n*blockSize)
		require.NoError(t, read(h, i*n, b))
		require.Equal(t, blocks(7+i*n, n), b)
	}
	require.Equal(t, Stats{DataDigests: 3}, d.in.Stats())
	require.EqualValues(t, 3, h.Stats().Requeued)
	require.Zero(t, h.Stats().Reconnects)
}

// There is no digest to flip where none was negotiated.
func TestFlipNothing(t *testing.T) {
	d := serve(t, "flip: [{digest: data, times: always}, {digest: header, times: always}]")
	readBack(t, d.dial(tcp.DialOptions{}), 0, 100)
	require.Equal(t, Stats{}, d.in.Stats())
}

// A connection that drops costs the host a new association, and its idempotent commands nothing.
func TestDrop(t *testing.T) {
	for name, script := range map[string]string{
		"sent":                "{pdu: 10, queue: io, times: 3}",
		"sent in part":        "{pdu: 10, queue: io, times: 3, torn: true}",
		"received":            "{pdu: 10, queue: 1, direction: received, times: 3}",
		"received in part":    "{pdu: 10, queue: io, direction: received, times: 3, torn: true}",
		"any":                 "{pdu: 10, times: 3}",
		"the admin's as well": "{pdu: 6, queue: admin, direction: received}, {pdu: 10, queue: io, times: 2}",
	} {
		t.Run(name, func(t *testing.T) {
			d := serve(t, "drop: ["+script+"]")
			h, err := dialAgain(t, d)
			require.NoError(t, err)
			for i := range uint64(60) {
				require.NoError(t, write(h, 8*i, blocks(5000+8*i, 8)))
				b := make([]byte, 8*blockSize)
				require.NoError(t, read(h, 8*i, b))
				require.Equal(t, blocks(5000+8*i, 8), b)
			}
			require.Equal(t, Stats{Drops: 3}, d.in.Stats())
		})
	}
}

// dialAgain dials until it succeeds: a script may drop the connection that is being made.
func dialAgain(t *testing.T, d *drive) (h *tcp.Host, err error) {
	for range 5 {
		h, err = tcp.Dial(t.Context(), tcp.DialOptions{Address: d.address, Subsystem: testNQN, FirstDelay: time.Millisecond,
			DataDigest: true})
		if err == nil {
			t.Cleanup(func() { require.NoError(t, h.Close()) })
			return h, nil
		}
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
	return nil, err
}

// A command that is not idempotent is not sent again when its connection drops, and later commands wait for the next
// connection.
func TestDropNotIdempotent(t *testing.T) {
	d := serve(t, "drop: [{pdu: 8, queue: admin, direction: received}]")
	h := d.dial(tcp.DialOptions{})
	lost := 0
	for range 8 {
		cmd := nvme.SetFeature(nvme.FeatureWriteCache, 1)
		if _, err := h.Admin(t.Context(), &cmd, nil); err != nil {
			require.ErrorIs(t, err, tcp.ErrLost)
			lost++
		}
	}
	require.Equal(t, 1, lost)
	require.Equal(t, tcp.Stats{Reconnects: 1}, h.Stats())
}

// A drive goes away under load: a host that waits for it loses nothing.
func TestAway(t *testing.T) {
	d := serve(t, "away: [{for: 100ms, command: 200}]")
	h := d.dial(tcp.DialOptions{Queues: 2, FirstDelay: 20 * time.Millisecond})
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range uint64(50) {
				at := 1000*w + 8*i
				assert.NoError(t, write(h, at, blocks(9+at, 8)))
				b := make([]byte, 8*blockSize)
				assert.NoError(t, read(h, at, b))
				assert.Equal(t, blocks(9+at, 8), b)
			}
		}()
	}
	wg.Wait()
	require.EqualValues(t, 1, d.in.Stats().Absences)
	require.EqualValues(t, 1, h.Stats().Reconnects)
	require.Positive(t, h.Stats().Requeued)
}

// While a drive is away no host reaches it, and afterwards every host does.
func TestGoAway(t *testing.T) {
	d := serve(t, "{}")
	h := d.dial(tcp.DialOptions{LongestDelay: 10 * time.Millisecond})
	readBack(t, h, 0, 1)
	d.in.GoAway(time.Hour)
	_, err := tcp.Dial(t.Context(), tcp.DialOptions{Address: d.address, Subsystem: testNQN})
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "reset at once")
	require.Positive(t, d.in.Stats().Reset)
	require.Zero(t, h.Stats().Reconnects)
	d.in.GoAway(0)
	readBack(t, h, 0, 1)
	readBack(t, d.dial(tcp.DialOptions{}), 0, 1)
	require.EqualValues(t, 1, h.Stats().Reconnects)
}

// The same script and the same commands give the same faults.
func TestDeterministic(t *testing.T) {
	const script = `
fail: [{operation: read, lba: 40, blocks: 20, after: 3, times: 7}]
delay: [{by: 1ms, queue: io, after: 9, times: 5}]
flip: [{digest: data, pdu: 4, times: 3}, {digest: data, pdu: 50, times: 3}, {digest: header, pdu: 77}]
drop: [{pdu: 31, queue: io, torn: true}]
away: [{for: 1ms, command: 90}]`
	run := func() (results []string, st Stats) {
		d := serve(t, script)
		h := d.dial(tcp.DialOptions{DataDigest: true, HeaderDigest: true})
		for i := range uint64(100) {
			err := read(h, i, make([]byte, blockSize*(1+i%9)))
			if err != nil {
				require.ErrorIs(t, err, nvme.UnrecoveredReadError)
			}
			results = append(results, map[bool]string{true: "read", false: "failed"}[err == nil])
		}
		st = d.in.Stats()
		st.Reset = 0 // how often the host tries meanwhile is its own affair
		return results, st
	}
	first, st := run()
	require.Equal(t, Stats{Reads: 7, Delays: 5, DataDigests: 6, HeaderDigests: 1, Drops: 1, Absences: 1}, st)
	second, again := run()
	require.Equal(t, first, second)
	require.Equal(t, st, again)
}
