package controller

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/cs"
)

// preprocess marshals and sends a Preprocess.
func preprocess(t testing.TB, c nvme.Conn, p cs.Preprocess, want nvme.Status) uint64 {
	t.Helper()
	b, err := p.Marshal()
	require.NoError(t, err)
	out := io(t, c, cs.PreprocessCommand(uint32(len(b))), b, want)
	return out.Result()
}

func execute(t testing.TB, c nvme.Conn, slot uint16, ranges []cs.Range, args []byte, want nvme.Status) uint64 {
	t.Helper()
	request, err := cs.Execute(slot, ranges, args)
	require.NoError(t, err)
	out := io(t, c, request.Command, request.Data, want)
	return out.Result()
}

func TestStoreThenFetch(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	at := reserve(t, c, 64<<10)
	want := pattern(1001, 1)
	io(t, c, cs.Store(at+3, 1001), want, nvme.Success)
	assert.Equal(t, want, d.compute.slm[at+3:at+3+1001])
	got := make([]byte, 1001)
	io(t, c, cs.Fetch(at+3, 1001), got, nvme.Success)
	assert.Equal(t, want, got)
	io(t, c, cs.MemoryRead(at+4, 996), got[:996], nvme.Success)
	assert.Equal(t, want[1:997], got[:996])
	io(t, c, cs.MemoryWrite(at, 8), []byte("ABCDEFGH"), nvme.Success)
	view, ok := c.(nvme.Mapper).MapSLM(at, 8)
	require.True(t, ok)
	assert.Equal(t, "ABCDEFGH", string(view))
	assert.Equal(t, 8, cap(view), "the view ends where the range ends")
	l := vendorLog(t, c)
	assert.Equal(t, uint64(1001+8), l.HostToDRAM.Bytes)
	assert.Equal(t, uint64(1001+996), l.DRAMToHost.Bytes)
	assert.Equal(t, uint64(2), l.DRAMToHost.Commands)
}

func vendorLog(t testing.TB, c nvme.Conn) cs.Log {
	t.Helper()
	b := make([]byte, 4096)
	admin(t, c, nvme.GetLog(nvme.LogVendor, 0, 0, 4096), b, nvme.Success)
	var l cs.Log
	require.NoError(t, l.Unmarshal(b))
	return l
}

func TestMemoryAccessAtItsLimits(t *testing.T) {
	c := newDrive(t).connect()
	reserve(t, c, testSLM)
	for _, test := range []struct {
		name             string
		address          uint64
		length           uint32
		vendor, standard nvme.Status
	}{
		{"last dword", testSLM - 4, 4, nvme.Success, nvme.Success},
		{"past the end", testSLM - 4, 8, nvme.LBAOutOfRange, nvme.LBAOutOfRange},
		{"after the end", testSLM, 4, nvme.LBAOutOfRange, nvme.LBAOutOfRange},
		{"sum wraps", ^uint64(3), 8, nvme.LBAOutOfRange, nvme.LBAOutOfRange},
		{"no bytes", 0, 0, nvme.InvalidField, nvme.InvalidField},
		{"odd length", 0, 5, nvme.Success, nvme.InvalidField},
		{"odd address", 1, 4, nvme.Success, nvme.InvalidField},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := make([]byte, test.length)
			io(t, c, cs.Fetch(test.address, test.length), data, test.vendor)
			io(t, c, cs.Store(test.address, test.length), data, test.vendor)
			io(t, c, cs.MemoryRead(test.address, test.length), data, test.standard)
			io(t, c, cs.MemoryWrite(test.address, test.length), data, test.standard)
			io(t, c, cs.MemoryFill(test.address, test.length, 1), nil, test.standard)
		})
	}
}

func TestMemoryFillRepeatsItsPattern(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	at := reserve(t, c, 8192)
	for _, length := range []uint32{4, 12, 4096, 4100} {
		clear(d.compute.slm)
		io(t, c, cs.MemoryFill(at+4, length, 0x44332211), nil, nvme.Success)
		for i := range uint32(8192) {
			want := byte(0)
			if i >= 4 && i < 4+length {
				want = []byte{0x11, 0x22, 0x33, 0x44}[i%4]
			}
			require.Equal(t, want, d.compute.slm[at+uint64(i)], "byte %d of a fill of %d", i, length)
		}
	}
}

func TestMemoryCopyFromBlocks(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	copy(d.flash.data, pattern(testFlash, 5))
	at := reserve(t, c, 64<<10)
	m := cs.MemoryCopy{Len: 5 * 512, Dest: at + 4, Sources: 2, Format: cs.CopyFormatBlocks}
	data := cs.BlockSource{NSID: 1, Blocks: 2, SLBA: 7}.AppendTo(nil)
	data = cs.BlockSource{NSID: 1, Blocks: 3, SLBA: 100}.AppendTo(data)
	io(t, c, m.Command(), data, nvme.Success)
	assert.Equal(t, d.flash.data[7*512:9*512], d.compute.slm[at+4:at+4+1024])
	assert.Equal(t, d.flash.data[100*512:103*512], d.compute.slm[at+4+1024:at+4+2560])
	l := vendorLog(t, c)
	assert.Equal(t, uint64(5*512), l.FlashToDRAM.Bytes)
	assert.Equal(t, uint64(5), d.Counters().SectorsRead)

	for name, test := range map[string]struct {
		change func(*cs.MemoryCopy)
		data   []byte
		want   nvme.Status
	}{
		"sum too small":      {func(m *cs.MemoryCopy) { m.Len -= 512 }, data, nvme.InvalidField},
		"sum too large":      {func(m *cs.MemoryCopy) { m.Len += 512 }, data, nvme.InvalidField},
		"no length":          {func(m *cs.MemoryCopy) { m.Len = 0 }, data, nvme.InvalidField},
		"odd destination":    {func(m *cs.MemoryCopy) { m.Dest++ }, data, nvme.InvalidField},
		"unknown format":     {func(m *cs.MemoryCopy) { m.Format = 3 }, data, nvme.InvalidField},
		"past the memory":    {func(m *cs.MemoryCopy) { m.Dest = testSLM - 2556 }, data, nvme.LBAOutOfRange},
		"up to memory's end": {func(m *cs.MemoryCopy) { m.Dest = testSLM - 2560 }, data, nvme.AccessDenied},
		"source not there": {nil, append(data[:32:32], cs.BlockSource{NSID: 9, Blocks: 3}.AppendTo(nil)...),
			nvme.InvalidNamespace},
		"source is memory": {nil, append(data[:32:32], cs.BlockSource{NSID: 2, Blocks: 3}.AppendTo(nil)...),
			nvme.IncompatibleNamespace},
		"source out of range": {nil, append(data[:32:32], cs.BlockSource{NSID: 1, Blocks: 3,
			SLBA: d.Blocks() - 2}.AppendTo(nil)...),
			nvme.LBAOutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			changed := m
			if test.change != nil {
				test.change(&changed)
			}
			io(t, c, changed.Command(), test.data, test.want)
		})
	}
}

func TestMemoryCopyInsideMemory(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	at := reserve(t, c, 64<<10)
	copy(d.compute.slm[at:], pattern(8192, 7))
	src := func(address uint64, length uint32) []byte {
		return cs.MemorySource{NSID: 2, Addr: address, Len: length}.AppendTo(nil)
	}
	m := cs.MemoryCopy{Len: 12, Dest: at + 16384, Sources: 2, Format: cs.CopyFormatMemory}
	io(t, c, m.Command(), append(src(at+8, 8), src(at, 4)...), nvme.Success)
	want := append(append([]byte(nil), d.compute.slm[at+8:at+16]...), d.compute.slm[at:at+4]...)
	assert.Equal(t, want, d.compute.slm[at+16384:at+16396])
	io(t, c, m.Command(), append(src(at+16380, 8), src(at, 4)...), nvme.OverlappingIORange)
	io(t, c, m.Command(), append(src(at, 8), src(at, 8)...), nvme.InvalidField)
	io(t, c, m.Command(), append(src(at, 4), src(at, 4)...), nvme.InvalidField)
	io(t, c, m.Command(), append(src(at+128<<10, 8), src(at, 4)...), nvme.AccessDenied)
	io(t, c, m.Command(), append(src(testSLM, 8), src(at, 4)...), nvme.LBAOutOfRange)
	bad := cs.MemorySource{NSID: 1, Addr: at, Len: 8}.AppendTo(nil)
	io(t, c, m.Command(), append(bad, src(at, 4)...), nvme.InvalidMemoryNamespace)
}

// The two command sets are two faces of one core: the same copies, ranges and arguments leave the same bytes and
// result.
func TestPreprocessEqualsCopyAndExecute(t *testing.T) {
	image := pattern(testFlash, 1)
	rapid.Check(t, func(rt *rapid.T) {
		var p cs.Preprocess
		at := uint64(0)
		for range rapid.IntRange(0, cs.MaxRanges).Draw(rt, "ranges") {
			at += uint64(rapid.IntRange(0, 64).Draw(rt, "gap"))
			n := uint64(rapid.IntRange(0, 20000).Draw(rt, "length"))
			p.Ranges = append(p.Ranges, cs.Range{Addr: at, Len: n})
			at += n
		}
		for range rapid.IntRange(0, 6).Draw(rt, "copies") {
			p.Copies = append(p.Copies, cs.Copy{
				NSID: 1, NLB: uint32(rapid.IntRange(1, 300).Draw(rt, "blocks")), SLBA: uint64(rapid.IntRange(0, 7000).Draw(rt,
					"lba")),
				Dest: uint64(rapid.IntRange(0, 200000).Draw(rt, "destination")) * 4,
			})
		}
		p.Args = rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "args")

		type outcome struct {
			result   uint64
			memory   []byte
			counters health.Counters
			moved    cs.Movement
		}
		run := func(do func(nvme.Conn) uint64) outcome {
			slm := newStub(testSLM)
			d, err := New(Options{Flash: &memFlash{data: image}, Compute: slm})
			require.NoError(t, err)
			c, err := Local(d, HostID{})
			require.NoError(t, err)
			defer c.Close()
			reserve(t, c, testSLM)
			result := do(c)
			return outcome{result, slm.slm, d.Counters(), vendorLog(t, c).FlashToDRAM}
		}
		vendor := run(func(c nvme.Conn) uint64 { return preprocess(t, c, p, nvme.Success) })
		standard := run(func(c nvme.Conn) uint64 {
			copies, err := cs.MemoryCopies(p.Copies, 512)
			require.NoError(t, err)
			for _, request := range copies {
				io(t, c, request.Command, request.Data, nvme.Success)
			}
			return execute(t, c, 0, p.Ranges, p.Args, nvme.Success)
		})
		require.Equal(rt, vendor.result, standard.result)
		require.True(rt, bytes.Equal(vendor.memory, standard.memory))
		require.Equal(rt, vendor.counters.SectorsRead, standard.counters.SectorsRead)
		require.Equal(rt, vendor.moved.Bytes, standard.moved.Bytes)
	})
}

func TestPreprocessChecksEverythingBeforeItMoves(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	copy(d.flash.data, pattern(testFlash, 1))
	at := reserve(t, c, 64<<10)
	ok := cs.Copy{NSID: 1, NLB: 1, SLBA: 0, Dest: at}
	for name, test := range map[string]struct {
		descriptor cs.Preprocess
		want       nvme.Status
	}{
		"range past the memory": {cs.Preprocess{Ranges: []cs.Range{{Addr: testSLM - 1, Len: 2}}},
			nvme.InvalidMemoryRangeSet},
		"range wraps": {cs.Preprocess{Ranges: []cs.Range{{Addr: ^uint64(0), Len: 2}}},
			nvme.InvalidMemoryRangeSet},
		"range not reserved": {cs.Preprocess{Ranges: []cs.Range{{Addr: at + 64<<10 - 1, Len: 2}}}, nvme.AccessDenied},
		"ranges overlap": {cs.Preprocess{Ranges: []cs.Range{{Addr: at, Len: 8}, {Addr: at + 7, Len: 8}}},
			nvme.OverlappingMemoryRanges},
		"copy of no blocks": {cs.Preprocess{Copies: []cs.Copy{ok, {NSID: 1, Dest: at}}}, nvme.InvalidField},
		"copy from no namespace": {cs.Preprocess{Copies: []cs.Copy{ok, {NSID: 4, NLB: 1, Dest: at}}},
			nvme.InvalidNamespace},
		"copy from memory": {cs.Preprocess{Copies: []cs.Copy{ok, {NSID: 2, NLB: 1, Dest: at}}},
			nvme.IncompatibleNamespace},
		"copy past the flash": {cs.Preprocess{Copies: []cs.Copy{ok, {NSID: 1, NLB: 2, SLBA: d.Blocks() - 1, Dest: at}}},
			nvme.LBAOutOfRange},
		"copy past the memory": {cs.Preprocess{Copies: []cs.Copy{ok, {NSID: 1, NLB: 1, Dest: testSLM - 511}}},
			nvme.LBAOutOfRange},
		"copy to what is not ours": {cs.Preprocess{Copies: []cs.Copy{ok, {NSID: 1, NLB: 2, Dest: at + 64<<10 - 512}}},
			nvme.AccessDenied},
		"more than the memory": {cs.Preprocess{Copies: []cs.Copy{ok, {NSID: 1, NLB: testSLM / 512, Dest: 0}}},
			nvme.SizeLimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			preprocess(t, c, test.descriptor, test.want)
			assert.Equal(t, make([]byte, testSLM), d.compute.slm)
		})
	}
	assert.Zero(t, d.Counters().SectorsRead)
}

func TestNumberOfRangesAtItsLimits(t *testing.T) {
	c := newDrive(t).connect()
	for ranges, want := range map[int]nvme.Status{
		cs.MaxRanges - 1: nvme.Success, cs.MaxRanges: nvme.Success, cs.MaxRanges + 1: nvme.MemoryRangesExceeded,
	} {
		descriptor := cs.Preprocess{Args: make([]byte, 16*ranges)} // the builder does not make more than eight
		b, err := descriptor.Marshal()
		require.NoError(t, err)
		b[2], b[8], b[9] = byte(ranges), 0, 0 // so what were arguments are ranges of no bytes
		io(t, c, cs.PreprocessCommand(uint32(len(b))), b, want)
		execution := cs.Execution{Ranges: uint32(ranges), DataLen: uint32(ranges) * cs.MemoryRangeSize}
		data := make([]byte, execution.DataLen)
		for i := range ranges {
			data[i*cs.MemoryRangeSize] = cs.NamespaceSLM
		}
		io(t, c, execution.Command(), data, want)
	}
	short := make([]byte, cs.PreprocessHeader)
	short[0] = cs.PreprocessVersion
	io(t, c, cs.PreprocessCommand(cs.PreprocessHeader), short, nvme.Success)
	io(t, c, cs.PreprocessCommand(cs.PreprocessHeader-1), short[:15], nvme.InvalidField)
	short[0]++
	io(t, c, cs.PreprocessCommand(cs.PreprocessHeader), short, nvme.InvalidField)
}

func TestPreprocessStopsAtAReadError(t *testing.T) {
	var broken brokenParts
	d := newDrive(t, func(o *Options) { o.Flash, o.Compute = broken.wrapFlash(o.Flash), broken.wrapCompute(o.Compute) })
	c := d.connect()
	at := reserve(t, c, 64<<10)
	broken.failRead(3*512, 512, errors.New("worn out"))
	p := cs.Preprocess{Copies: []cs.Copy{{NSID: 1, NLB: 8, Dest: at}}}
	preprocess(t, c, p, nvme.UnrecoveredReadError)
	page := make([]byte, 4096)
	admin(t, c, nvme.GetLog(nvme.LogErrors, 0, 0, 4096), page, nvme.Success)
	assert.Equal(t, uint64(3), nvme.UnmarshalErrors(page)[0].LBA)
	broken.mend()
	broken.failExecute(1, cs.StatusProgramFault, 0x1122334455667788)
	preprocess(t, c, p, nvme.Success)
	b, _ := p.Marshal()
	cmd := cs.PreprocessCommand(uint32(len(b)))
	out, err := c.IO(context.Background(), &cmd, b)
	require.ErrorIs(t, err, cs.StatusProgramFault)
	assert.Equal(t, uint64(0x1122334455667788), out.Result(), "the result says why the program failed")
	preprocess(t, c, p, nvme.Success)
}

func TestExecuteOverInlineRangesOrASet(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	at := reserve(t, c, 64<<10)
	copy(d.compute.slm[at:], pattern(4096, 1))
	ranges := []cs.Range{{Addr: at, Len: 100}, {Addr: at + 100, Len: 200}, {Addr: at + 300, Len: 8}}
	want := execute(t, c, 0, ranges, []byte("args"), nvme.Success)

	inline, err := cs.Execute(0, ranges, []byte("args"))
	require.NoError(t, err)
	inline.Command.SetDW(4, 0) // as Linux's passthrough leaves it
	out := io(t, c, inline.Command, inline.Data, nvme.Success)
	assert.Equal(t, want, out.Result())

	set, err := cs.CreateRangeSet(ranges)
	require.NoError(t, err)
	created := admin(t, c, set.Command, set.Data, nvme.Success)
	overSet := cs.ExecuteSet(0, uint16(created.DW0()), []byte("args"))
	out = io(t, c, overSet.Command, overSet.Data, nvme.Success)
	assert.Equal(t, want, out.Result())

	for name, test := range map[string]struct {
		execution cs.Execution
		dataBytes int
		want      nvme.Status
	}{
		"both a set and ranges":     {cs.Execution{Set: 1, Ranges: 1, DataLen: 32}, 32, nvme.InvalidField},
		"no such set":               {cs.Execution{Set: 2, DataLen: 4}, 4, nvme.InvalidMemoryRangeSetID},
		"nine ranges":               {cs.Execution{Ranges: 9, DataLen: 9 * 32}, 9 * 32, nvme.MemoryRangesExceeded},
		"less data than ranges":     {cs.Execution{Ranges: 2, DataLen: 63}, 63, nvme.InvalidField},
		"range of no memory":        {cs.Execution{Ranges: 1, DataLen: 32}, 32, nvme.InvalidMemoryNamespace},
		"no program there":          {cs.Execution{Slot: 1, DataLen: 4}, 4, nvme.NoProgram},
		"last slot and one past it": {cs.Execution{Slot: 4, DataLen: 4}, 4, nvme.InvalidProgramIndex},
	} {
		t.Run(name, func(t *testing.T) {
			io(t, c, test.execution.Command(), make([]byte, test.dataBytes), test.want)
		})
	}
}

func TestMemoryRangeSets(t *testing.T) {
	d := newDrive(t)
	a, b := d.connect(), d.connect()
	createSet := func(c nvme.Conn, want nvme.Status, ranges ...cs.Range) uint16 {
		t.Helper()
		request, err := cs.CreateRangeSet(ranges)
		require.NoError(t, err)
		out := admin(t, c, request.Command, request.Data, want)
		return uint16(out.DW0())
	}
	id := createSet(a, nvme.Success, cs.Range{Addr: 0, Len: 4096}, cs.Range{Addr: 8192, Len: 4096})
	assert.Equal(t, uint16(1), id)
	io(t, a, cs.Store(8192, 4096), make([]byte, 4096), nvme.Success) // creating it reserved the memory
	io(t, a, cs.Store(4096, 4), make([]byte, 4), nvme.AccessDenied)
	io(t, b, cs.Store(0, 4), make([]byte, 4), nvme.AccessDenied)
	createSet(b, nvme.InsufficientResources, cs.Range{Addr: 4092, Len: 8})
	createSet(b, nvme.Success, cs.Range{Addr: 4096, Len: 4})
	createSet(a, nvme.OverlappingMemoryRanges, cs.Range{Addr: 0, Len: 8}, cs.Range{Addr: 4, Len: 8})
	createSet(a, nvme.InvalidMemoryRangeSet, cs.Range{Addr: 2, Len: 4})
	createSet(a, nvme.InvalidMemoryRangeSet, cs.Range{Addr: 0, Len: 2})
	createSet(a, nvme.InvalidMemoryRangeSet, cs.Range{Addr: testSLM - 4, Len: 8})
	second := createSet(a, nvme.Success, cs.Range{Addr: 0, Len: 16}) // sets of one association may share memory
	admin(t, b, cs.DeleteRangeSet(second), nil, nvme.InvalidMemoryRangeSetID)

	page := make([]byte, 4096)
	admin(t, a, nvme.GetLog(nvme.LogMemoryRangeSets, 3, 0, 4096), page, nvme.Success)
	want := cs.MarshalRangeSets([]cs.MemoryRangeSet{
		{ID: 1, Ranges: []cs.Range{{Addr: 0, Len: 4096}, {Addr: 8192, Len: 4096}}},
		{ID: 2, Ranges: []cs.Range{{Addr: 0, Len: 16}}},
	})
	assert.Equal(t, want, page[:len(want)])

	admin(t, a, cs.DeleteRangeSet(id), nil, nvme.Success)
	admin(t, a, cs.DeleteRangeSet(id), nil, nvme.InvalidMemoryRangeSetID)
	io(t, a, cs.Store(0, 16), make([]byte, 16), nvme.Success) // the second set still holds it
	io(t, a, cs.Store(0, 20), make([]byte, 20), nvme.AccessDenied)
	for n := 1; n < MaxRangeSets; n++ {
		createSet(a, nvme.Success, cs.Range{Addr: 0, Len: 16})
	}
	createSet(a, nvme.MemoryRangeSetsExceeded, cs.Range{Addr: 0, Len: 16})

	bad := cs.RangeSet{}
	cmd := cs.DeleteRangeSet(0)
	cmd.SetDW(10, 2) // an unknown selection
	admin(t, a, cmd, nil, nvme.InvalidField)
	cmd = cs.DeleteRangeSet(bad.ID)
	cmd.SetNSID(2)
	admin(t, a, cmd, nil, nvme.InvalidNamespace)
	cmd = cs.DeleteRangeSet(0)
	cmd.SetDW(10, cs.SelectCreate)
	cmd.SetDW(11, 9)
	cmd.SetData(9 * 32)
	admin(t, a, cmd, make([]byte, 9*32), nvme.MemoryRangesExceeded)
	cmd.SetDW(11, 0)
	cmd.SetData(0)
	admin(t, a, cmd, nil, nvme.InvalidField)
}

func TestWhatAnExecutionUsesIsNotGivenBack(t *testing.T) {
	d := newDrive(t)
	d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
	c := d.connect()
	at := reserve(t, c, 8192)
	other := reserve(t, c, 4096)
	create, err := cs.CreateRangeSet([]cs.Range{{Addr: at, Len: 4096}})
	require.NoError(t, err)
	set := admin(t, c, create.Command, create.Data, nvme.Success)
	done := make(chan uint64)
	go func() { done <- preprocess(t, c, cs.Preprocess{Ranges: []cs.Range{{Addr: at, Len: 4}}}, nvme.Success) }()
	<-d.compute.started
	admin(t, c, cs.SLMRelease(at, 8192), nil, nvme.Success) // the set holds what is used
	admin(t, c, cs.DeleteRangeSet(uint16(set.DW0())), nil, nvme.MemoryRangeSetInUse)
	admin(t, c, cs.SLMReserve(at, 4096), nil, nvme.OverlappingMemoryRanges)
	admin(t, c, cs.SLMRelease(other, 4096), nil, nvme.Success)
	admin(t, c, cs.Activation(0, false), nil, nvme.ProgramInUse)
	admin(t, c, nvme.KeepAlive(), nil, nvme.Success) // waits for nothing
	io(t, c, cs.Fetch(at, 4), make([]byte, 4), nvme.Success)
	close(d.compute.hold)
	<-done
	admin(t, c, cs.DeleteRangeSet(uint16(set.DW0())), nil, nvme.Success)
}

// One of two claims can give back memory that both hold, but a set that an execution names stays until the execution
// ends.
func TestWhatIsSharedIsInUseByItsLastHolder(t *testing.T) {
	for name, overSet := range map[string]bool{"execution over ranges": false, "execution over the set": true} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			d.compute.started, d.compute.hold = make(chan struct{}), make(chan struct{})
			c := d.connect()
			at := reserve(t, c, 8192)
			var sets []uint16
			for range 2 {
				set, err := cs.CreateRangeSet([]cs.Range{{Addr: at, Len: 4096}, {Addr: at + 8192, Len: 64}})
				require.NoError(t, err)
				created := admin(t, c, set.Command, set.Data, nvme.Success)
				sets = append(sets, uint16(created.DW0()))
			}
			done := make(chan error, 1)
			go func() {
				cmd, data := cs.ExecuteSet(0, sets[0], nil).Command, []byte(nil)
				if !overSet {
					inline, _ := cs.Execute(0, []cs.Range{{Addr: at, Len: 64}, {Addr: at + 8192, Len: 64}}, nil)
					cmd, data = inline.Command, inline.Data
				}
				_, err := c.IO(context.Background(), &cmd, data)
				done <- err
			}()
			<-d.compute.started
			admin(t, c, cs.SLMRelease(at, 8192), nil, nvme.Success)
			kept := sets[1] // the memory of an execution over ranges stays in use by the last set that holds it
			if overSet {
				kept = sets[0]
				admin(t, c, cs.DeleteRangeSet(sets[0]), nil, nvme.MemoryRangeSetInUse)
				admin(t, c, cs.DeleteRangeSet(sets[1]), nil, nvme.Success)
			} else {
				admin(t, c, cs.DeleteRangeSet(sets[0]), nil, nvme.Success)
				admin(t, c, cs.DeleteRangeSet(sets[1]), nil, nvme.MemoryRangeSetInUse)
			}
			close(d.compute.hold)
			require.NoError(t, <-done)
			admin(t, c, cs.DeleteRangeSet(kept), nil, nvme.Success)
			require.Zero(t, d.slm.Reserved())
		})
	}
}
