package cs

import (
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
)

// entry writes a submission entry as its sixteen dwords.
func entry(c nvme.Command) string {
	s := ""
	for i := range 16 {
		s += fmt.Sprintf("%08x ", c.DW(i))
	}
	return s[:len(s)-1]
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestGoldenEntries(t *testing.T) {
	chunk := Chunk{Slot: 0x1234, Size: 0x1000, Offset: 0x200, Len: 0x100, PUID: 0x1122334455667788}
	ranges := []Range{{Addr: 0x1_0000_0000, Len: 0x20}, {Addr: 0x40, Len: 0}}
	for name, c := range map[string]struct {
		cmd  nvme.Command
		want string
	}{
		"preprocess": {PreprocessCommand(0x123),
			"00004081 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000123 5a000000 00000000 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"fetch": {Fetch(0x1_0000_0002, 0x33),
			"00004082 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000033 5a000000 00000002 00000001 " +
				"00000033 00000000 00000000 00000000"},
		"store": {Store(0x1_0000_0002, 0x33),
			"00004085 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000033 5a000000 00000002 00000001 " +
				"00000033 00000000 00000000 00000000"},
		"image download": {ImageDownload(chunk),
			"000040c1 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000100 5a000000 00001234 00001000 " +
				"00000200 00000100 55667788 11223344"},
		"image activate": {ImageActivate(2),
			"000040c4 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000002 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"reserve": {SLMReserve(AnyAddress, 0x1_0000_1000),
			"000040c8 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 ffffffff ffffffff " +
				"00001000 00000001 00000000 00000000"},
		"release": {SLMRelease(0x1000, 0x2000),
			"000040cc 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00001000 00000000 " +
				"00002000 00000000 00000000 00000000"},
		"memory copy": {MemoryCopy{Len: 0x1_0000_0004, Dest: 0x2_0000_0008, Sources: 256, Format: 2}.Command(),
			"00004001 00000002 00000004 00000001 00000000 00000000 00000000 00000000 00002000 5a000000 00000008 00000002 " +
				"000002ff 00000000 00000000 00000000"},
		"memory read": {MemoryRead(0x1_0000_0004, 8),
			"00004002 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000008 5a000000 00000004 00000001 " +
				"00000008 00000000 00000000 00000000"},
		"memory write": {MemoryWrite(4, 8),
			"00004005 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000008 5a000000 00000004 00000000 " +
				"00000008 00000000 00000000 00000000"},
		"memory fill": {MemoryFill(4, 8, 0xdeadbeef),
			"00004004 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000004 00000000 " +
				"00000008 deadbeef 00000000 00000000"},
		"execute": {must(Execute(3, ranges, []byte("ab"))).Command,
			"00004001 00000003 00000003 00000002 00000042 00000000 00000000 00000000 00000042 5a000000 00000000 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"execute over a set": {ExecuteSet(3, 9, []byte("ab")).Command,
			"00004001 00000003 00090003 00000000 00000002 00000000 00000000 00000000 00000002 5a000000 00000000 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"load program": {LoadProgram(chunk),
			"00004085 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000100 5a000000 02c11234 00001000 " +
				"55667788 11223344 00000100 00000200"},
		"unload program": {UnloadProgram(2),
			"00004085 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 01000002 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"activate": {Activation(2, true),
			"00004088 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00010002 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"deactivate": {Activation(2, false),
			"00004088 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000002 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"create range set": {must(CreateRangeSet(ranges)).Command,
			"00004089 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000040 5a000000 00000000 00000002 " +
				"00000000 00000000 00000000 00000000"},
		"delete range set": {DeleteRangeSet(0x1234),
			"00004089 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 12340001 00000000 " +
				"00000000 00000000 00000000 00000000"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, entry(c.cmd))
			assert.NotEqual(t, nvme.Bidirectional, c.cmd.Direction(), "Linux resets a controller over these")
		})
	}
	zeros := func(n int) string { return hex.EncodeToString(make([]byte, n)) }
	first, second := "0200000020000000"+"0000000001000000"+zeros(16), "0200000000000000"+"4000000000000000"+zeros(16)
	assert.Equal(t, first+second+"6162", hex.EncodeToString(must(Execute(3, ranges, []byte("ab"))).Data))
	assert.Equal(t, first+second, hex.EncodeToString(must(CreateRangeSet(ranges)).Data))
	assert.Equal(t, "0100000000000000"+"0900000000000000"+"0700"+zeros(14),
		hex.EncodeToString(BlockSource{NSID: 1, Blocks: 8, SLBA: 9}.AppendTo(nil)))
	assert.Equal(t, "0200000000000000"+"0900000000000000"+"08000000"+zeros(12),
		hex.EncodeToString(MemorySource{NSID: 2, Addr: 9, Len: 8}.AppendTo(nil)))
}

func TestParsersUndoBuilders(t *testing.T) {
	k := Chunk{Slot: 3, Size: 100, Offset: 10, Len: 20, PUID: 1 << 60}
	c := ImageDownload(k)
	assert.Equal(t, k, ParseImageDownload(&c))
	c = LoadProgram(k)
	assert.Equal(t, Load{Chunk: k, Type: ProgramTypeImage, Identity: IdentityPUID}, ParseLoad(&c))
	c = UnloadProgram(3)
	assert.Equal(t, Load{Chunk: Chunk{Slot: 3}, Unload: true}, ParseLoad(&c))
	c = ImageActivate(7)
	slot, test := ParseImageActivate(&c)
	assert.Equal(t, uint16(7), slot)
	assert.False(t, test)
	c = ImageTest(7)
	assert.EqualValues(t, 1, c.DW(11))
	slot, test = ParseImageActivate(&c)
	assert.Equal(t, uint16(7), slot)
	assert.True(t, test)
	c = SLMReserve(1<<40, 1<<41)
	assert.Equal(t, Range{1 << 40, 1 << 41}, ParseReservation(&c))
	c = Fetch(1<<40, 9)
	assert.Equal(t, Memory{1 << 40, 9}, ParseMemory(&c))
	for _, n := range []int{1, 256} {
		m := MemoryCopy{Len: 1 << 33, Dest: 1 << 34, Sources: n, Format: CopyFormatMemory}
		c = m.Command()
		assert.Equal(t, m, ParseMemoryCopy(&c))
	}
	e := Execution{Slot: 1, Set: 2, Ranges: 3, DataLen: 4, Param1: 5 << 40, Param2: 6 << 40}
	c = e.Command()
	assert.Equal(t, e, ParseExecution(&c))
	c = Activation(9, true)
	slot, sel := ParseActivation(&c)
	assert.Equal(t, uint16(9), slot)
	assert.Equal(t, uint8(SelectActivate), sel)
	c = DeleteRangeSet(5)
	assert.Equal(t, RangeSet{Select: SelectDelete, ID: 5}, ParseRangeSet(&c))
	b := BlockSource{NSID: 1, Blocks: nvme.MaxBlocks, SLBA: 2}
	assert.Equal(t, b, ParseBlockSource(b.AppendTo(make([]byte, 32)), 1))
	m := MemorySource{NSID: 1, Addr: 2, Len: 3}
	assert.Equal(t, m, ParseMemorySource(m.AppendTo(make([]byte, 32)), 1))
	r := MemoryRange{NSID: 1, Len: 2, Addr: 3}
	assert.Equal(t, r, ParseMemoryRange(r.AppendTo(make([]byte, 32)), 1))
}

func TestBuildersRefuseWhatDoesNotFit(t *testing.T) {
	nine := make([]Range, MaxRanges+1)
	_, err := Execute(0, nine, nil)
	assert.ErrorContains(t, err, "9 memory ranges")
	_, err = Execute(0, nine[:MaxRanges], nil)
	assert.NoError(t, err)
	_, err = CreateRangeSet(nine)
	assert.Error(t, err)
	_, err = CreateRangeSet(nil)
	assert.Error(t, err)
	big := []Range{{Len: math.MaxUint32 + 1}}
	_, err = Execute(0, big, nil)
	assert.ErrorContains(t, err, "32 bits")
	_, err = CreateRangeSet(big)
	assert.Error(t, err)
	big[0].Len--
	_, err = CreateRangeSet(big)
	assert.NoError(t, err)
	_, err = (&Preprocess{Ranges: nine}).Marshal()
	assert.Error(t, err)
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		a, b Range
		want bool
	}{
		{Range{0, 4}, Range{4, 4}, false}, {Range{0, 5}, Range{4, 4}, true}, {Range{4, 4}, Range{0, 5}, true}, {Range{0, 10},
			Range{3, 1}, true},
		{Range{3, 0}, Range{0, 10}, false}, {Range{0, 10}, Range{3, 0}, false}, {Range{5, 1}, Range{5, 1}, true},
	} {
		assert.Equal(t, c.want, c.a.Overlaps(c.b), "%v %v", c.a, c.b)
	}
	end, ok := Range{math.MaxUint64 - 1, 1}.Ends()
	assert.True(t, ok)
	assert.Equal(t, uint64(math.MaxUint64), end)
	_, ok = Range{math.MaxUint64, 1}.Ends()
	assert.False(t, ok)
}

func TestMemoryCopiesSplitsAndJoins(t *testing.T) {
	parse := func(all []Transfer) (out []MemoryCopy, sources [][]BlockSource) {
		for _, x := range all {
			m := ParseMemoryCopy(&x.Command)
			out = append(out, m)
			require.Equal(t, int(x.Command.DataLength()), len(x.Data))
			var s []BlockSource
			for i := range m.Sources {
				s = append(s, ParseBlockSource(x.Data, i))
			}
			sources = append(sources, s)
		}
		return out, sources
	}
	all, err := MemoryCopies([]Copy{
		{1, 2, 10, 1000}, {1, 1, 20, 2024}, // a neighbour in memory
		{1, 1, 21, 0},            // not one
		{1, 65537, 100, 1 << 30}, // more than a descriptor counts
	}, 512)
	require.NoError(t, err)
	cmds, sources := parse(all)
	assert.Equal(t, []MemoryCopy{
		{3 * 512, 1000, 2, CopyFormatBlocks}, {512, 0, 1, CopyFormatBlocks}, {65537 * 512, 1 << 30, 2, CopyFormatBlocks},
	}, cmds)
	assert.Equal(t, [][]BlockSource{{{1, 2, 10}, {1, 1, 20}}, {{1, 1, 21}}, {{1, 65536, 100}, {1, 1, 65636}}}, sources)

	var many []Copy
	for i := range uint64(MaxCopySources + 1) {
		many = append(many, Copy{1, 1, 2 * i, 4096 * i})
	}
	all, err = MemoryCopies(many, 4096)
	require.NoError(t, err)
	cmds, _ = parse(all)
	assert.Equal(t, []MemoryCopy{{256 * 4096, 0, 256, 2}, {4096, 256 * 4096, 1, 2}}, cmds)

	all, err = MemoryCopies(nil, 512)
	require.NoError(t, err)
	assert.Empty(t, all)
	_, err = MemoryCopies([]Copy{{1, 0, 0, 0}}, 512)
	assert.ErrorContains(t, err, "copy 0 of 1")
}
