package controller

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// lendingFlash lends its bytes as long as its term lasts.
type lendingFlash struct {
	*memFlash
	term   atomic.Uint64 // 0: nothing is lent
	recall func()
	lent   atomic.Int64 // bytes
	fails  atomic.Bool  // reads
}

func newLendingFlash(n int) *lendingFlash {
	f := &lendingFlash{memFlash: newFlash(n)}
	f.term.Store(1)
	return f
}

func (f *lendingFlash) ReadAt(p []byte, off int64) (int, error) {
	if f.fails.Load() {
		return 0, errors.New("the medium failed")
	}
	return f.memFlash.ReadAt(p, off)
}

func (f *lendingFlash) Lend(off, n int64) ([]byte, uint64, bool) {
	term := f.term.Load()
	if term == 0 {
		return nil, 0, false
	}
	f.lent.Add(n)
	return f.data[off : off+n], term, true
}

func (f *lendingFlash) Lasts(term uint64) bool { return f.term.Load() == term }
func (f *lendingFlash) OnRecall(recall func()) { f.recall = recall }

// end ends the term as a flash does that others may change from then on.
func (f *lendingFlash) end() {
	f.term.Store(0)
	f.recall()
}

// readingCompute is a stub whose programs only read their first range, and read lent blocks on the flash. Each window
// of an execution is four bytes of its arguments: offset and length.
type readingCompute struct{ *stubCompute }

func (c *readingCompute) InputRange() int { return 0 }

// Execute copies windows of the input to the second range, one behind the other.
func (c *readingCompute) Execute(ctx context.Context, x Execution) (uint64, nvme.Status) {
	ranges, args := x.Ranges, x.Args
	if c.started != nil {
		c.started <- struct{}{}
		<-c.hold
	}
	if len(ranges) < 2 {
		return 0, nvme.InvalidField
	}
	in, out := ranges[0], c.slm[ranges[1].Addr:][:ranges[1].Len]
	read := func(off, n uint64) []byte { return c.slm[in.Addr+off:][:n] }
	if lent := x.Input; lent != nil {
		read = lent.Bytes
	}
	for ; len(args) >= 4; args = args[4:] {
		off := min(uint64(args[0])<<8|uint64(args[1]), in.Len)
		n := min(uint64(args[2])<<8|uint64(args[3]), in.Len-off)
		out = out[copy(out, read(off, n)):]
	}
	return uint64(len(out)), nvme.Success
}

func newLendingDrive(t testing.TB) (*drive, *lendingFlash, *readingCompute) {
	t.Helper()
	flash, compute := newLendingFlash(testFlash), &readingCompute{newStub(testSLM)}
	d := newDrive(t, func(o *Options) { o.Flash, o.Compute = flash, compute })
	copy(flash.data, pattern(testFlash, 1))
	return d, flash, compute
}

// TestLentBlocksAreAsIfCopied runs the same random commands on a drive that lends blocks and on one that copies them:
// every answer and every byte of memory and flash is the same.
func TestLentBlocksAreAsIfCopied(t *testing.T) {
	var lent, copied uint64
	rapid.Check(t, func(rt *rapid.T) {
		lending, flash, _ := newLendingDrive(t)
		plain := newDrive(t, func(o *Options) { o.Compute = &readingCompute{newStub(testSLM)} })
		copy(plain.flash.data, flash.data)
		hosts := []nvme.Conn{lending.connect(), plain.connect()}
		defer func() {
			for _, c := range hosts {
				require.NoError(rt, c.Close())
			}
		}()
		const held = 64 << 10
		for _, c := range hosts {
			admin(t, c, cs.SLMReserve(0, held), nil, nvme.Success)
		}
		number := func(what string, most int) uint64 { return uint64(rapid.IntRange(0, most).Draw(rt, what)) }
		copies := func() (all []cs.Copy) {
			for range number("copies", 3) + 1 {
				k := cs.Copy{NSID: 1, NLB: uint32(number("blocks", 15) + 1), SLBA: number("lba", 40)}
				k.Dest = number("destination", (held-int(k.NLB)*512)/256) * 256
				all = append(all, k)
			}
			return all
		}
		windows := func() []byte { return rapid.SliceOfN(rapid.Byte(), 0, 24).Draw(rt, "windows") }
		ranges := func() []cs.Range {
			in := number("input", held/2-512)
			return []cs.Range{{Addr: in, Len: number("input length", held/2-int(in))},
				{Addr: held/2 + number("output", held/4), Len: 8192}}
		}
		var views [2][]byte
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			var do func(nvme.Conn, []byte)
			answer := make([]byte, 4096)
			switch rapid.IntRange(0, 10).Draw(rt, "step") {
			case 0, 1, 2:
				k := copies()
				do = func(c nvme.Conn, _ []byte) {
					all, err := cs.MemoryCopies(k, 512)
					require.NoError(rt, err)
					for _, x := range all {
						io(t, c, x.Command, x.Data, nvme.Success)
					}
				}
			case 3, 4, 5:
				p := cs.Preprocess{Copies: copies(), Ranges: ranges(), Args: windows()}
				if rapid.Bool().Draw(rt, "no copies") {
					p.Copies = nil
				}
				do = func(c nvme.Conn, b []byte) {
					binary.LittleEndian.PutUint64(b, preprocess(t, c, p, nvme.Success))
				}
			case 6:
				at := number("address", held-4096)
				do = func(c nvme.Conn, b []byte) { io(t, c, cs.Fetch(at, 4096), b, nvme.Success) }
			case 7:
				at, b := number("address", held-4096), pattern(4096, byte(number("content", 255)))
				do = func(c nvme.Conn, _ []byte) { io(t, c, cs.Store(at, 4096), bytes.Clone(b), nvme.Success) }
			case 8:
				lba, b := number("lba", 50), pattern(int(number("blocks", 7)+1)*512, byte(number("content", 255)))
				do = func(c nvme.Conn, _ []byte) {
					io(t, c, nvme.Write(1, lba, uint32(len(b)/512), 512, false), bytes.Clone(b), nvme.Success)
				}
			case 9:
				from := number("from", held/2-4096) / 4 * 4
				m := cs.MemoryCopy{Len: 4096, Dest: held/2 + number("to", held/2-4096)/4*4, Sources: 1,
					Format: cs.CopyFormatMemory}
				source := cs.MemorySource{NSID: 2, Addr: from, Len: 4096}.AppendTo(nil)
				do = func(c nvme.Conn, _ []byte) { io(t, c, m.Command(), source, nvme.Success) }
			default:
				switch rapid.IntRange(0, 2).Draw(rt, "rare step") {
				case 0:
					flash.end()
					continue
				case 1:
					flash.term.Store(number("term", 3) + 1)
					flash.recall()
					continue
				}
				at := number("address", held-4096)
				for i, c := range hosts {
					var ok bool
					views[i], ok = c.(nvme.Mapper).MapSLM(at, 4096)
					require.True(rt, ok)
				}
				require.True(rt, bytes.Equal(views[0], views[1]))
				continue
			}
			answers := [2][]byte{answer, bytes.Clone(answer)}
			for i, c := range hosts {
				do(c, answers[i])
			}
			require.True(rt, bytes.Equal(answers[0], answers[1]))
			require.True(rt, bytes.Equal(views[0], views[1]), "a view shows what commands wrote")
		}
		counters := vendorLog(t, hosts[0])
		lent, copied = lent+counters.FlashLent.Bytes, copied+counters.FlashToDRAM.Bytes
		assert.Equal(rt, plain.Counters().SectorsRead, lending.Counters().SectorsRead)
		got, want := make([]byte, held), make([]byte, held)
		io(t, hosts[0], cs.Fetch(0, held), got, nvme.Success)
		io(t, hosts[1], cs.Fetch(0, held), want, nvme.Success)
		require.True(rt, bytes.Equal(want, got))
		require.True(rt, bytes.Equal(plain.flash.data, flash.data))
	})
	assert.Positive(t, lent)
	assert.Positive(t, copied, "some copies were put off, and made later")
}

// lendAndHold lends four blocks from block 8 on and holds an execution that reads them. The returned function lets the
// execution go on and waits for it.
func lendAndHold(t *testing.T, d *drive, compute *readingCompute, c nvme.Conn) (at uint64, goOn func()) {
	t.Helper()
	compute.started, compute.hold = make(chan struct{}), make(chan struct{})
	at = reserve(t, c, 64<<10)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		preprocess(t, c, cs.Preprocess{
			Copies: []cs.Copy{{NSID: 1, NLB: 4, SLBA: 8, Dest: at}},
			Ranges: []cs.Range{{Addr: at, Len: 4096}, {Addr: at + 4096, Len: 4096}}, Args: []byte{0, 0, 8, 0},
		}, nvme.Success)
	}()
	<-compute.started
	return at, func() {
		close(compute.hold)
		<-finished
		got := make([]byte, 2048)
		io(t, c, cs.Fetch(at+4096, 2048), got, nvme.Success)
		require.Equal(t, pattern(testFlash, 1)[4096:6144], got, "the execution read the blocks as they were")
	}
}

func TestAWriteWaitsForExecutionsThatReadItsBlocks(t *testing.T) {
	d, _, compute := newLendingDrive(t)
	c := d.connect()
	at, goOn := lendAndHold(t, d, compute, c)
	io(t, c, nvme.Write(1, 12, 1, 512, false), make([]byte, 512), nvme.Success) // another block
	written := make(chan struct{})
	go func() {
		defer close(written)
		io(t, c, nvme.Write(1, 11, 1, 512, false), make([]byte, 512), nvme.Success)
	}()
	select {
	case <-written:
		t.Fatal("blocks changed while an execution read them")
	case <-time.After(20 * time.Millisecond):
	}
	goOn()
	<-written
	got := make([]byte, 2048)
	io(t, c, cs.Fetch(at, 2048), got, nvme.Success)
	assert.Equal(t, pattern(testFlash, 1)[4096:6144], got, "memory holds the blocks as they were copied")
}

func TestARecallWaitsForExecutions(t *testing.T) {
	d, flash, compute := newLendingDrive(t)
	c := d.connect()
	_, goOn := lendAndHold(t, d, compute, c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		flash.end()
	}()
	select {
	case <-ended:
		t.Fatal("a term ended while an execution read lent blocks")
	case <-time.After(20 * time.Millisecond):
	}
	goOn()
	<-ended
	clear(flash.data)
}

func TestLentBlocksAreNoOtherAssociations(t *testing.T) {
	d, flash, _ := newLendingDrive(t)
	a, b := d.connect(), d.connect()
	at := reserve(t, a, 64<<10)
	blocks := cs.BlockSource{NSID: 1, Blocks: 8, SLBA: 8}.AppendTo(nil)
	io(t, a, cs.MemoryCopy{Len: 4096, Dest: at, Sources: 1, Format: cs.CopyFormatBlocks}.Command(), blocks, nvme.Success)
	require.Positive(t, flash.lent.Load())
	admin(t, a, cs.SLMRelease(at, 64<<10), nil, nvme.Success)
	admin(t, b, cs.SLMReserve(at, 64<<10), nil, nvme.Success)
	got := make([]byte, 4096)
	io(t, b, cs.Fetch(at, 4096), got, nvme.Success)
	assert.Equal(t, make([]byte, 4096), got)
	flash.recall()
	assert.Zero(t, vendorLog(t, b).FlashToDRAM.Bytes, "nothing is lent any more")
}

// TestACopyThatWasPutOffAndFails fails a copy whose command succeeded long before. Commands that read the
// memory fail until it is written again.
func TestACopyThatWasPutOffAndFails(t *testing.T) {
	const unread = 4096 // bytes of memory, of the 8192 that are copied
	lend := func(t *testing.T) (*drive, *lendingFlash, nvme.Conn, uint64) {
		d, flash, _ := newLendingDrive(t)
		c := d.connect()
		at := reserve(t, c, 64<<10)
		for _, k := range []cs.Copy{{NSID: 1, NLB: 8, SLBA: 8, Dest: at}, {NSID: 1, NLB: 8, SLBA: 32, Dest: at + unread}} {
			blocks := cs.BlockSource{NSID: 1, Blocks: k.NLB, SLBA: k.SLBA}.AppendTo(nil)
			m := cs.MemoryCopy{Len: 4096, Dest: k.Dest, Sources: 1, Format: cs.CopyFormatBlocks}
			io(t, c, m.Command(), blocks, nvme.Success)
		}
		return d, flash, c, at
	}
	fetch := func(t *testing.T, c nvme.Conn, at uint64, want nvme.Status) []byte {
		b := make([]byte, 4096)
		io(t, c, cs.Fetch(at, 4096), b, want)
		return b
	}
	execute := func(t *testing.T, c nvme.Conn, at uint64, window []byte, want nvme.Status) {
		preprocess(t, c, cs.Preprocess{
			Ranges: []cs.Range{{Addr: at, Len: 8192}, {Addr: at + 8192, Len: 8192}}, Args: window,
		}, want)
	}
	whole, first := []byte{0, 0, 0x20, 0}, []byte{0, 0, 0x10, 0}

	t.Run("of a command that reads the memory", func(t *testing.T) {
		d, flash, c, at := lend(t)
		flash.fails.Store(true)
		fetch(t, c, at, nvme.UnrecoveredReadError)
		assert.EqualValues(t, 1, d.Counters().MediaErrors)
		flash.fails.Store(false)
		fetch(t, c, at, nvme.UnrecoveredReadError)
		assert.Equal(t, pattern(testFlash, 1)[32*512:][:4096], fetch(t, c, at+unread, nvme.Success))
		io(t, c, cs.Store(at, 4096), pattern(4096, 3), nvme.Success)
		assert.Equal(t, pattern(4096, 3), fetch(t, c, at, nvme.Success))
	})
	t.Run("of a copy inside the memory", func(t *testing.T) {
		_, flash, c, at := lend(t)
		flash.fails.Store(true)
		m := cs.MemoryCopy{Len: 4096, Dest: at + 16384, Sources: 1, Format: cs.CopyFormatMemory}
		source := cs.MemorySource{NSID: cs.NamespaceSLM, Addr: at, Len: 4096}.AppendTo(nil)
		io(t, c, m.Command(), source, nvme.UnrecoveredReadError)
	})
	t.Run("of a recall, before an execution", func(t *testing.T) {
		_, flash, c, at := lend(t)
		flash.fails.Store(true)
		flash.end()
		execute(t, c, at, whole, nvme.UnrecoveredReadError)
		execute(t, c, at, nil, nvme.Success)
		flash.fails.Store(false)
		blocks := cs.BlockSource{NSID: 1, Blocks: 8, SLBA: 8}.AppendTo(nil)
		m := cs.MemoryCopy{Len: 4096, Dest: at, Sources: 1, Format: cs.CopyFormatBlocks}
		io(t, c, m.Command(), blocks, nvme.Success)
		execute(t, c, at, first, nvme.Success)
		execute(t, c, at, whole, nvme.UnrecoveredReadError)
	})
	t.Run("of a window that lies in part on the flash", func(t *testing.T) {
		_, flash, c, at := lend(t)
		flash.fails.Store(true)
		execute(t, c, at, whole, nvme.UnrecoveredReadError)
	})
	t.Run("in a range that is not an input", func(t *testing.T) {
		_, flash, c, at := lend(t)
		flash.fails.Store(true)
		preprocess(t, c, cs.Preprocess{Ranges: []cs.Range{{Addr: at + 8192, Len: 4096}, {Addr: at, Len: 4096}}},
			nvme.UnrecoveredReadError)
	})
	t.Run("of a view", func(t *testing.T) {
		_, flash, c, at := lend(t)
		flash.fails.Store(true)
		_, mapped := c.(nvme.Mapper).MapSLM(at, 4096)
		assert.False(t, mapped, "a view would show zeros and no error")
		_, mapped = c.(nvme.Mapper).MapSLM(at+8192, 4096)
		assert.True(t, mapped)
	})
	t.Run("in memory that is given back", func(t *testing.T) {
		d, flash, c, at := lend(t)
		flash.fails.Store(true)
		flash.end()
		admin(t, c, cs.SLMRelease(at, 64<<10), nil, nvme.Success)
		other := d.connect()
		admin(t, other, cs.SLMReserve(at, 64<<10), nil, nvme.Success)
		assert.Equal(t, make([]byte, 4096), fetch(t, other, at, nvme.Success))
	})
}

func TestLentBytesAreCountedApart(t *testing.T) {
	d, flash, _ := newLendingDrive(t)
	c := d.connect()
	at := reserve(t, c, 64<<10)
	p := cs.Preprocess{
		Copies: []cs.Copy{{NSID: 1, NLB: 4, SLBA: 8, Dest: at}, {NSID: 1, NLB: 4, SLBA: 12, Dest: at + 2048}},
		Ranges: []cs.Range{{Addr: at, Len: 4096}, {Addr: at + 4096, Len: 4096}}, Args: []byte{4, 0, 8, 0},
	}
	preprocess(t, c, p, nvme.Success)
	l := vendorLog(t, c)
	assert.EqualValues(t, 4096, l.FlashLent.Bytes)
	assert.EqualValues(t, 1, l.FlashLent.Commands)
	assert.Zero(t, l.FlashToDRAM.Bytes)
	flash.term.Store(0)
	preprocess(t, c, p, nvme.Success)
	l = vendorLog(t, c)
	assert.EqualValues(t, 4096, l.FlashLent.Bytes)
	assert.EqualValues(t, 4096, l.FlashToDRAM.Bytes, "what is not lent is copied")
	assert.EqualValues(t, 16, d.Counters().SectorsRead)
}
