package csd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
)

// A separate process serves the drive at a path, over flash that keeps every write, or that has a cache which is lost
// with the process.
const (
	servePath  = "MILLRACE_TEST_SERVE"
	serveCache = "MILLRACE_TEST_SERVE_CACHE"

	victimNQN    = "nqn.2024-01.io.millrace:victim"
	victimBlock  = csd.LBA4096
	victimBlocks = 1024
)

func TestMain(m *testing.M) {
	if path := os.Getenv(servePath); path != "" {
		if err := serveVictim(path, os.Getenv(serveCache) != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveVictim serves a drive until standard input ends, and prints where.
func serveVictim(path string, cache bool) error {
	o := csd.Options{Path: path, Plain: true, NQN: victimNQN}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		o.Create, o.Size, o.LBA = true, victimBlocks*victimBlock, victimBlock
	}
	if cache {
		o.WrapFlash = func(f controller.Flash) controller.Flash {
			return &volatileFlash{Flash: f, dirty: map[int64][]byte{}}
		}
	}
	drive, err := csd.Open(o)
	if err != nil {
		return err
	}
	target, err := tcp.NewTarget(tcp.TargetOptions{})
	if err != nil {
		return err
	}
	if err := target.Add(drive.Subsystem()); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = target.Serve(l) }()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, target.Close(), drive.Close())
}

// volatileFlash is flash behind a cache in memory, as drives have it: what is written comes to the flash with Sync, or
// when the cache likes, a block at a time and in any order.
type volatileFlash struct {
	controller.Flash
	mu    sync.Mutex
	dirty map[int64][]byte // by block
}

func (v *volatileFlash) ReadAt(p []byte, off int64) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, err := v.Flash.ReadAt(p, off)
	for at := 0; at < n; at += victimBlock {
		copy(p[at:n], v.dirty[(off+int64(at))/victimBlock])
	}
	return n, err
}

func (v *volatileFlash) WriteAt(p []byte, off int64) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for at := 0; at < len(p); at += victimBlock {
		v.dirty[(off+int64(at))/victimBlock] = bytes.Clone(p[at:][:victimBlock])
	}
	if rand.IntN(4) == 0 {
		return len(p), v.clean(rand.IntN(len(v.dirty)))
	}
	return len(p), nil
}

func (v *volatileFlash) Sync() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.clean(len(v.dirty)); err != nil {
		return err
	}
	return v.Flash.Sync()
}

// clean writes n blocks to the flash, in the map's random order.
func (v *volatileFlash) clean(n int) error {
	for block, b := range v.dirty {
		if n == 0 {
			return nil
		}
		n--
		if _, err := v.Flash.WriteAt(b, block*victimBlock); err != nil {
			return err
		}
		delete(v.dirty, block)
	}
	return nil
}

// victim is a target in a process of its own, which is killed and started again.
type victim struct {
	t       *testing.T
	path    string
	cache   bool
	cmd     *exec.Cmd
	stdin   io.Closer
	address atomic.Value // string
}

func newVictim(t *testing.T, cache bool) *victim {
	v := &victim{t: t, path: filepath.Join(t.TempDir(), "drive"), cache: cache}
	v.start()
	t.Cleanup(func() {
		if v.cmd != nil {
			assert.NoError(t, v.stdin.Close())
			assert.NoError(t, v.cmd.Wait(), "it ends in order")
		}
	})
	return v
}

func (v *victim) start() {
	v.t.Helper()
	v.cmd = exec.Command(os.Args[0])
	v.cmd.Env = append(os.Environ(), servePath+"="+v.path)
	if v.cache {
		v.cmd.Env = append(v.cmd.Env, serveCache+"=1")
	}
	v.cmd.Stderr = os.Stderr
	var err error
	v.stdin, err = v.cmd.StdinPipe()
	require.NoError(v.t, err)
	out, err := v.cmd.StdoutPipe()
	require.NoError(v.t, err)
	require.NoError(v.t, v.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(v.t, err, "the target did not start")
	v.address.Store(strings.TrimSpace(line))
}

// kill ends the process as kill -9 does.
func (v *victim) kill() {
	require.NoError(v.t, v.cmd.Process.Kill())
	_ = v.cmd.Wait() // says that it was killed
	v.cmd = nil
}

func (v *victim) dial(o tcp.DialOptions) *tcp.Host {
	v.t.Helper()
	o.Address, o.Subsystem, o.Queues = "127.0.0.1:1", victimNQN, 2
	o.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, v.address.Load().(string))
	}
	h, err := tcp.Dial(v.t.Context(), o)
	require.NoError(v.t, err)
	return h
}

// fillBlock makes a version of a block. The bytes show the block, the version, and whether the block is whole.
// Version 0 is a block that was never written.
func fillBlock(b []byte, block, version uint64) {
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], (block<<32|version)*0x9e3779b97f4a7c15+uint64(i))
	}
	binary.LittleEndian.PutUint64(b, block)
	binary.LittleEndian.PutUint64(b[8:], version)
	binary.LittleEndian.PutUint32(b[16:], crc32.ChecksumIEEE(b[20:]))
}

// blockVersion is the version that a block is of, and whether it is that and no mixture.
func blockVersion(b []byte, block uint64) (version uint64, whole bool) {
	version = binary.LittleEndian.Uint64(b[8:])
	want := make([]byte, len(b))
	if version > 0 {
		fillBlock(want, block, version)
	}
	return version, bytes.Equal(want, b)
}

// ledger is what a host knows of every block: the versions that it has sent, that the drive has said are written, and
// that must be on stable storage.
type ledger struct {
	mu                     sync.Mutex
	sent, written, durable [victimBlocks]uint64
	before, found          [victimBlocks]uint64 // the last version sent before the last kill, and the one found after it
	writes                 int
}

// next makes the next versions of n blocks.
func (l *ledger) next(first, n uint64) (data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data = make([]byte, n*victimBlock)
	for i := range n {
		l.sent[first+i]++
		fillBlock(data[i*victimBlock:][:victimBlock], first+i, l.sent[first+i])
	}
	return data
}

// wrote notes that the versions of some blocks that were sent last are written, and maybe durable.
func (l *ledger) wrote(first, n uint64, durable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := first; b < first+n; b++ {
		l.written[b] = l.sent[b]
		if durable {
			l.durable[b] = l.sent[b]
		}
	}
	l.writes++
}

// flush does a Flush; what was written before it is durable after it.
func (l *ledger) flush(do func() error) error {
	l.mu.Lock()
	covered := l.written
	l.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for b, v := range covered {
		l.durable[b] = max(l.durable[b], v)
	}
	return nil
}

// check compares the drive's content after a kill with the ledger. It returns how many versions are lost that were
// written and never flushed.
func (l *ledger) check(t *testing.T, data []byte, keepsWritten bool) (lost int) {
	t.Helper()
	for b := range uint64(victimBlocks) {
		v, whole := blockVersion(data[b*victimBlock:][:victimBlock], b)
		require.True(t, whole, "block %d is torn", b)
		require.GreaterOrEqual(t, v, l.durable[b], "block %d: what was flushed is lost", b)
		require.LessOrEqual(t, v, l.sent[b], "block %d: a version that nobody wrote", b)
		require.False(t, v != l.found[b] && v <= l.before[b],
			"block %d: version %d was lost by an earlier kill, when %d was found of %d", b, v, l.found[b], l.before[b])
		if v < l.written[b] {
			require.False(t, keepsWritten, "block %d: a kill of the process loses nothing that a completed command wrote", b)
			lost++
		}
		l.found[b], l.before[b] = v, l.sent[b]
		l.written[b], l.durable[b] = v, v
	}
	return lost
}

func readVictim(t *testing.T, c nvme.Conn) []byte {
	t.Helper()
	const step = 256 // blocks: 1 MiB
	data := make([]byte, victimBlocks*victimBlock)
	for b := uint64(0); b < victimBlocks; b += step {
		cmd := nvme.Read(1, b, step, victimBlock)
		_, err := c.IO(t.Context(), &cmd, data[b*victimBlock:][:step*victimBlock])
		require.NoError(t, err)
	}
	return data
}

// writers is how many write at once, each to its own part of the drive.
const writers = 8

// writeSome does one step of a load: a Write of 1 to 16 blocks, some with FUA, or a Flush.
func writeSome(ctx context.Context, c nvme.Conn, l *ledger, r *rand.Rand, part uint64, through bool) error {
	if r.IntN(20) == 0 {
		return l.flush(func() error {
			cmd := nvme.Flush(1)
			_, err := c.IO(ctx, &cmd, nil)
			return err
		})
	}
	const share = victimBlocks / writers
	n := 1 + r.Uint64N(16)
	first := part*share + r.Uint64N(share-n+1)
	fua := r.IntN(10) == 0
	cmd := nvme.Write(1, first, uint32(n), victimBlock, fua)
	if _, err := c.IO(ctx, &cmd, l.next(first, n)); err != nil {
		return err
	}
	l.wrote(first, n, fua || through)
	return nil
}

// kills returns how often a test kills: n times, or twenty times as often with MILLRACE_LONG.
func kills(n int) int {
	if os.Getenv("MILLRACE_LONG") != "" {
		return 20 * n
	}
	return n
}

// TestKill kills the target under write load: nothing that was flushed, or written with FUA, is lost, and no block is
// torn.
func TestKill(t *testing.T) {
	for name, c := range map[string]struct {
		kills        int
		cache, off   bool
		keepsWritten bool
	}{
		"a drive in a file":          {kills: 7, keepsWritten: true},
		"behind a volatile cache":    {kills: 7, cache: true},
		"with that cache turned off": {kills: 6, cache: true, off: true, keepsWritten: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, c.cache)
			seeds := rand.New(rand.NewPCG(3, uint64(len(name))))
			l := new(ledger)
			lost, cut := 0, 0
			least, n := kills(c.kills), 0
			// Behind a cache until something was lost: on a busy machine the cache may be clean at every kill for a while.
			for ; n < least || c.cache && !c.off && lost == 0 && n < 20*least; n++ {
				h := v.dial(tcp.DialOptions{GiveUp: -1})
				writeCache(t, h, !c.off)
				cut += killUnderLoad(t, v, h, l, seeds, c.off)
				require.NoError(t, h.Close())
				v.start()
				h = v.dial(tcp.DialOptions{})
				lost += l.check(t, readVictim(t, h), c.keepsWritten)
				require.NoError(t, h.Close())
			}
			h := v.dial(tcp.DialOptions{})
			var log nvme.SMARTLog
			cmd, b := nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, nvme.SMARTLogSize), make([]byte, nvme.SMARTLogSize)
			_, err := h.Admin(t.Context(), &cmd, b)
			require.NoError(t, err)
			require.NoError(t, log.Unmarshal(b))
			require.EqualValues(t, n, log.UnsafeShutdowns)
			require.EqualValues(t, n+1, log.PowerCycles)
			require.NoError(t, h.Close())
			t.Logf("%d kills, %d writes, %d commands cut off, %d versions of blocks lost that nobody had flushed", n, l.writes,
				cut, lost)
			require.Positive(t, cut, "the kills came under load")
			if c.cache && !c.off {
				require.Positive(t, lost, "the cache is volatile, or this test shows nothing")
			}
		})
	}
}

// writeCache turns the volatile write cache on or off, and holds what the drive says of it against that.
func writeCache(t *testing.T, h *tcp.Host, on bool) {
	t.Helper()
	cmd, b := nvme.Identify(nvme.CNSController, 0, 0), make([]byte, nvme.IdentifySize)
	_, err := h.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	var id nvme.IdentifyController
	require.NoError(t, id.Unmarshal(b))
	require.EqualValues(t, 1, id.WriteCache&1, "there is a volatile write cache")
	get := nvme.GetFeature(nvme.FeatureWriteCache)
	cpl, err := h.Admin(t.Context(), &get, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, cpl.DW0(), "and it is on")
	if on {
		return
	}
	set := nvme.SetFeature(nvme.FeatureWriteCache, 0)
	_, err = h.Admin(t.Context(), &set, nil)
	require.NoError(t, err)
	cpl, err = h.Admin(t.Context(), &get, nil)
	require.NoError(t, err)
	require.Zero(t, cpl.DW0())
}

// killUnderLoad writes until a given number of writes are done as the seeds say, kills the target, and returns how many
// commands that cut off.
func killUnderLoad(t *testing.T, v *victim, h *tcp.Host, l *ledger, seeds *rand.Rand, through bool) int {
	t.Helper()
	var killed atomic.Bool
	var cut, done atomic.Int64
	enough := make(chan struct{})
	want := 20 + seeds.Int64N(200)
	if through { // each of them waits for the disk
		want /= 4
	}
	var wg sync.WaitGroup
	for part := range uint64(writers) {
		r := rand.New(rand.NewPCG(seeds.Uint64(), part))
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				if err := writeSome(context.Background(), h, l, r, part, through); err != nil {
					cut.Add(1)
					assert.True(t, killed.Load(), "before the kill: %v", err)
					return
				}
				if done.Add(1) == want {
					close(enough)
				}
			}
		}()
	}
	<-enough
	// The kill comes at a moment that the seed chooses, not when something is known to be so.
	time.Sleep(time.Duration(seeds.Int64N(int64(3 * time.Millisecond))))
	killed.Store(true)
	v.kill()
	wg.Wait()
	return int(cut.Load())
}

// TestKillIsNotSeen kills the target of a host that connects again: its commands take longer, and that is all.
func TestKillIsNotSeen(t *testing.T) {
	t.Parallel()
	v := newVictim(t, false)
	h := v.dial(tcp.DialOptions{FirstDelay: 5 * time.Millisecond, LongestDelay: 20 * time.Millisecond})
	l := new(ledger)
	var done atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for part := range uint64(writers) {
		r := rand.New(rand.NewPCG(11, part))
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !assert.NoError(t, writeSome(context.Background(), h, l, r, part, false)) {
					return
				}
				done.Add(1)
			}
		}()
	}
	n := kills(5)
	for i := range n {
		more := done.Load() + 50
		require.Eventually(t, func() bool { return done.Load() >= more && h.Stats().Reconnects == uint64(i) }, time.Minute,
			time.Millisecond)
		v.kill()
		v.start()
	}
	require.Eventually(t, func() bool { return h.Stats().Reconnects == uint64(n) }, time.Minute, time.Millisecond)
	close(stop)
	wg.Wait()
	require.Positive(t, h.Stats().Requeued)
	require.Zero(t, l.check(t, readVictim(t, h), true))
	require.NoError(t, h.Close())
}
