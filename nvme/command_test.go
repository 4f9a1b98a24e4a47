package nvme

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry writes a submission entry as its sixteen dwords, for comparison with what the specification draws.
func entry(c Command) string {
	s := ""
	for i := range 16 {
		s += fmt.Sprintf("%08x ", c.DW(i))
	}
	return s[:len(s)-1]
}

func TestGoldenEntries(t *testing.T) {
	dsm, dsmData := Deallocate(1, []DatasetRange{{Attributes: 7, Blocks: 8, SLBA: 9}, {Blocks: 1, SLBA: 1 << 40}})
	for name, c := range map[string]struct {
		cmd  Command
		want string
	}{
		"identify": {Identify(CNSSetNamespace, 2, CSISLM),
			"00004006 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00001000 5a000000 00000005 03000000 " +
				"00000000 00000000 00000000 00000000"},
		"get log": {GetLog(LogVendor, AllNamespaces, 0x1_0000_0004, 0x40004),
			"00004002 ffffffff 00000000 00000000 00000000 00000000 00000000 00000000 00040004 5a000000 000000c0 00000001 " +
				"00000004 00000001 00000000 00000000"},
		"set feature": {SetFeature(FeatureQueues, 0x10001),
			"00004009 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000007 00010001 " +
				"00000000 00000000 00000000 00000000"},
		"get feature": {GetFeature(FeatureHostID),
			"0000400a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000081 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"abort": {Abort(3, 0x1234),
			"00004008 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 12340003 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"keep alive": {KeepAlive(),
			"00004018 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000000 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"event request": {AsyncEventRequest(),
			"0000400c 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000000 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"read": {Read(1, 0x1_2345_6789, 8, 512),
			"00004002 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00001000 5a000000 23456789 00000001 " +
				"00000007 00000000 00000000 00000000"},
		"write": {Write(1, 2, 1, 4096, false),
			"00004001 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00001000 5a000000 00000002 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"write with FUA": {Write(1, 2, 65536, 1, true),
			"00004001 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00010000 5a000000 00000002 00000000 " +
				"4000ffff 00000000 00000000 00000000"},
		"compare": {Compare(1, 2, 2, 512),
			"00004005 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000400 5a000000 00000002 00000000 " +
				"00000001 00000000 00000000 00000000"},
		"write zeroes": {WriteZeroes(1, 2, 3, true),
			"00004008 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000002 00000000 " +
				"02000002 00000000 00000000 00000000"},
		"flush": {Flush(AllNamespaces),
			"00004000 ffffffff 00000000 00000000 00000000 00000000 00000000 00000000 00000000 5a000000 00000000 00000000 " +
				"00000000 00000000 00000000 00000000"},
		"dataset management": {dsm,
			"00004009 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000020 5a000000 00000001 00000004 " +
				"00000000 00000000 00000000 00000000"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, entry(c.cmd))
			if c.cmd.DataLength() > 0 {
				assert.Contains(t, []Direction{HostToController, ControllerToHost}, c.cmd.Direction())
			}
		})
	}
	assert.Equal(t, "07000000080000000900000000000000"+"00000000010000000000000000010000", hex.EncodeToString(dsmData))
	assert.Equal(t, DatasetRange{Attributes: 7, Blocks: 8, SLBA: 9}, ParseDatasetRange(dsmData, 0))
	assert.Equal(t, DatasetRange{Blocks: 1, SLBA: 1 << 40}, ParseDatasetRange(dsmData, 1))
}

func TestCommandFields(t *testing.T) {
	c := New(0x82, 0x01020304)
	c.SetCID(0xa1b2)
	assert.Equal(t, uint8(0x82), c.Opcode())
	assert.Equal(t, ControllerToHost, c.Direction())
	assert.Equal(t, uint16(0xa1b2), c.CID())
	assert.Equal(t, uint32(0x01020304), c.NSID())
	assert.Equal(t, uint8(1), c.PSDT())
	assert.Zero(t, c.Fuse())
	c[1] |= 2
	assert.Equal(t, uint8(2), c.Fuse())
	c.SetSGL(SGL{Address: 5, Length: 6, Type: SGLDataBlockOffset})
	assert.Equal(t, SGL{5, 6, 1}, c.SGL())
	assert.Equal(t, uint8(2), c.Fuse(), "the descriptor leaves the other flags alone")
	for _, n := range []int{-1, 16, 1 << 40} {
		before := c
		c.SetDW(n, ^uint32(0))
		c.SetQW(n, ^uint64(0))
		assert.Equal(t, before, c)
		assert.Zero(t, c.DW(n))
		assert.Zero(t, c.QW(n))
	}
	c.SetQW(15, 1)
	assert.Zero(t, c.QW(15), "it would end past the entry")
	c.SetQW(14, 0x1122334455667788)
	assert.Equal(t, uint32(0x55667788), c.DW(14))
	assert.Equal(t, uint32(0x11223344), c.DW(15))
	assert.Contains(t, c.String(), "opcode 82h")
}

func TestCompletion(t *testing.T) {
	c := NewCompletion(0x1234, InvalidField.Final())
	c.SetResult(0x1122334455667788)
	c.SetSQHead(9)
	assert.Equal(t, "8877665544332211"+"0900"+"0000"+"3412"+"0480", hex.EncodeToString(c[:]))
	assert.Equal(t, uint64(0x1122334455667788), c.Result())
	assert.Equal(t, uint32(0x55667788), c.DW0())
	assert.Equal(t, uint16(9), c.SQHead())
	assert.Zero(t, c.SQID())
	assert.Equal(t, uint16(0x1234), c.CID())
	assert.Equal(t, Status(0x4002), c.Status(), "as Linux's ioctl returns it")
	assert.Equal(t, "cid 4660 result 0x1122334455667788 invalid field in command (0/02h, do not retry)", c.String())
}

func TestStatus(t *testing.T) {
	assert.NoError(t, Success.Err())
	assert.True(t, Success.OK())
	assert.True(t, (Success | StatusMore).OK())
	wrapped := fmt.Errorf("read: %w", (UnrecoveredReadError | StatusMore).Err())
	assert.ErrorIs(t, wrapped, UnrecoveredReadError)
	assert.NotErrorIs(t, wrapped, WriteFault)
	var s Status
	require.True(t, errors.As(wrapped, &s))
	assert.True(t, s.More())
	assert.Equal(t, TypeMedia, s.Type())
	assert.Equal(t, "unknown status (1/fdh)", Status(0x1fd).String())
	assert.Equal(t, "vendor specific status (7/c1h)", Status(0x7c1).String())
}

func TestDoNotRetryIsSetWhereARetryCannotHelp(t *testing.T) {
	for s := range statusNames {
		assert.Equal(t, s != Success && !retryHelps[s], s.Final().DNR(), s.String())
		assert.Equal(t, s.Final(), s.Final().Final())
	}
	for s := range retryHelps {
		assert.Contains(t, statusNames, s, "a status without a name")
	}
	assert.False(t, Success.Final().DNR())
	assert.True(t, InvalidField.Final().DNR())
	assert.True(t, AccessDenied.Final().DNR())
	assert.True(t, LBAOutOfRange.Final().DNR())
	assert.False(t, MemoryRangeSetInUse.Final().DNR())
	assert.False(t, Status(0x7c1).Final().DNR(), "a vendor status is the device's own")
	assert.False(t, Status(0x302).Final().DNR(), "another path may do")
	assert.True(t, (CommandAborted | StatusDNR).Final().DNR(), "what is set stays")
}

func TestAsyncEvents(t *testing.T) {
	for _, e := range []AsyncEvent{EventReliability, EventTemperature, EventSpare, EventNamespaceChanged, EventFirmware} {
		assert.Equal(t, e, ParseAsyncEvent(e.Word()))
	}
	assert.Equal(t, uint32(0x00040002), EventNamespaceChanged.Word())
	assert.Equal(t, uint32(0x00030102), EventFirmware.Word())
	assert.Equal(t, uint32(0x00020101), EventTemperature.Word())
}

func TestDirectionNames(t *testing.T) {
	assert.Equal(t, "no data", NoData.String())
	assert.Equal(t, "host to controller", HostToController.String())
	assert.Equal(t, "controller to host", ControllerToHost.String())
	assert.Equal(t, "bidirectional", Bidirectional.String())
}
