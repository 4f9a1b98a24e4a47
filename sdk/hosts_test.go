package sdk_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

const sharedNQN = "nqn.2024-01.io.millrace:shared"

// served is a drive that holds some files, behind a loopback address. The options say what differs from a drive with
// one region.
func served(t *testing.T, o csd.Options, target tcp.TargetOptions, files ...[]byte) (uri string,
	at []partition.Extent) {
	t.Helper()
	return servedBehind(t, o, target, func(l net.Listener) net.Listener { return l }, files...)
}

// servedBehind is served with a listener around that of the target.
func servedBehind(t *testing.T, o csd.Options, target tcp.TargetOptions, wrap func(net.Listener) net.Listener,
	files ...[]byte) (uri string, at []partition.Extent) {
	t.Helper()
	var paths []string
	for i, data := range files {
		paths = append(paths, filepath.Join(t.TempDir(), fmt.Sprintf("part-%d.parquet", i)))
		require.NoError(t, os.WriteFile(paths[i], data, 0o600))
	}
	blocks, places, err := flash.Files(paths, csd.LBA512, nil)
	require.NoError(t, err)
	for _, p := range places {
		at = append(at, partition.Extent{Device: p.Offset, Len: p.Size})
	}
	o.Flash, o.LBA, o.Threads, o.NQN = blocks, csd.LBA512, 2, sharedNQN
	drive, err := csd.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, drive.Close()) })
	return "tcp://" + hosttest.ServeBehind(t, drive.Subsystem(), target, wrap) + "/" + sharedNQN, at
}

// cord is the cable of a host, which can be cut, or left in place without a listener.
type cord struct {
	mu    sync.Mutex
	conns []net.Conn
	mute  atomic.Bool
}

func (c *cord) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, nc)
	return muted{nc, c}, nil
}

func (c *cord) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.conns {
		_ = nc.Close()
	}
}

// muted is a connection that says nothing any more once its cord is mute.
type muted struct {
	net.Conn
	c *cord
}

func (m muted) Write(p []byte) (int, error) {
	if m.c.mute.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

// guard is memory that a host holds while others work beside it.
type guard struct {
	slm  *sdk.SLM
	want []byte
}

func newGuard(t *testing.T, dev *sdk.Device, seed byte) guard {
	g := guard{want: make([]byte, 128<<10)}
	for i := range g.want {
		g.want[i] = seed + byte(i*i>>7)
	}
	var err error
	g.slm, err = dev.ReserveSLM(t.Context(), uint64(len(g.want)))
	require.NoError(t, err)
	require.NoError(t, g.slm.Store(t.Context(), 0, g.want))
	return g
}

func (g guard) intact(t *testing.T) {
	got := make([]byte, len(g.want))
	if assert.NoError(t, g.slm.Fetch(t.Context(), 0, got)) {
		assert.True(t, bytes.Equal(g.want, got), "memory that a host holds was written by somebody else")
	}
}

// TestHostsPreprocessAtOnce has two hosts preprocess different partitions of one drive by different programs, again and
// again. Each host uses another command set, and also holds memory before, between and behind the memory of its runs.
// Every mini-batch is the reference's, and no byte of the held memory changes.
func TestHostsPreprocessAtOnce(t *testing.T) {
	const slm = 16 << 20
	var data [2][]byte
	for i := range data {
		data[i] = processortest.WriteParquet(t, processortest.Layout{
			Rows: 2000 + 500*i, Group: 700 + 100*i, Page: 2 << 10, Codec: &pq.Snappy, Seed: uint64(41 + i),
		})
	}
	uri, at := served(t, csd.Options{SLMBytes: slm}, tcp.TargetOptions{}, data[:]...)
	rounds := 3
	if processortest.Raced {
		rounds = 1
	}
	var guards []guard
	var wg sync.WaitGroup
	type job struct {
		dev *sdk.Device
		run func()
	}
	var jobs []job
	for i, query := range []string{"?commands=vendor&digests=both", "?commands=standard"} {
		dev, err := sdk.Open(t.Context(), uri+query, sdk.DeviceOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, dev.Close()) }()
		guards = append(guards, newGuard(t, dev, byte(10*i)))
		prog, schema := processortest.Programs()[[]string{"jagged", "fixed"}[i]]()
		run := processor.Run{First: 5, Rows: int64(1900 + 500*i), Batch: 128, Partition: processortest.Open(t, data[i], true)}
		want := processortest.Reference(t, prog, schema, run)
		run.Partition = readFrom(t, dev, data[i], at[i])
		p := startOn(t, dev, prog, schema, processor.Options{SLM: slm / 4})
		defer func() { require.NoError(t, p.Close()) }()
		guards = append(guards, newGuard(t, dev, byte(10*i+100)))
		jobs = append(jobs, job{dev, func() {
			for range rounds {
				got, err := processortest.Collect(p, run)
				if assert.NoError(t, err) {
					processortest.RequireSame(t, want, got, "host ", i)
				}
			}
		}})
	}
	for _, j := range jobs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			j.run()
		}()
	}
	working := make(chan struct{})
	go func() { wg.Wait(); close(working) }()
	for busy := true; busy; {
		select {
		case <-working:
			busy = false
		default:
		}
		for _, g := range guards {
			g.intact(t)
		}
	}
}

// TestMemoryOfAnotherHostIsRefused sends every command that touches memory to memory that another host holds, wholly or
// across the border of the sender's own. All commands are refused, and nothing changes.
func TestMemoryOfAnotherHostIsRefused(t *testing.T) {
	const slm = 1 << 20
	uri, _ := served(t, csd.Options{SLMBytes: slm}, tcp.TargetOptions{}, make([]byte, 64<<10))
	owner, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
	require.NoError(t, err)
	defer owner.Close()
	theirs := newGuard(t, owner, 77)
	at, size := theirs.slm.Addr(), uint64(len(theirs.want))

	u, err := sdk.ParseURI(uri)
	require.NoError(t, err)
	host, err := tcp.Dial(t.Context(), tcp.DialOptions{Address: u.Host, Subsystem: u.Name})
	require.NoError(t, err)
	defer host.Close()
	reserve := cs.SLMReserve(cs.AnyAddress, 64<<10)
	cpl, err := host.Admin(t.Context(), &reserve, nil)
	require.NoError(t, err)
	mine := cpl.Result()
	require.Equal(t, at+size, mine, "behind it")

	source := func(s cs.MemorySource) []byte { return s.AppendTo(nil) }
	blocks := func(n uint32) []byte { return cs.BlockSource{NSID: 1, Blocks: n}.AppendTo(nil) }
	own := []cs.Range{{Addr: mine, Len: 4096}}
	preprocess := func(p cs.Preprocess) cs.Transfer {
		b, err := p.Marshal()
		require.NoError(t, err)
		return cs.Transfer{Command: cs.PreprocessCommand(uint32(len(b))), Data: b}
	}
	execute := func(ranges ...cs.Range) cs.Transfer {
		x, err := cs.Execute(0, ranges, make([]byte, 64))
		require.NoError(t, err)
		return x
	}
	rangeSet := func(ranges ...cs.Range) cs.Transfer {
		x, err := cs.CreateRangeSet(ranges)
		require.NoError(t, err)
		return x
	}
	for name, c := range map[string]struct {
		admin bool
		x     cs.Transfer
		want  nvme.Status
	}{
		"fetch": {
			false, cs.Transfer{Command: cs.Fetch(at, 512), Data: make([]byte, 512)}, nvme.AccessDenied,
		},
		"fetch across the border": {
			false, cs.Transfer{Command: cs.Fetch(mine-1, 2), Data: make([]byte, 2)}, nvme.AccessDenied,
		},
		"fetch what nobody holds": {
			false, cs.Transfer{Command: cs.Fetch(slm-512, 512), Data: make([]byte, 512)}, nvme.AccessDenied,
		},
		"store": {
			false, cs.Transfer{Command: cs.Store(at, 512), Data: make([]byte, 512)}, nvme.AccessDenied,
		},
		"store across the border": {
			false, cs.Transfer{Command: cs.Store(mine-1, 2), Data: make([]byte, 2)}, nvme.AccessDenied,
		},
		"memory read": {
			false, cs.Transfer{Command: cs.MemoryRead(at, 512), Data: make([]byte, 512)}, nvme.AccessDenied,
		},
		"memory write": {
			false, cs.Transfer{Command: cs.MemoryWrite(at+size-512, 1024), Data: make([]byte, 1024)}, nvme.AccessDenied,
		},
		"memory fill": {false, cs.Transfer{Command: cs.MemoryFill(at, 4096, 1)}, nvme.AccessDenied},
		"copy blocks to it": {
			false, cs.Transfer{
				Command: cs.MemoryCopy{Len: 512, Dest: at, Sources: 1, Format: cs.CopyFormatBlocks}.Command(),
				Data:    blocks(1),
			}, nvme.AccessDenied,
		},
		"copy blocks across": {
			false, cs.Transfer{
				Command: cs.MemoryCopy{Len: 1024, Dest: mine - 512, Sources: 1, Format: cs.CopyFormatBlocks}.Command(),
				Data:    blocks(2),
			}, nvme.AccessDenied,
		},
		"copy memory from it": {
			false, cs.Transfer{
				Command: cs.MemoryCopy{Len: 512, Dest: mine, Sources: 1, Format: cs.CopyFormatMemory}.Command(),
				Data:    source(cs.MemorySource{NSID: cs.NamespaceSLM, Addr: at, Len: 512}),
			}, nvme.AccessDenied,
		},
		"copy memory to it": {
			false, cs.Transfer{
				Command: cs.MemoryCopy{Len: 512, Dest: at, Sources: 1, Format: cs.CopyFormatMemory}.Command(),
				Data:    source(cs.MemorySource{NSID: cs.NamespaceSLM, Addr: mine, Len: 512}),
			}, nvme.AccessDenied,
		},
		"preprocess into it": {
			false, preprocess(cs.Preprocess{Ranges: own, Copies: []cs.Copy{{NSID: 1, NLB: 8, Dest: at}}}), nvme.AccessDenied,
		},
		"preprocess over it": {
			false, preprocess(cs.Preprocess{Ranges: append([]cs.Range{{Addr: at, Len: 4096}}, own...)}), nvme.AccessDenied,
		},
		"preprocess across": {
			false, preprocess(cs.Preprocess{Ranges: []cs.Range{{Addr: mine - 64, Len: 128}}}), nvme.AccessDenied,
		},
		"execute over it": {
			false, execute(append([]cs.Range{{Addr: at + size - 4096, Len: 4096}}, own...)...), nvme.AccessDenied,
		},
		"a range set of it":  {true, rangeSet(cs.Range{Addr: at, Len: 4096}), nvme.InsufficientResources},
		"a range set across": {true, rangeSet(cs.Range{Addr: mine - 4096, Len: 8192}), nvme.InsufficientResources},
		"reserve it":         {true, cs.Transfer{Command: cs.SLMReserve(at, 4096)}, nvme.InsufficientResources},
		"reserve more than is left": {
			true, cs.Transfer{Command: cs.SLMReserve(cs.AnyAddress, slm)}, nvme.InsufficientResources,
		},
		"release it": {true, cs.Transfer{Command: cs.SLMRelease(at, size)}, nvme.AccessDenied},
	} {
		do := host.IO
		if c.admin {
			do = host.Admin
		}
		_, err := do(t.Context(), &c.x.Command, c.x.Data)
		assert.ErrorIs(t, err, c.want, name)
		if c.x.Command.Direction() == nvme.ControllerToHost {
			assert.Equal(t, make([]byte, len(c.x.Data)), c.x.Data, "%s: bytes came all the same", name)
		}
		theirs.intact(t)
	}
	// A host's own memory works, up to the border.
	for _, cmd := range []nvme.Command{cs.Store(mine, 512), cs.Fetch(mine, 512), cs.Store(mine+64<<10-1, 1)} {
		_, err := host.IO(t.Context(), &cmd, make([]byte, cmd.DataLength()))
		require.NoError(t, err)
	}
}

// TestHostDies ends a host while it preprocesses and holds memory, in each way that a host can end. Its memory
// is free for the next host, and cleared, and the host beside it does not notice.
func TestHostDies(t *testing.T) {
	l := processortest.Layout{Rows: 3000, Group: 1100, Page: 2 << 10, Codec: &pq.Snappy, Seed: 43}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	run := processor.Run{Rows: int64(l.Rows), Batch: 256, Partition: processortest.Open(t, data, true)}
	want := processortest.Reference(t, prog, schema, run)
	const slm = 16 << 20
	for name, how := range map[string]struct {
		end       func(*cord)
		keepAlive time.Duration
	}{
		"its connections are cut": {(*cord).cut, time.Minute},
		"it falls silent":         {func(c *cord) { c.mute.Store(true) }, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri, at := served(t, csd.Options{SLMBytes: slm}, tcp.TargetOptions{}, data)
			var c cord
			// A host that dies does not connect again.
			dial := tcp.DialOptions{DialContext: c.dial, GiveUp: -1, KeepAlive: how.keepAlive}
			dies, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{TCP: dial})
			require.NoError(t, err)
			defer dies.Close()
			secret, err := dies.ReserveSLM(t.Context(), slm/4)
			require.NoError(t, err)
			require.NoError(t, secret.Store(t.Context(), 0, bytes.Repeat([]byte("secret"), 1000)))
			run := run
			run.Partition = readFrom(t, dies, data, at[0])
			p := startOn(t, dies, prog, schema, processor.Options{SLM: slm / 4})
			failed := make(chan error, 1)
			go func() {
				for {
					if _, err := processortest.Collect(p, run); err != nil {
						failed <- err
						return
					}
				}
			}()

			stays, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
			require.NoError(t, err)
			defer func() { require.NoError(t, stays.Close()) }()
			beside := run
			beside.Partition = readFrom(t, stays, data, at[0])
			q := startOn(t, stays, prog, schema, processor.Options{SLM: slm / 4})
			got, err := processortest.Collect(q, beside)
			require.NoError(t, err)
			processortest.RequireSame(t, want, got)
			_, err = stays.ReserveSLM(t.Context(), slm/2)
			require.ErrorIs(t, err, sdk.ErrSLMFull)

			how.end(&c)
			got, err = processortest.Collect(q, beside)
			require.NoError(t, err)
			processortest.RequireSame(t, want, got)
			var freed *sdk.SLM
			require.Eventually(t, func() bool {
				freed, err = stays.ReserveSLM(t.Context(), slm/2)
				return err == nil
			}, time.Minute, 10*time.Millisecond, "what the host held is given back")
			found := make([]byte, freed.Size())
			require.NoError(t, freed.Fetch(t.Context(), 0, found))
			require.True(t, bytes.Equal(make([]byte, len(found)), found), "and cleared")
			require.Error(t, <-failed)
			require.NoError(t, freed.Release(t.Context()))
			require.NoError(t, q.Close())
			_ = p.Close() // its drive is gone
		})
	}
}

// TestMemoryEndsWithTheConnection has a host lose its connection and come back. The memory that it held belongs to
// another host now, and the addresses that it remembers do not reach that memory.
func TestMemoryEndsWithTheConnection(t *testing.T) {
	const slm = 1 << 20
	uri, _ := served(t, csd.Options{SLMBytes: slm}, tcp.TargetOptions{}, make([]byte, 4096))
	for _, query := range []string{"?commands=vendor", "?commands=standard"} {
		var c cord
		dial := tcp.DialOptions{DialContext: c.dial, FirstDelay: 50 * time.Millisecond}
		first, err := sdk.Open(t.Context(), uri+query, sdk.DeviceOptions{TCP: dial})
		require.NoError(t, err)
		held, err := first.ReserveSLM(t.Context(), slm)
		require.NoError(t, err)
		second, err := sdk.Open(t.Context(), uri+query, sdk.DeviceOptions{})
		require.NoError(t, err)
		c.cut()
		var taken *sdk.SLM
		require.Eventually(t, func() bool {
			taken, err = second.ReserveSLM(t.Context(), slm)
			return err == nil
		}, time.Minute, time.Millisecond)
		require.NoError(t, taken.Store(t.Context(), 0, []byte("another's")))
		// Blocks are read as if nothing had been.
		_, err = first.ReadAt(make([]byte, 4096), 0)
		require.NoError(t, err)
		got := make([]byte, 12)
		require.ErrorIs(t, held.Fetch(t.Context(), 0, got), tcp.ErrLost)
		require.Equal(t, make([]byte, 12), got)
		require.ErrorIs(t, held.Store(t.Context(), 0, make([]byte, 12)), tcp.ErrLost)
		require.NoError(t, held.Release(t.Context()), "it was given back with the connection")
		require.NoError(t, taken.Fetch(t.Context(), 0, got))
		require.Equal(t, "another's", string(got[:9]))
		require.NoError(t, first.Close())
		require.NoError(t, second.Close())
	}
}
