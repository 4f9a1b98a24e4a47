package controller

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/features"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/cs"
)

func identify(t testing.TB, c nvme.Conn, cns uint8, nsid uint32, csi uint8, want nvme.Status) []byte {
	t.Helper()
	b := make([]byte, nvme.IdentifySize)
	admin(t, c, nvme.Identify(cns, nsid, csi), b, want)
	return b
}

// TestIdentifyControllerHasTheFieldsThatLinuxChecks checks the fields that Linux 6.1 looks at before it accepts a
// controller, as read in its source; package nvme/tcp/kerneltest boots a kernel and lets it judge.
func TestIdentifyControllerHasTheFieldsThatLinuxChecks(t *testing.T) {
	d := newDrive(t, func(o *Options) { o.Serial, o.Model = "S1", "M1" })
	c := d.enabled()
	b, st := c.identifyPage(nvme.CNSController, 0, 0, 0)
	require.True(t, st.OK())
	var id nvme.IdentifyController
	require.NoError(t, id.Unmarshal(b))
	assert.Equal(t, c.ID(), id.ControllerID)
	assert.NotZero(t, id.KeepAliveGranularity)
	assert.NotZero(t, id.SGLs&3)
	assert.Zero(t, id.CapsuleOffset)
	assert.GreaterOrEqual(t, id.CommandCapsule, uint32(4))
	assert.Equal(t, uint32(1), id.ResponseCapsule)
	assert.Equal(t, uint16(MaxDepth), id.MaxCommands)
	assert.Equal(t, uint8(0x66), id.SQES)
	assert.Equal(t, uint8(0x44), id.CQES)
	assert.Equal(t, d.NQN(), id.SubsystemNQN)
	assert.Equal(t, uint8(1), id.ControllerType)
	assert.NotZero(t, id.MultiPath&2)
	assert.Equal(t, MDTS, 4096<<id.MDTS)
	assert.GreaterOrEqual(t, id.Version, uint32(0x10300))
	assert.NotZero(t, id.LogAttributes&2)
	assert.NotZero(t, id.LogAttributes&4)
	assert.Equal(t, uint8(AsyncEventLimit-1), id.AsyncEventLimit)
	assert.Equal(t, "S1", id.Serial)
	assert.Equal(t, "M1", id.Model)
	assert.Equal(t, uint32(MaxNSID), id.Namespaces)
	assert.Equal(t, uint64(testFlash), id.TotalCapacity)
}

func TestIdentifyNamespaces(t *testing.T) {
	d := newDrive(t, func(o *Options) { o.BlockSize = 4096 })
	c := d.connect()
	for from, want := range [][]uint32{{1, 2, 3}, {2, 3}, {3}, nil} {
		assert.Equal(t, want, nvme.UnmarshalNamespaceList(identify(t, c, nvme.CNSActiveNamespaces, uint32(from), 0,
			nvme.Success)))
	}
	identify(t, c, nvme.CNSActiveNamespaces, nvme.AllNamespaces-2, 0, nvme.Success)
	identify(t, c, nvme.CNSActiveNamespaces, nvme.AllNamespaces-1, 0, nvme.InvalidNamespace)
	identify(t, c, nvme.CNSActiveNamespaces, nvme.AllNamespaces, 0, nvme.InvalidNamespace)
	for csi, want := range map[uint8][]uint32{0: {1}, 3: {2}, 4: {3}} {
		assert.Equal(t, want, nvme.UnmarshalNamespaceList(identify(t, c, nvme.CNSSetActiveNamespaces, 0, csi, nvme.Success)))
		identify(t, c, nvme.CNSSetController, 0, csi, nvme.Success)
	}
	identify(t, c, nvme.CNSSetActiveNamespaces, 0, 2, nvme.InvalidField)
	identify(t, c, nvme.CNSSetController, 0, 2, nvme.InvalidField)

	var ns nvme.IdentifyNamespace
	require.NoError(t, ns.Unmarshal(identify(t, c, nvme.CNSNamespace, 1, 0, nvme.Success)))
	assert.Equal(t, uint64(testFlash/4096), ns.Size)
	size, err := ns.BlockSize()
	require.NoError(t, err)
	assert.Equal(t, uint32(4096), size)
	assert.Equal(t, make([]byte, 4096), identify(t, c, nvme.CNSNamespace, 2, 0, nvme.Success),
		"zeros, no error: not an NVM namespace")

	seen := map[[16]byte]bool{}
	for nsid, csi := range map[uint32]uint8{1: nvme.CSINVM, 2: nvme.CSISLM, 3: nvme.CSICompute} {
		var ids nvme.NamespaceIDs
		require.NoError(t, ids.Unmarshal(identify(t, c, nvme.CNSNamespaceDescriptors, nsid, 0, nvme.Success)))
		assert.Equal(t, csi, ids.CSI)
		assert.NotZero(t, ids.UUID)
		assert.False(t, seen[ids.UUID])
		seen[ids.UUID] = true
		independent := identify(t, c, nvme.CNSIndependentNamespace, nsid, 0, nvme.Success)
		assert.EqualValues(t, 1, independent[14], "the namespace is ready")
	}
	var mem cs.MemoryNamespace
	require.NoError(t, mem.Unmarshal(identify(t, c, nvme.CNSSetNamespace, 2, nvme.CSISLM, nvme.Success)))
	assert.Equal(t, uint64(testSLM), mem.Size)
	compute := identify(t, c, nvme.CNSSetNamespace, 3, nvme.CSICompute, nvme.Success)
	assert.EqualValues(t, MaxRangeSets, binary.LittleEndian.Uint16(compute[2:]))
	assert.EqualValues(t, cs.MaxRanges, compute[6])
	identify(t, c, nvme.CNSSetNamespace, 1, nvme.CSINVM, nvme.Success)
	identify(t, c, nvme.CNSSetNamespace, 1, nvme.CSISLM, nvme.InvalidCommandSet)
	identify(t, c, nvme.CNSSetNamespace, 1, 2, nvme.InvalidField)
	for _, cns := range []uint8{nvme.CNSNamespace, nvme.CNSNamespaceDescriptors, nvme.CNSSetNamespace,
		nvme.CNSIndependentNamespace} {
		for _, nsid := range []uint32{0, 4, MaxNSID, MaxNSID + 1, nvme.AllNamespaces} {
			if cns == nvme.CNSNamespace && nsid > 0 && nsid <= MaxNSID {
				assert.Equal(t, make([]byte, 4096), identify(t, c, cns, nsid, 0, nvme.Success), "inactive: zeros")
				continue
			}
			identify(t, c, cns, nsid, 0, nvme.InvalidNamespace)
		}
	}
	b := identify(t, c, nvme.CNSCommandSets, 0, 0, nvme.InvalidField) // of controller 0, which is not this
	cmd := nvme.Identify(nvme.CNSCommandSets, 0, 0)
	cmd.SetDW(10, cmd.DW(10)|0xffff<<16)
	admin(t, c, cmd, b, nvme.Success)
	assert.Equal(t, uint64(0b11001), binary.LittleEndian.Uint64(b))
	identify(t, c, 0x10, 0, 0, nvme.InvalidField)
}

func TestIdentifiersSurviveAReconnectionAndDifferBetweenDrives(t *testing.T) {
	d := newDrive(t)
	again := newDrive(t, func(o *Options) { o.UUID = d.opt.UUID })
	other := newDrive(t)
	assert.Equal(t, d.namespaceUUID(1), again.namespaceUUID(1))
	assert.NotEqual(t, d.namespaceUUID(1), other.namespaceUUID(1))
	assert.NotEqual(t, d.NQN(), other.NQN())
}

// getLogCSI builds a Get Log Page of a command set.
func getLogCSI(lid, csi uint8, off uint64, n uint32) nvme.Command {
	c := nvme.GetLog(lid, 0, off, n)
	c.SetDW(14, uint32(csi)<<24)
	return c
}

func TestLogPages(t *testing.T) {
	c := newDrive(t).connect()
	b := make([]byte, 4096)
	admin(t, c, nvme.GetLog(nvme.LogSupported, 0, 0, 1024), b[:1024], nvme.Success)
	var supported []uint8
	for lid := range 256 {
		if b[4*lid]&1 != 0 {
			supported = append(supported, uint8(lid))
		}
	}
	assert.Equal(t, []uint8{0, 1, 2, 3, 4, 5, 0x82, 0x83, 0x84, 0xc0, 0xc2}, supported)
	for _, lid := range supported {
		admin(t, c, nvme.GetLog(lid, 0, 0, 64), make([]byte, 64), nvme.Success)
	}
	admin(t, c, nvme.GetLog(0x70, 0, 0, 64), b[:64], nvme.InvalidLogPage)
	admin(t, c, nvme.GetLog(nvme.LogSMART, 1, 0, 512), b[:512], nvme.InvalidField)
	admin(t, c, nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, 512), b[:512], nvme.Success)

	var fw nvme.FirmwareLog
	admin(t, c, nvme.GetLog(nvme.LogFirmware, 0, 0, 512), b[:512], nvme.Success)
	require.NoError(t, fw.Unmarshal(b))
	assert.Equal(t, uint8(1), fw.Active)
	assert.Equal(t, "1.0", fw.Revisions[0])

	for commandSet, want := range map[uint8][]int{0: {0, 1, 2, 5, 8, 9, 0x81, 0x82, 0x85}, 3: {1, 2, 4, 5}, 4: {1}} {
		admin(t, c, getLogCSI(nvme.LogEffects, commandSet, 0, 4096), b, nvme.Success)
		effectsOf := func(opcode int) uint32 { return binary.LittleEndian.Uint32(b[4*opcode:]) }
		var supported []int
		for opcode := range 256 {
			effects := effectsOf(256 + opcode)
			if effects != 0 {
				supported = append(supported, opcode)
			}
			assert.Zero(t, effects&^3, "opcode %02xh has effects that make Linux freeze queues", opcode)
		}
		assert.Equal(t, want, supported)
		assert.Equal(t, uint32(1), effectsOf(nvme.AdminLoadProgram), "an admin command")
	}
	admin(t, c, getLogCSI(nvme.LogEffects, 2, 0, 4096), b, nvme.InvalidField)

	admin(t, c, nvme.GetLog(nvme.LogProgramTypes, 0, 0, 128), b[:128], nvme.Success)
	assert.Equal(t, cs.MarshalProgramTypes([]uint8{cs.ProgramTypeImage}), b[:80])

	l := vendorLog(t, c)
	assert.Equal(t, "functional", l.Backend)
	assert.Equal(t, uint64(7), l.Rows)
	assert.Equal(t, uint64(testSLM), l.SLMBytes)
	assert.Zero(t, l.SLMReserved)
	reserve(t, c, 8192)
	assert.Equal(t, uint64(8192), vendorLog(t, c).SLMReserved)
}

func TestLogPageOffsetsAtTheirLimits(t *testing.T) {
	c := newDrive(t).connect()
	whole := make([]byte, 512)
	admin(t, c, nvme.GetLog(nvme.LogFirmware, 0, 0, 512), whole, nvme.Success)
	for _, test := range []struct {
		name   string
		offset uint64
		length uint32
		want   nvme.Status
	}{
		{"inside", 8, 8, nvme.Success},
		{"the last dword", 508, 4, nvme.Success},
		{"past the end", 508, 8, nvme.Success},
		{"at the end", 512, 4, nvme.Success},
		{"beyond the end", 516, 4, nvme.InvalidField},
		{"an odd offset", 510, 4, nvme.InvalidField},
		{"the greatest offset", ^uint64(3), 4, nvme.InvalidField},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := bytes.Repeat([]byte{0xee}, int(test.length))
			admin(t, c, nvme.GetLog(nvme.LogFirmware, 0, test.offset, test.length), got, test.want)
			if test.want.OK() {
				want := make([]byte, test.length)
				copy(want, whole[test.offset:])
				assert.Equal(t, want, got)
			}
		})
	}
	cmd := nvme.GetLog(nvme.LogFirmware, 0, 1, 4)
	cmd.SetDW(14, 1<<23) // offset in entries
	admin(t, c, cmd, make([]byte, 4), nvme.InvalidField)
	// NUMD says another length than the data descriptor.
	cmd = nvme.GetLog(nvme.LogFirmware, 0, 0, 512)
	for _, n := range []uint32{508, 516} {
		cmd.SetData(n)
		admin(t, c, cmd, make([]byte, n), nvme.InvalidSGLLength)
	}
}

func TestFeatures(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	get := func(fid uint8) uint32 {
		t.Helper()
		out := admin(t, c, nvme.GetFeature(fid), nil, nvme.Success)
		return out.DW0()
	}
	for fid, value := range map[uint8]struct{ initial, changed uint32 }{
		nvme.FeatureArbitration:      {0, 0x01020307},
		nvme.FeatureTemperature:      {health.WarningTemperature, 350},
		nvme.FeatureErrorRecovery:    {0, 7},
		nvme.FeatureWriteCache:       {1, 0},
		nvme.FeatureWriteAtomicity:   {0, 1},
		nvme.FeatureAsyncEvents:      {0, 0x300},
		nvme.FeatureKeepAlive:        {0, 5000},
		nvme.FeatureSoftwareProgress: {0, 3},
		nvme.FeaturePowerManagement:  {0, 0},
		nvme.FeatureCommandSets:      {0, 0},
	} {
		assert.Equal(t, value.initial, get(fid), "feature %02xh", fid)
		admin(t, c, nvme.SetFeature(fid, value.changed), nil, nvme.Success)
		assert.Equal(t, value.changed, get(fid), "feature %02xh", fid)
		cmd := nvme.GetFeature(fid)
		for selected := uint32(features.SelectDefault); selected <= features.SelectSaved; selected++ {
			cmd.SetDW(10, uint32(fid)|selected<<8)
			out := admin(t, c, cmd, nil, nvme.Success)
			assert.Equal(t, value.initial, out.DW0(), "feature %02xh default", fid)
		}
		cmd.SetDW(10, uint32(fid)|features.SelectCapabilities<<8)
		out := admin(t, c, cmd, nil, nvme.Success)
		assert.NotZero(t, out.DW0()&features.Changeable)
		cmd.SetDW(10, uint32(fid)|4<<8)
		admin(t, c, cmd, nil, nvme.InvalidField)
		cmd = nvme.SetFeature(fid, value.changed)
		cmd.SetDW(10, uint32(fid)|1<<31)
		admin(t, c, cmd, nil, nvme.FeatureNotSaveable)
	}
	for fid := range 256 {
		if _, ok := features.Capabilities[uint8(fid)]; !ok {
			admin(t, c, nvme.SetFeature(uint8(fid), 0), nil, nvme.InvalidField)
			admin(t, c, nvme.GetFeature(uint8(fid)), nil, nvme.InvalidField)
		}
	}
	for name, test := range map[string]struct {
		fid   uint8
		value uint32
		want  nvme.Status
	}{
		"a power state that is not there":     {nvme.FeaturePowerManagement, 1, nvme.InvalidField},
		"errors for deallocated blocks":       {nvme.FeatureErrorRecovery, 1 << 16, nvme.InvalidField},
		"a sensor that is not there":          {nvme.FeatureTemperature, 1<<16 | 300, nvme.InvalidField},
		"a threshold that is neither":         {nvme.FeatureTemperature, 2<<20 | 300, nvme.InvalidField},
		"all sensors":                         {nvme.FeatureTemperature, 0xf<<16 | 300, nvme.Success},
		"queues after one is open":            {nvme.FeatureQueues, 0, nvme.CommandSequenceError},
		"another combination of command sets": {nvme.FeatureCommandSets, 1, nvme.CommandSetRejected},
	} {
		t.Run(name, func(t *testing.T) { admin(t, c, nvme.SetFeature(test.fid, test.value), nil, test.want) })
	}
	cmd := nvme.SetFeature(nvme.FeatureKeepAlive, 4001)
	admin(t, c, cmd, nil, nvme.Success)
	assert.Equal(t, uint32(5000), get(nvme.FeatureKeepAlive), "rounded up to the granularity")
	admin(t, c, nvme.SetFeature(nvme.FeatureKeepAlive, ^uint32(0)), nil, nvme.Success)
	assert.Equal(t, uint32(4294967000), get(nvme.FeatureKeepAlive))
	cmd.SetNSID(1)
	admin(t, c, cmd, nil, nvme.FeatureNotNamespaced)
	cmd = nvme.GetFeature(nvme.FeatureErrorRecovery)
	for nsid, want := range map[uint32]nvme.Status{0: nvme.Success, 1: nvme.Success, 2: nvme.InvalidNamespace,
		4: nvme.InvalidNamespace} {
		cmd.SetNSID(nsid)
		admin(t, c, cmd, nil, want)
	}

	behavior := pattern(512, 3)
	cmd = nvme.SetFeature(nvme.FeatureHostBehavior, 0)
	cmd.SetData(512)
	admin(t, c, cmd, behavior, nvme.Success)
	cmd = nvme.GetFeature(nvme.FeatureHostBehavior)
	cmd.SetData(512)
	got := make([]byte, 512)
	admin(t, c, cmd, got, nvme.Success)
	assert.Equal(t, behavior, got)
}

func TestHostIdentifierCameWithTheConnection(t *testing.T) {
	d := newDrive(t)
	c, err := Local(d.Subsystem, HostID{NQN: "n", ID: [16]byte{1, 2, 3, 4, 15: 16}})
	require.NoError(t, err)
	defer c.Close()
	cmd := nvme.GetFeature(nvme.FeatureHostID)
	cmd.SetData(16)
	b := make([]byte, 16)
	admin(t, c, cmd, b, nvme.InvalidField) // only extended
	cmd.SetDW(11, 1)
	admin(t, c, cmd, b, nvme.Success)
	assert.Equal(t, []byte{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16}, b)
	cmd = nvme.SetFeature(nvme.FeatureHostID, 1)
	cmd.SetData(16)
	admin(t, c, cmd, b, nvme.CommandSequenceError)
}

func TestNumberOfQueues(t *testing.T) {
	d := newDrive(t)
	for _, test := range []struct {
		name                    string
		submission, completions uint32 // the numbers that the host asks for, less one
		granted                 int    // queues; 0: refused
	}{
		{"one of each", 0, 0, 1},
		{"fewer submission queues", 3, 7, 4},
		{"fewer completion queues", 7, 3, 4},
		{"one less than the most", 62, 62, 63},
		{"the most", 63, 63, 64},
		{"one more than the most", 64, 64, 64},
		{"many more", 0x3ff, 0x3ff, 64},
		{"the greatest number of submission queues", 0xfffe, 0, 1},
		{"no number of submission queues", 0xffff, 0, 0},
		{"no number of completion queues", 0, 0xffff, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := d.Connect(HostID{}, 0)
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			require.True(t, c.PropertySet(PropertyCC, 4, DefaultCC).OK())
			cmd := nvme.SetFeature(nvme.FeatureQueues, test.submission|test.completions<<16)
			out := c.Execute(t.Context(), 0, &cmd, nil)
			if test.granted == 0 {
				assert.ErrorIs(t, out.Status(), nvme.InvalidField)
				return
			}
			require.True(t, out.Status().OK())
			assert.Equal(t, uint32(test.granted-1)*0x10001, out.DW0())
			assert.True(t, c.OpenQueue(uint16(test.granted), 2).OK())
			assert.ErrorIs(t, c.OpenQueue(uint16(test.granted+1), 2), nvme.InvalidQueueID)
		})
	}
}

func TestHealth(t *testing.T) {
	d := newDrive(t, func(o *Options) {
		o.Counters = health.Counters{SectorsRead: 1999, SectorsWritten: 1, HostReads: 10, PowerCycles: 3, UnsafeShutdowns: 2,
			PowerOn: 3600e9 * 5, Busy: 60e9 * 7}
	})
	c := d.connect()
	smart := func() (l nvme.SMARTLog) {
		b := make([]byte, 512)
		admin(t, c, nvme.GetLog(nvme.LogSMART, 0, 0, 512), b, nvme.Success)
		require.NoError(t, l.Unmarshal(b))
		return l
	}
	l := smart()
	assert.Equal(t, uint64(2), l.DataUnitsRead, "thousands of 512 bytes, rounded up")
	assert.Equal(t, uint64(1), l.DataUnitsWritten)
	assert.Equal(t, uint64(3), l.PowerCycles)
	assert.Equal(t, uint64(2), l.UnsafeShutdowns)
	assert.Equal(t, uint64(5), l.PowerOnHours)
	assert.Equal(t, uint64(7), l.BusyMinutes)
	assert.Zero(t, l.CriticalWarning)
	io(t, c, nvme.Read(1, 0, 2, 512), make([]byte, 1024), nvme.Success)
	l = smart()
	assert.Equal(t, uint64(3), l.DataUnitsRead)
	assert.Equal(t, uint64(11), l.HostReads)
	d.SetHealth(health.Sensors{Temperature: health.WarningTemperature, AvailableSpare: 9, SpareThreshold: 10,
		PercentageUsed: 77, Unreliable: true})
	l = smart()
	assert.Equal(t, uint8(nvme.WarningSpare|nvme.WarningTemperature|nvme.WarningReliability), l.CriticalWarning)
	assert.Equal(t, uint8(77), l.PercentageUsed)
	d.SetHealth(health.Sensors{Temperature: health.WarningTemperature - 1, AvailableSpare: 10, SpareThreshold: 10})
	assert.Zero(t, smart().CriticalWarning)
}

func TestOptionsAreChecked(t *testing.T) {
	long := func(n int) string { return string(make([]byte, n)) }
	for name, options := range map[string]Options{
		"no flash":        {},
		"block size":      {Flash: newFlash(8192), BlockSize: 1024},
		"tiny flash":      {Flash: newFlash(511)},
		"long serial":     {Flash: newFlash(512), Serial: long(21)},
		"long model":      {Flash: newFlash(512), Model: long(41)},
		"long firmware":   {Flash: newFlash(512), Firmware: long(9)},
		"long NQN":        {Flash: newFlash(512), NQN: long(224)},
		"associations":    {Flash: newFlash(512), MaxAssociations: 1025},
		"no associations": {Flash: newFlash(512), MaxAssociations: -1},
	} {
		_, err := New(options)
		assert.Error(t, err, name)
	}
	s, err := New(Options{Flash: newFlash(512)})
	require.NoError(t, err)
	assert.Equal(t, uint64(1), s.Blocks())
	assert.Equal(t, uint32(512), s.BlockSize())
}
