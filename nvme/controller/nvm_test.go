package controller

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/cs"
)

func TestWriteThenRead(t *testing.T) {
	for _, block := range []uint32{512, 4096} {
		d := newDrive(t, func(o *Options) { o.BlockSize = block })
		c := d.connect()
		want := pattern(int(3*block), 1)
		io(t, c, nvme.Write(1, 5, 3, block, false), want, nvme.Success)
		assert.Equal(t, want, d.flash.data[5*block:8*block])
		got := make([]byte, 3*block)
		io(t, c, nvme.Read(1, 5, 3, block), got, nvme.Success)
		assert.Equal(t, want, got)
		n := d.Counters()
		assert.Equal(t, uint64(3*block/512), n.SectorsWritten)
		assert.Equal(t, uint64(3*block/512), n.SectorsRead)
		assert.Equal(t, uint64(1), n.HostReads)
		assert.Equal(t, uint64(1), n.HostWrites)
	}
}

func TestBlockRangesAtTheirLimits(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	last := d.Blocks() - 1
	for _, test := range []struct {
		name   string
		first  uint64
		blocks uint32
		want   nvme.Status
	}{
		{"last block", last, 1, nvme.Success},
		{"up to the end", last - 1, 2, nvme.Success},
		{"one past the end", last, 2, nvme.LBAOutOfRange},
		{"after the end", last + 1, 1, nvme.LBAOutOfRange},
		{"sum wraps", ^uint64(0), 2, nvme.LBAOutOfRange},
		{"shift wraps", 1 << 55, 1, nvme.LBAOutOfRange},
	} {
		t.Run(test.name, func(t *testing.T) {
			buf := make([]byte, test.blocks*512)
			io(t, c, nvme.Read(1, test.first, test.blocks, 512), buf, test.want)
			io(t, c, nvme.Write(1, test.first, test.blocks, 512, false), buf, test.want)
			io(t, c, nvme.Compare(1, test.first, test.blocks, 512), buf, test.want)
			io(t, c, nvme.WriteZeroes(1, test.first, test.blocks, false), nil, test.want)
			cmd, data := nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: test.first, Blocks: test.blocks}})
			io(t, c, cmd, data, test.want)
		})
	}
}

func TestMDTSIsEnforced(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	reserve(t, c, testSLM)
	for _, test := range []struct {
		name            string
		blocks          uint32 // of a command of the NVM set
		memory          uint32 // bytes of a command over memory
		descriptorBytes int    // of Preprocess
		want            nvme.Status
	}{
		{"one unit below MDTS", MDTS/512 - 1, MDTS - 4, MDTS - 1, nvme.Success},
		{"MDTS", MDTS / 512, MDTS, MDTS, nvme.Success},
		{"one unit above MDTS", MDTS/512 + 1, MDTS + 4, MDTS + 1, nvme.InvalidField},
	} {
		t.Run(test.name, func(t *testing.T) {
			buf := make([]byte, test.blocks*512)
			io(t, c, nvme.Read(1, 0, test.blocks, 512), buf, test.want)
			io(t, c, nvme.Write(1, 0, test.blocks, 512, false), buf, test.want)
			io(t, c, nvme.Compare(1, 0, test.blocks, 512), buf, test.want)

			buf = make([]byte, test.memory)
			io(t, c, cs.Store(0, test.memory), buf, test.want)
			io(t, c, cs.Fetch(0, test.memory), buf, test.want)
			io(t, c, cs.MemoryWrite(0, test.memory), buf, test.want)
			io(t, c, cs.MemoryRead(0, test.memory), buf, test.want)

			descriptor := cs.Preprocess{Args: make([]byte, test.descriptorBytes-cs.PreprocessHeader)}
			b, err := descriptor.Marshal()
			require.NoError(t, err)
			require.Len(t, b, test.descriptorBytes)
			io(t, c, cs.PreprocessCommand(uint32(len(b))), b, test.want)
		})
	}
	admin(t, c, nvme.GetLog(nvme.LogSMART, 0, 0, MDTS), make([]byte, MDTS), nvme.Success)
	admin(t, c, nvme.GetLog(nvme.LogSMART, 0, 0, MDTS+4), make([]byte, MDTS+4), nvme.InvalidField)
}

func TestDataLengthMustMatch(t *testing.T) {
	c := newDrive(t).connect()
	for _, n := range []int{0, 511, 513, 1024} {
		cmd := nvme.Read(1, 0, 1, 512)
		cmd.SetData(uint32(n))
		io(t, c, cmd, make([]byte, n), nvme.InvalidSGLLength)
	}
	cmd := nvme.Flush(1)
	cmd.SetData(4)
	io(t, c, cmd, make([]byte, 4), nvme.InvalidSGLLength)
}

func TestCompare(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	copy(d.flash.data, pattern(512*1024, 3))
	data := pattern(512*1024, 3)
	io(t, c, nvme.Compare(1, 0, 1024, 512), data, nvme.Success)
	data[len(data)-1] ^= 1
	io(t, c, nvme.Compare(1, 0, 1024, 512), data, nvme.CompareFailure)
	assert.Zero(t, d.Counters().MediaErrors)
}

func TestFlushAndForceUnitAccessReachTheFlash(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	b := make([]byte, 512)
	for _, test := range []struct {
		name  string
		cmd   nvme.Command
		data  []byte
		syncs int
	}{
		{"write", nvme.Write(1, 0, 1, 512, false), b, 0},
		{"write with FUA", nvme.Write(1, 0, 1, 512, true), b, 1},
		{"flush", nvme.Flush(1), nil, 1},
		{"flush all", nvme.Flush(nvme.AllNamespaces), nil, 1},
		{"zeroes", nvme.WriteZeroes(1, 0, 1, false), nil, 0},
	} {
		before := d.flash.synced()
		io(t, c, test.cmd, test.data, nvme.Success)
		assert.Equal(t, before+test.syncs, d.flash.synced(), test.name)
	}
	admin(t, c, nvme.SetFeature(nvme.FeatureWriteCache, 0), nil, nvme.Success)
	before := d.flash.synced()
	io(t, c, nvme.Write(1, 0, 1, 512, false), b, nvme.Success)
	assert.Equal(t, before+1, d.flash.synced(), "without a write cache every write is synced")
}

func TestWriteZeroesAndDeallocate(t *testing.T) {
	for name, makeCommand := range map[string]func() (nvme.Command, []byte){
		"write zeroes":            func() (nvme.Command, []byte) { return nvme.WriteZeroes(1, 1, 600, false), nil },
		"write zeroes deallocate": func() (nvme.Command, []byte) { return nvme.WriteZeroes(1, 1, 600, true), nil },
		"dataset management": func() (nvme.Command, []byte) {
			return nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 1, Blocks: 100}, {SLBA: 101, Blocks: 500},
				{SLBA: 0, Blocks: 0}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			c := d.connect()
			for i := range d.flash.data {
				d.flash.data[i] = 0xee
			}
			cmd, data := makeCommand()
			io(t, c, cmd, data, nvme.Success)
			want := make([]byte, testFlash)
			for i := range want {
				if i < 512 || i >= 601*512 {
					want[i] = 0xee
				}
			}
			assert.Equal(t, want, d.flash.data)
		})
	}
}

func TestDatasetManagementTouchesNothingWhenARangeIsWrong(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	copy(d.flash.data, pattern(1024, 9))
	before := append([]byte(nil), d.flash.data...)
	cmd, data := nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 0, Blocks: 1}, {SLBA: d.Blocks(), Blocks: 1}})
	io(t, c, cmd, data, nvme.LBAOutOfRange)
	assert.Equal(t, before, d.flash.data)
	cmd, data = nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 0, Blocks: 1}})
	cmd.SetDW(11, 0) // hints only
	io(t, c, cmd, data, nvme.Success)
	assert.Equal(t, before, d.flash.data)
}

// Linux's block layer sends 4 KiB with every Dataset Management, however few ranges there are.
func TestDatasetManagementIgnoresWhatFollowsItsRanges(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	copy(d.flash.data, pattern(2048, 9))
	keep := append([]byte(nil), d.flash.data[512:]...)
	cmd, data := nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 0, Blocks: 1}})
	room := append(data, bytes.Repeat([]byte{0xff}, 4096-len(data))...) // ranges far past the end, if they were read
	cmd.SetData(uint32(len(room)))
	io(t, c, cmd, room, nvme.Success)
	assert.Equal(t, make([]byte, 512), d.flash.data[:512])
	assert.Equal(t, keep, d.flash.data[512:])
	for _, n := range []int{len(data) - 1, 4097} {
		cmd.SetData(uint32(n))
		io(t, c, cmd, make([]byte, n), nvme.InvalidSGLLength)
	}
}

func TestReadOnlyFlashRefusesWrites(t *testing.T) {
	d := newDrive(t, func(o *Options) { o.Flash.(*memFlash).readOnly = true })
	c := d.connect()
	b := make([]byte, 512)
	io(t, c, nvme.Write(1, 0, 1, 512, false), b, nvme.WriteProtected)
	io(t, c, nvme.WriteZeroes(1, 0, 1, true), nil, nvme.WriteProtected)
	cmd, data := nvme.Deallocate(1, []nvme.DatasetRange{{SLBA: 0, Blocks: 1}})
	io(t, c, cmd, data, nvme.WriteProtected)
	io(t, c, nvme.Read(1, 0, 1, 512), b, nvme.Success)
	io(t, c, nvme.Flush(1), nil, nvme.Success)
	id := make([]byte, nvme.IdentifySize)
	admin(t, c, nvme.Identify(nvme.CNSNamespace, 1, 0), id, nvme.Success)
	var ns nvme.IdentifyNamespace
	require.NoError(t, ns.Unmarshal(id))
	assert.Equal(t, uint8(1), ns.Attributes&1)
}

func TestMediaErrorsAreReportedLoggedAndCounted(t *testing.T) {
	var broken brokenParts
	d := newDrive(t, func(o *Options) { o.Flash = broken.wrapFlash(o.Flash) })
	c := d.connect()
	broken.failRead(10*512, 512, errors.New("worn out"))
	broken.failWrite(20*512+7, 1, errors.New("stuck"))
	broken.failWrite(30*512, 1, syscall.ENOSPC)
	b := make([]byte, 4*512)
	io(t, c, nvme.Read(1, 6, 4, 512), b, nvme.Success)
	io(t, c, nvme.Read(1, 8, 4, 512), b, nvme.UnrecoveredReadError)
	io(t, c, nvme.Write(1, 19, 4, 512, false), b, nvme.WriteFault)
	io(t, c, nvme.Write(1, 29, 4, 512, false), b, nvme.CapacityExceeded)
	page := make([]byte, 4096)
	admin(t, c, nvme.GetLog(nvme.LogErrors, 0, 0, 4096), page, nvme.Success)
	entries := nvme.UnmarshalErrors(page)
	require.Len(t, entries, 2)
	assert.Equal(t, uint64(2), entries[0].Count)
	assert.Equal(t, uint64(20), entries[0].LBA)
	assert.ErrorIs(t, entries[0].Status, nvme.WriteFault)
	assert.True(t, entries[0].Status.More())
	assert.Equal(t, uint64(10), entries[1].LBA)
	assert.ErrorIs(t, entries[1].Status, nvme.UnrecoveredReadError)
	assert.Equal(t, uint8(nvme.NVMRead), entries[1].Opcode)
	var smart nvme.SMARTLog
	admin(t, c, nvme.GetLog(nvme.LogSMART, 0, 0, 512), page[:512], nvme.Success)
	require.NoError(t, smart.Unmarshal(page))
	assert.Equal(t, uint64(2), smart.MediaErrors)
	assert.Equal(t, uint64(2), smart.ErrorEntries)
	broken.mend()
	io(t, c, nvme.Read(1, 8, 4, 512), b, nvme.Success)
}

// errorFlash fails all reads, and says that it has read everything.
type errorFlash struct{ Flash }

func (errorFlash) ReadAt(p []byte, _ int64) (int, error) { return len(p), errors.New("worn out") }

func TestAnErrorFailsARead(t *testing.T) {
	c := newDrive(t, func(o *Options) { o.Flash = errorFlash{o.Flash} }).connect()
	io(t, c, nvme.Read(1, 0, 1, 512), make([]byte, 512), nvme.UnrecoveredReadError)
}

func TestErrorLogKeepsTheLatest(t *testing.T) {
	var broken brokenParts
	d := newDrive(t, func(o *Options) {
		o.Flash = broken.wrapFlash(o.Flash)
		o.Counters = health.Counters{Errors: 5, MediaErrors: 5}
	})
	c := d.connect()
	broken.failRead(0, testFlash, errors.New("dead"))
	for range health.ErrorEntries + 3 {
		io(t, c, nvme.Read(1, 0, 1, 512), make([]byte, 512), nvme.UnrecoveredReadError)
	}
	page := make([]byte, 4096)
	admin(t, c, nvme.GetLog(nvme.LogErrors, 0, 0, 4096), page, nvme.Success)
	entries := nvme.UnmarshalErrors(page)
	require.Len(t, entries, health.ErrorEntries)
	assert.Equal(t, uint64(5+health.ErrorEntries+3), entries[0].Count)
	assert.Equal(t, uint64(5+4), entries[health.ErrorEntries-1].Count)
	assert.Equal(t, uint64(5+health.ErrorEntries+3), d.Counters().MediaErrors)
}
