package cs

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawPreprocess(t *rapid.T) Preprocess {
	var p Preprocess
	for range rapid.IntRange(0, MaxRanges).Draw(t, "ranges") {
		p.Ranges = append(p.Ranges, Range{rapid.Uint64().Draw(t, "addr"), rapid.Uint64().Draw(t, "len")})
	}
	for range rapid.IntRange(0, 20).Draw(t, "copies") {
		p.Copies = append(p.Copies, Copy{
			rapid.Uint32().Draw(t, "nsid"), rapid.Uint32().Draw(t, "blocks"), rapid.Uint64().Draw(t,
				"lba"), rapid.Uint64().Draw(t, "dest"),
		})
	}
	p.Args = rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "args")
	return p
}

func TestPreprocessRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPreprocess(t)
		b, err := p.AppendTo([]byte("before"))
		require.NoError(t, err)
		require.Len(t, b, 6+PreprocessHeader+len(p.Ranges)*rangeSize+len(p.Copies)*copySize+len(p.Args))
		back := Preprocess{Ranges: make([]Range, 3), Copies: make([]Copy, 3)} // reused
		require.NoError(t, back.Unmarshal(b[6:]))
		require.Equal(t, len(p.Ranges), len(back.Ranges))
		require.True(t, len(p.Ranges) == 0 || assert.ObjectsAreEqual(p.Ranges, back.Ranges))
		require.True(t, len(p.Copies) == 0 || assert.ObjectsAreEqual(p.Copies, back.Copies))
		require.True(t, bytes.Equal(p.Args, back.Args))
		for n := range len(b) - 6 {
			require.Error(t, back.Unmarshal(b[6:6+n]), "cut to %d bytes", n)
		}
		require.Error(t, back.Unmarshal(append(b[6:], 0)), "a byte too many")
	})
}

// TestPreprocessGolden holds the layout, which is the stable contract: a change of these bytes is a change of the
// version. A slice whose windows a host has stored names no copies, in the same version of the descriptor.
func TestPreprocessGolden(t *testing.T) {
	for _, c := range []struct {
		name  string
		value Preprocess
		want  string
	}{
		{
			"with copies",
			Preprocess{Ranges: []Range{{1, 2}}, Copies: []Copy{{NSID: 1, NLB: 8, SLBA: 9, Dest: 10}},
				Args: []byte{0xaa, 0xbb}},
			"01000100" + "01000000" + "02000000" + "00000000" + "0100000000000000" + "0200000000000000" +
				"01000000" + "08000000" + "0900000000000000" + "0a00000000000000" + "0000000000000000" + "aabb",
		},
		{
			"of stored windows", Preprocess{Ranges: []Range{{1, 2}}, Args: []byte{0xaa, 0xbb}},
			"01000100" + "00000000" + "02000000" + "00000000" + "0100000000000000" + "0200000000000000" + "aabb",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := c.value.Marshal()
			require.NoError(t, err)
			assert.Equal(t, c.want, hex.EncodeToString(b))
			var back Preprocess
			require.NoError(t, back.Unmarshal(b))
			assert.Equal(t, c.value.Ranges, back.Ranges)
			assert.Equal(t, c.value.Args, back.Args)
			assert.Len(t, back.Copies, len(c.value.Copies))
			for i := range back.Copies {
				assert.Equal(t, c.value.Copies[i], back.Copies[i])
			}
		})
	}
}

func TestPreprocessRefusesWhatItDoesNotKnow(t *testing.T) {
	p := Preprocess{Ranges: make([]Range, MaxRanges), Copies: []Copy{{NLB: 1}}}
	good, err := p.Marshal()
	require.NoError(t, err)
	for name, change := range map[string]func([]byte){
		"another version":      func(b []byte) { b[0] = 2 },
		"nine ranges":          func(b []byte) { b[2] = 9 },
		"copies past the end":  func(b []byte) { b[7] = 0x80 },
		"arguments past it":    func(b []byte) { b[8] = 1 },
		"reserved in header":   func(b []byte) { b[15] = 1 },
		"reserved in the copy": func(b []byte) { b[len(b)-1] = 1 },
	} {
		b := bytes.Clone(good)
		change(b)
		var back Preprocess
		assert.Error(t, back.Unmarshal(b), name)
	}
	var back Preprocess
	assert.ErrorIs(t, back.Unmarshal(good[:15]), ErrShort)
}

func TestLogRoundTrip(t *testing.T) {
	l := Log{
		Backend: "functional", Threads: 2, Uptime: 3, Rows: 4, Executions: 5, FlashToDRAM: Movement{6, 7,
			8}, DRAMToHost: Movement{9, 10, 11},
		HostToDRAM: Movement{12, 13, 14}, SLMBytes: 15, SLMReserved: 16,
		Units: []UnitCounter{
			{Name: "sigridhash", Version: 17, Rows: 18, Timing: Timing{2, 21, 10, 11}},
			{Name: "a unit's name of thirty-two byte", Timing: Timing{1, 1, 1, 1}},
		},
		Programs: []ProgramCounter{{ID: [32]byte{1, 31: 2}, Rows: 22, P: 1.5e6, Timing: Timing{3, 9, 2, 4}}},
	}
	b := l.Marshal()
	assert.Len(t, b, LogHeaderSize+3*LogEntrySize)
	assert.Equal(t, len(b), LogSize(b))
	assert.Equal(t, len(b), LogSize(b[:8]))
	var back Log
	require.NoError(t, back.Unmarshal(append(b, 0, 0, 0, 0)), "a host may read more than there is")
	assert.Equal(t, l, back)
	for n := range len(b) {
		require.Error(t, back.Unmarshal(b[:n]))
	}
	assert.Zero(t, LogSize(b[:7]))
	b[0] = 2
	assert.Zero(t, LogSize(b))
	assert.ErrorContains(t, back.Unmarshal(b), "version 2")
	b[0], b[3] = 1, 0xff
	assert.Zero(t, LogSize(b))
	assert.ErrorContains(t, back.Unmarshal(b), "at most 256")
}

func TestLogOffsets(t *testing.T) {
	l := Log{
		Backend: "rtl-sim", Threads: 2, Uptime: 3, Rows: 4, Executions: 5, FlashToDRAM: Movement{6, 7,
			8}, DRAMToHost: Movement{9, 10, 11},
		HostToDRAM: Movement{12, 13, 14}, SLMBytes: 15, SLMReserved: 16,
		Units: []UnitCounter{{Name: "u", Version: 23, Rows: 22, Timing: Timing{2, 21, 17, 18}}},
	}
	b := l.Marshal()
	for off, want := range map[int]uint64{
		8: 3, 16: 4, 24: 5, 64: 6, 72: 7, 80: 8, 88: 9, 96: 10, 104: 11, 112: 12, 120: 13, 128: 14, 136: 15, 144: 16,
		288: 2, 296: 21, 304: 17, 312: 18, 320: 10, 328: 22, 336: 0, 344: 23,
	} {
		assert.Equal(t, want, le64(b[off:]), "byte %d", off)
	}
	assert.Equal(t, "rtl-sim\x00", string(b[32:40]))
	assert.Equal(t, "u\x00", string(b[256:258]))
	assert.Equal(t, []byte{1, 0, 1, 0, 0, 0, 2, 0}, b[:8])
}

func TestLogLeavesOutWhatIsTooMuch(t *testing.T) {
	l := Log{Units: make([]UnitCounter, MaxLogEntries+1), Programs: make([]ProgramCounter, MaxLogEntries+1)}
	var back Log
	require.NoError(t, back.Unmarshal(l.Marshal()))
	assert.Len(t, back.Units, MaxLogEntries)
	assert.Len(t, back.Programs, MaxLogEntries)
}

func TestTiming(t *testing.T) {
	var x Timing
	assert.Zero(t, x.Average())
	for _, ns := range []uint64{5, 3, 10} {
		x.Add(ns)
	}
	assert.Equal(t, Timing{Runs: 3, Total: 18, Shortest: 3, Longest: 10}, x)
	assert.Equal(t, uint64(6), x.Average())
}

func TestProgramListRoundTrip(t *testing.T) {
	list := []Program{
		{Occupancy: SlotDevice, Active: true, Type: ProgramTypeImage, PUID: 1 << 63, Bytes: 5}, {},
		{Occupancy: SlotDownloaded, Type: 0xc2, PUID: 7, Bytes: 1 << 40},
	}
	b := MarshalPrograms(list)
	assert.Len(t, b, 64+3*ProgramSize)
	assert.Equal(t, byte(2|1<<2|1<<3), b[64], "occupancy, active, identity kind")
	back, err := UnmarshalPrograms(append(b, 0))
	require.NoError(t, err)
	assert.Equal(t, list, back)
	for n := range len(b) {
		_, err := UnmarshalPrograms(b[:n])
		require.ErrorIs(t, err, ErrShort)
	}
	b[1] = 0x80
	_, err = UnmarshalPrograms(b)
	assert.ErrorContains(t, err, "at most 256")
	assert.Equal(t, "device-defined", SlotDevice.String())
	assert.Equal(t, "empty", SlotEmpty.String())
	assert.Equal(t, "downloaded", SlotDownloaded.String())
	assert.Equal(t, "reserved occupancy 3", Occupancy(3).String())
}

func TestOtherLists(t *testing.T) {
	types := MarshalProgramTypes([]uint8{0xc1, 0xc2})
	assert.Equal(t, "02000000"+strings.Repeat("00", listHeader-4)+"c101"+strings.Repeat("00", 14)+"c201"+
		strings.Repeat("00", 14), hex.EncodeToString(types))
	sets := MarshalRangeSets([]MemoryRangeSet{
		{ID: 3, Ranges: []Range{{1, 2}, {3, 4}}}, {ID: 4, Ranges: make([]Range, MaxRanges)},
	})
	require.Len(t, sets, listHeader+2*rangeSetSize)
	assert.EqualValues(t, 2, le32(sets))
	for i, want := range [][2]uint16{{3, 2}, {4, MaxRanges}} {
		e := sets[listHeader+i*rangeSetSize:]
		assert.Equal(t, want, [2]uint16{le16(e), le16(e[2:])}, "identifier and ranges")
	}
	first := sets[listHeader+16:]
	assert.Equal(t, MemoryRange{NamespaceSLM, 2, 1}, ParseMemoryRange(first, 0))
	assert.Equal(t, MemoryRange{NamespaceSLM, 4, 3}, ParseMemoryRange(first, 1))
	assert.Equal(t, MemoryRange{}, ParseMemoryRange(first, 2))
}

func TestIdentifyRoundTrip(t *testing.T) {
	c := ComputeNamespace{1, 2, 3, 4, 5, 6}
	b := c.Marshal()
	assert.Equal(t, "010002000300040005000000000000000600", hex.EncodeToString(b[:18]))
	m := MemoryNamespace{1, 2, 3}
	var mem MemoryNamespace
	require.NoError(t, mem.Unmarshal(m.Marshal()))
	assert.Equal(t, m, mem)
	assert.ErrorIs(t, mem.Unmarshal(nil), ErrShort)
}

// FuzzPreprocess: what is read is written the same, byte for byte, and nothing panics.
func FuzzPreprocess(f *testing.F) {
	p := Preprocess{Ranges: []Range{{1, 2}}, Copies: []Copy{{1, 8, 9, 10}}, Args: []byte("args")}
	b, _ := p.Marshal()
	f.Add(b)
	f.Add([]byte{1, 0, 8, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Preprocess
		if p.Unmarshal(b) != nil {
			return
		}
		again, err := p.Marshal()
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

// FuzzLogs reads any bytes as every list and log page.
func FuzzLogs(f *testing.F) {
	l := Log{Units: make([]UnitCounter, 1), Programs: make([]ProgramCounter, 1)}
	f.Add(l.Marshal())
	f.Add(MarshalPrograms(make([]Program, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l Log
		if l.Unmarshal(b) == nil {
			n := LogSize(b)
			require.LessOrEqual(t, n, len(b))
			require.Len(t, l.Marshal(), n)
		}
		if list, err := UnmarshalPrograms(b); err == nil {
			require.LessOrEqual(t, len(MarshalPrograms(list)), len(b))
		}
	})
}
