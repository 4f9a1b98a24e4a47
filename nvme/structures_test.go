package nvme

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// at is a field of a structure: where the specification puts it, its size, and the value it must hold.
type at struct {
	name   string
	offset int
	size   int
	want   uint64
}

func requireFields(t *testing.T, b []byte, fields []at) {
	t.Helper()
	covered := make([]bool, len(b))
	for _, f := range fields {
		var x [8]byte
		copy(x[:], b[f.offset:f.offset+f.size])
		assert.Equal(t, f.want, binary.LittleEndian.Uint64(x[:]), "%s at byte %d", f.name, f.offset)
		for i := range f.size {
			require.False(t, covered[f.offset+i], "%s overlaps another field", f.name)
			covered[f.offset+i] = true
		}
	}
	for i, v := range b {
		if !covered[i] {
			require.Zero(t, v, "byte %d, which is not a field's", i)
		}
	}
}

// structure is a data structure of the specification: Identify data or a log page.
// TestOffsets checks that every field of a structure lies where the specification puts it, that no other byte is
// written, and that the bytes give the structure back, unless they are too few.
func TestOffsets(t *testing.T) {
	var effects EffectsLog
	effects.Admin[6], effects.IO[1], effects.IO[255] = 1, 3, 5
	for _, c := range []struct {
		name   string
		value  interface{ Marshal() []byte }
		empty  interface{ Unmarshal([]byte) error } // of the type of value
		fields []at                                 // besides texts
		texts  map[int]string                       // by offset
		short  int                                  // a number of bytes that is too small
	}{
		{
			name: "IdentifyController", empty: new(IdentifyController), short: 4095,
			value: &IdentifyController{
				VendorID: 1, SubsystemVendorID: 2, Serial: "SN", Model: "MN", Firmware: "FR", IEEE: [3]byte{1, 2, 3},
				MultiPath: 4, MDTS: 5, ControllerID: 6, Version: 7, AsyncEvents: 8, Attributes: 9, ControllerType: 10,
				AdminCommands: 11, AbortLimit: 12, AsyncEventLimit: 13, FirmwareUpdates: 14, LogAttributes: 15,
				ErrorEntries: 16, AdminVendorFormat: 17, WarningTemperature: 18, CriticalTemperature: 19,
				TotalCapacity: 20, KeepAliveGranularity: 21, SQES: 22, CQES: 23, MaxCommands: 24, Namespaces: 25,
				NVMCommands: 26, WriteCache: 27, VendorFormat: 28, SGLs: 29, SubsystemNQN: "nqn", CommandCapsule: 30,
				ResponseCapsule: 31, CapsuleOffset: 32, FabricsAttributes: 33, DataDescriptors: 34,
			},
			fields: []at{
				{"VID", 0, 2, 1}, {"SSVID", 2, 2, 2}, {"IEEE", 73, 3, 0x030201}, {"CMIC", 76, 1, 4}, {"MDTS", 77, 1, 5},
				{"CNTLID", 78, 2, 6}, {"VER", 80, 4, 7}, {"OAES", 92, 4, 8}, {"CTRATT", 96, 4, 9},
				{"CNTRLTYPE", 111, 1, 10}, {"OACS", 256, 2, 11}, {"ACL", 258, 1, 12}, {"AERL", 259, 1, 13},
				{"FRMW", 260, 1, 14}, {"LPA", 261, 1, 15}, {"ELPE", 262, 1, 16}, {"AVSCC", 264, 1, 17},
				{"WCTEMP", 266, 2, 18}, {"CCTEMP", 268, 2, 19}, {"TNVMCAP", 280, 8, 20}, {"KAS", 320, 2, 21},
				{"SQES", 512, 1, 22}, {"CQES", 513, 1, 23}, {"MAXCMD", 514, 2, 24}, {"NN", 516, 4, 25},
				{"ONCS", 520, 2, 26}, {"VWC", 525, 1, 27}, {"ICSVSCC", 530, 1, 28}, {"SGLS", 536, 4, 29},
				{"SUBNQN", 768, 3, 'n' | 'q'<<8 | 'n'<<16}, {"IOCCSZ", 1792, 4, 30}, {"IORCSZ", 1796, 4, 31},
				{"ICDOFF", 1800, 2, 32}, {"FCATT", 1802, 1, 33}, {"MSDBD", 1803, 1, 34},
			},
			texts: map[int]string{
				4: "SN                  ", 24: "MN                                      ", 64: "FR      ",
			},
		},
		{
			name: "IdentifyNamespace", empty: new(IdentifyNamespace), short: 4095,
			value: &IdentifyNamespace{
				Size: 1, Capacity: 2, Utilization: 3, Features: 4, Format: 1, MultiPath: 6, Deallocate: 7,
				CapacityBytes: 8, Attributes: 9, NGUID: [16]byte{1, 15: 2}, EUI64: [8]byte{3, 7: 4},
				Formats: []LBAFormat{{0, 9}, {8, 12}},
			},
			fields: []at{
				{"NSZE", 0, 8, 1}, {"NCAP", 8, 8, 2}, {"NUSE", 16, 8, 3}, {"NSFEAT", 24, 1, 4}, {"NLBAF", 25, 1, 1},
				{"FLBAS", 26, 1, 1}, {"NMIC", 30, 1, 6}, {"DLFEAT", 33, 1, 7}, {"NVMCAP", 48, 8, 8},
				{"NSATTR", 99, 1, 9}, {"NGUID", 104, 8, 1}, {"NGUID", 112, 8, 2 << 56}, {"EUI64", 120, 8, 3 | 4<<56},
				{"LBAF0", 128, 4, 9 << 16}, {"LBAF1", 132, 4, 12<<16 | 8},
			},
		},
		{
			name:   "IndependentNamespace",
			value:  &IndependentNamespace{Features: 1, MultiPath: 2, Attributes: 3, Ready: true},
			fields: []at{{"NSFEAT", 0, 1, 1}, {"NMIC", 1, 1, 2}, {"NSATTR", 8, 1, 3}, {"NSTAT", 14, 1, 1}},
		},
		{
			name: "SMARTLog", empty: new(SMARTLog), short: 511,
			value: &SMARTLog{
				CriticalWarning: 1, Temperature: 300, AvailableSpare: 3, SpareThreshold: 4, PercentageUsed: 5,
				DataUnitsRead: 6, DataUnitsWritten: 7, HostReads: 8, HostWrites: 9, BusyMinutes: 10, PowerCycles: 11,
				PowerOnHours: 12, UnsafeShutdowns: 13, MediaErrors: 14, ErrorEntries: 15, WarningMinutes: 16,
				CriticalMinutes: 17, TemperatureSensors: [8]uint16{18, 7: 19},
			},
			fields: []at{
				{"critical warning", 0, 1, 1}, {"temperature", 1, 2, 300}, {"spare", 3, 1, 3}, {"threshold", 4, 1, 4},
				{"used", 5, 1, 5}, {"units read", 32, 8, 6}, {"units written", 48, 8, 7}, {"reads", 64, 8, 8},
				{"writes", 80, 8, 9}, {"busy", 96, 8, 10}, {"cycles", 112, 8, 11}, {"hours", 128, 8, 12},
				{"unsafe", 144, 8, 13}, {"media errors", 160, 8, 14}, {"entries", 176, 8, 15},
				{"warning time", 192, 4, 16}, {"critical time", 196, 4, 17}, {"sensor 1", 200, 2, 18},
				{"sensor 8", 214, 2, 19},
			},
		},
		{
			name: "FirmwareLog", empty: new(FirmwareLog), short: 511,
			value:  &FirmwareLog{Active: 2, Revisions: [7]string{"one", "two", 6: "seven"}},
			fields: []at{{"AFI", 0, 1, 2}},
			texts:  map[int]string{8: "one     two     ", 56: "seven   "},
		},
		{
			name: "EffectsLog", value: &effects,
			fields: []at{{"identify", 24, 4, 1}, {"write", 1028, 4, 3}, {"last", 2044, 4, 5}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.value.Marshal()
			rest := bytes.Clone(b)
			for offset, text := range c.texts {
				assert.Equal(t, text, string(b[offset:offset+len(text)]), "at byte %d", offset)
				clear(rest[offset : offset+len(text)])
			}
			requireFields(t, rest, c.fields)
			if c.empty == nil { // no host of this module reads it
				return
			}
			require.NoError(t, c.empty.Unmarshal(b))
			assert.Equal(t, c.value, c.empty)
			assert.Error(t, c.empty.Unmarshal(b[:c.short]))
		})
	}
}

func TestMoreFormatsThanANamespaceHas(t *testing.T) {
	id := IdentifyNamespace{Formats: []LBAFormat{{0, 9}}}
	b := id.Marshal()
	b[25] = 16
	assert.ErrorContains(t, id.Unmarshal(b), "17 LBA formats")
}

func TestCountersOfMoreThan64Bits(t *testing.T) {
	l := SMARTLog{DataUnitsRead: 6}
	b := l.Marshal()
	b[40] = 1
	require.NoError(t, l.Unmarshal(b))
	assert.Equal(t, ^uint64(0), l.DataUnitsRead)
}

func TestStringsOfIdentifyArePrintable(t *testing.T) {
	id := IdentifyController{Serial: "a\x00b\x80", Model: "0123456789012345678901234567890123456789 too long"}
	b := id.Marshal()
	assert.Equal(t, "a?b?", string(b[4:8]))
	assert.Equal(t, "0123456789012345678901234567890123456789", string(b[24:64]))
	assert.Equal(t, "        ", string(b[64:72]))
}

func TestBlockSize(t *testing.T) {
	for _, c := range []struct {
		format, shift uint8
		want          uint32
	}{{0, 8, 0}, {0, 9, 512}, {0, 12, 4096}, {0, 16, 65536}, {0, 17, 0}, {1, 9, 0}, {0xf, 9, 0}, {0x10, 9, 512}} {
		id := IdentifyNamespace{Format: c.format, Formats: []LBAFormat{{0, c.shift}}}
		n, err := id.BlockSize()
		assert.Equal(t, c.want, n, "format %#x shift %d", c.format, c.shift)
		assert.Equal(t, c.want == 0, err != nil)
	}
}

func TestNamespaceIDs(t *testing.T) {
	id := NamespaceIDs{NGUID: [16]byte{9}, UUID: [16]byte{1, 2, 3}, CSI: 4}
	b := id.Marshal()
	assert.Len(t, b, IdentifySize)
	assert.Equal(t, []byte{2, 16, 0, 0, 9}, b[:5])
	assert.Equal(t, []byte{3, 16, 0, 0, 1, 2, 3}, b[20:27])
	assert.Equal(t, []byte{4, 1, 0, 0, 4, 0, 0, 0, 0}, b[40:49])
	var back NamespaceIDs
	require.NoError(t, back.Unmarshal(b))
	assert.Equal(t, id, back)
	require.NoError(t, back.Unmarshal([]byte{1, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 1, 0, 0, 3}), "EUI64 is passed over")
	assert.Equal(t, NamespaceIDs{CSI: 3}, back)
	for _, bad := range [][]byte{{3, 16, 0, 0, 1}, {3, 15, 0, 0, 14: 0, 18: 0}, {4, 2, 0, 0, 0, 0}} {
		assert.Error(t, back.Unmarshal(bad))
	}
}

func TestNamespaceLists(t *testing.T) {
	assert.Equal(t, []uint32{1, 7}, UnmarshalNamespaceList(MarshalNamespaceList([]uint32{1, 7})))
	assert.Empty(t, UnmarshalNamespaceList(MarshalNamespaceList(nil)))
	many := make([]uint32, 1025)
	for i := range many {
		many[i] = uint32(i + 1)
	}
	assert.Equal(t, many[:1024], UnmarshalNamespaceList(MarshalNamespaceList(many)))
	assert.Empty(t, UnmarshalNamespaceList([]byte{1, 0, 0}))
}

func TestErrorEntryOffsets(t *testing.T) {
	e := ErrorEntry{Count: 1, SQID: 2, CID: 3, Status: 0x281, Location: 5, LBA: 6, NSID: 7, CSI: 8, Opcode: 9}
	b := e.AppendTo(nil)
	requireFields(t, b, []at{
		{"count", 0, 8, 1}, {"SQID", 8, 2, 2}, {"CID", 10, 2, 3}, {"status", 12, 2, 0x502}, {"location", 14, 2, 5},
		{"LBA", 16, 8, 6},
		{"NSID", 24, 4, 7}, {"CSI", 30, 1, 8}, {"opcode", 31, 1, 9},
	})
	f := ErrorEntry{Count: 2}
	b = f.AppendTo(b)
	assert.Equal(t, []ErrorEntry{e, f}, UnmarshalErrors(append(b, make([]byte, 128)...)))
	assert.Empty(t, UnmarshalErrors(b[:63]))
}

func TestSupportedLogs(t *testing.T) {
	want := make([]byte, SupportedLogSize)
	want[0], want[4*2], want[4*0xc0], want[4*0xff] = 1, 1, 1, 1
	assert.Equal(t, want, MarshalSupportedLogs([]uint8{0, 2, 0xc0, 0xff}))
}

func TestLostBlocks(t *testing.T) {
	for _, n := range []int{0, 1, MaxLost, MaxLost + 1} {
		var list []LostRange
		for i := range n {
			list = append(list, LostRange{SLBA: uint64(i) * 10, Blocks: 3})
		}
		b := MarshalLost(list)
		assert.Len(t, b, LostLogSize)
		got, err := UnmarshalLost(b)
		require.NoError(t, err)
		assert.Equal(t, list[:min(n, MaxLost)], got)
	}
	good := MarshalLost([]LostRange{{1, 2}})
	for name, change := range map[string]func(b []byte) []byte{
		"nothing":             func([]byte) []byte { return nil },
		"another vendor's":    func(b []byte) []byte { b[0]++; return b },
		"cut":                 func(b []byte) []byte { return b[:LostHeaderSize+LostRangeSize-1] },
		"more than there are": func(b []byte) []byte { b[8] = MaxLost + 1; return b },
		"no block":            func(b []byte) []byte { b[LostHeaderSize+8] = 0; return b },
		"past the last number": func(b []byte) []byte {
			copy(b[LostHeaderSize:],
				"\xff\xff\xff\xff\xff\xff\xff\xff")
			return b
		},
	} {
		_, err := UnmarshalLost(change(bytes.Clone(good)))
		assert.ErrorIs(t, err, ErrNoLostLog, name)
	}
	got, err := UnmarshalLost(good[:LostHeaderSize+LostRangeSize])
	require.NoError(t, err)
	assert.Equal(t, []LostRange{{1, 2}}, got)
}

// Anything may come from a drive: no structure's reader may panic, and a structure that is read is written as the
// same bytes.
func FuzzStructures(f *testing.F) {
	f.Add([]byte{})
	id := IdentifyController{Serial: "S", SubsystemNQN: "n"}
	f.Add(id.Marshal())
	ns := IdentifyNamespace{Formats: []LBAFormat{{0, 9}}}
	f.Add(ns.Marshal())
	ids := NamespaceIDs{UUID: [16]byte{1}, CSI: 3}
	f.Add(ids.Marshal())
	e := ErrorEntry{Count: 1}
	f.Add(e.AppendTo(nil))
	f.Add(MarshalLost([]LostRange{{7, 9}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var (
			id  IdentifyController
			ns  IdentifyNamespace
			ids NamespaceIDs
			s   SMARTLog
			fw  FirmwareLog
		)
		if ns.Unmarshal(b) == nil {
			_, _ = ns.BlockSize()
			var again IdentifyNamespace
			require.NoError(t, again.Unmarshal(ns.Marshal()))
			require.Equal(t, ns, again)
		}
		if ids.Unmarshal(b) == nil {
			var again NamespaceIDs
			require.NoError(t, again.Unmarshal(ids.Marshal()))
			require.Equal(t, ids, again)
		}
		if s.Unmarshal(b) == nil {
			var again SMARTLog
			require.NoError(t, again.Unmarshal(s.Marshal()))
			require.Equal(t, s, again)
		}
		_, _ = id.Unmarshal(b), fw.Unmarshal(b)
		if lost, err := UnmarshalLost(b); err == nil {
			again, err := UnmarshalLost(MarshalLost(lost))
			require.NoError(t, err)
			require.Equal(t, lost, again)
		}
		UnmarshalErrors(b)
		UnmarshalNamespaceList(b)
	})
}
