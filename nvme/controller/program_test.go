package controller

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func programList(t testing.TB, c nvme.Conn) []cs.Program {
	t.Helper()
	b := make([]byte, 4096)
	admin(t, c, nvme.GetLog(nvme.LogPrograms, 0, 0, 4096), b, nvme.Success)
	list, err := cs.UnmarshalPrograms(b)
	require.NoError(t, err)
	return list
}

// loadCommands are the commands of both command sets that load a chunk of a program: they fill the same slots.
var loadCommands = map[string]func(cs.Chunk) nvme.Command{"vendor": cs.ImageDownload, "standard": cs.LoadProgram}

func TestAnImageIsLoadedInChunks(t *testing.T) {
	for name, load := range loadCommands {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			c := d.connect()
			image := pattern(MDTS+MDTS/2, 3)
			k := cs.Chunk{Slot: 2, Size: uint32(len(image)), PUID: 0xabcdef}
			for k.Offset < k.Size {
				k.Len = min(k.Size-k.Offset, MDTS/2)
				assert.Equal(t, cs.SlotEmpty, programList(t, c)[2].Occupancy)
				admin(t, c, load(k), image[k.Offset:k.Offset+k.Len], nvme.Success)
				k.Offset += k.Len
			}
			assert.Equal(t, string(image), d.compute.slots.images[2])
			assert.Equal(t, cs.Program{Occupancy: cs.SlotDownloaded, Type: cs.ProgramTypeImage, PUID: 0xabcdef,
				Bytes: uint64(len(image))},
				programList(t, c)[2])
		})
	}
}

func TestAChunkThatDoesNotFitIsRefused(t *testing.T) {
	const most = 2 << 20
	for name, load := range loadCommands {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			c, other := d.connect(), d.connect()
			send := func(c nvme.Conn, k cs.Chunk, want nvme.Status) {
				t.Helper()
				admin(t, c, load(k), make([]byte, k.Len), want)
			}
			send(c, cs.Chunk{Slot: 0, Size: 4, Len: 4}, nvme.ProgramNotDownloadable)
			send(c, cs.Chunk{Slot: 4, Size: 4, Len: 4}, nvme.InvalidProgramIndex)
			send(c, cs.Chunk{Slot: 1, Size: most + 1, Len: 4}, nvme.ProgramTooBig)
			send(c, cs.Chunk{Slot: 1, Size: most, Len: 4}, nvme.Success)
			send(c, cs.Chunk{Slot: 1, Size: most - 1, Len: 4}, nvme.Success) // starts again
			send(c, cs.Chunk{Slot: 1, Size: 8, Len: 9}, nvme.InvalidField)
			send(c, cs.Chunk{Slot: 1, Size: 8, Len: 0}, nvme.InvalidField)
			send(c, cs.Chunk{Slot: 3, Size: 8, Offset: 4, Len: 4}, nvme.InvalidField) // nothing came before
			send(c, cs.Chunk{Slot: 1, Size: 8, Len: 4}, nvme.Success)
			send(c, cs.Chunk{Slot: 1, Size: 8, Offset: 5, Len: 3}, nvme.InvalidField)
			send(c, cs.Chunk{Slot: 1, Size: 8, Offset: 3, Len: 3}, nvme.InvalidField)
			send(c, cs.Chunk{Slot: 1, Size: 9, Offset: 4, Len: 4}, nvme.InvalidField)
			send(c, cs.Chunk{Slot: 1, Size: 8, Offset: 4, Len: 4, PUID: 1}, nvme.InvalidField)
			send(c, cs.Chunk{Slot: 1, Size: 8, Offset: 4, Len: 5}, nvme.InvalidField)
			send(c, cs.Chunk{Slot: 1, Size: 8, Offset: ^uint32(0), Len: 4}, nvme.InvalidField)
			send(other, cs.Chunk{Slot: 1, Size: 8, Offset: 4, Len: 4}, nvme.InvalidField)
			send(other, cs.Chunk{Slot: 1, Size: 8, Len: 4}, nvme.InsufficientProgramSpace)
			require.NoError(t, c.Close()) // what it had loaded in part is forgotten
			send(other, cs.Chunk{Slot: 1, Size: 4, Len: 4}, nvme.Success)
			admin(t, other, load(cs.Chunk{Slot: 1, Size: 4, Len: 4}), []byte("bad!"), nvme.InvalidProgramData)
			assert.Equal(t, cs.SlotDownloaded, programList(t, other)[1].Occupancy, "what was there stays")
		})
	}
}

func TestLoadProgramFields(t *testing.T) {
	c := newDrive(t).connect()
	ok := cs.LoadProgram(cs.Chunk{Slot: 1, Size: 4, Len: 4})
	for name, test := range map[string]struct {
		change func(*nvme.Command)
		want   nvme.Status
	}{
		"as it should be":     {func(*nvme.Command) {}, nvme.Success},
		"another type":        {func(c *nvme.Command) { c.SetDW(10, c.DW(10)&^0xff0000|0xc0<<16) }, nvme.InvalidProgramType},
		"no identity":         {func(c *nvme.Command) { c.SetDW(10, c.DW(10)&^(7<<25)) }, nvme.InvalidField},
		"another identity":    {func(c *nvme.Command) { c.SetDW(10, c.DW(10)|2<<25) }, nvme.InvalidField},
		"of namespace 1":      {func(c *nvme.Command) { c.SetNSID(1) }, nvme.InvalidNamespace},
		"longer than told":    {func(c *nvme.Command) { c.SetDW(14, 5) }, nvme.InvalidSGLLength},
		"of no bytes":         {func(c *nvme.Command) { c.SetDW(14, 0) }, nvme.InvalidField},
		"more than a command": {func(c *nvme.Command) { c.SetDW(14, MDTS+1) }, nvme.InvalidField},
	} {
		cmd := ok
		test.change(&cmd)
		t.Run(name, func(t *testing.T) { admin(t, c, cmd, make([]byte, cmd.DataLength()), test.want) })
	}
}

func TestActivation(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	for slot := uint16(1); slot <= 2; slot++ {
		admin(t, c, cs.ImageDownload(cs.Chunk{Slot: slot, Size: 4, Len: 4}), bytes.Repeat([]byte{byte(slot)}, 4),
			nvme.Success)
	}
	run := func(slot uint16, want nvme.Status) { t.Helper(); execute(t, c, slot, nil, nil, want) }
	run(0, nvme.Success)
	run(1, nvme.ProgramNotActivated)
	admin(t, c, cs.Activation(0, true), nil, nvme.Success) // again
	admin(t, c, cs.Activation(1, true), nil, nvme.ProgramsActivatedExceeded)
	admin(t, c, cs.Activation(1, false), nil, nvme.ProgramNotActivated)
	admin(t, c, cs.Activation(3, true), nil, nvme.NoProgram)
	admin(t, c, cs.Activation(3, false), nil, nvme.NoProgram)
	admin(t, c, cs.Activation(4, true), nil, nvme.InvalidProgramIndex)
	admin(t, c, cs.Activation(4, false), nil, nvme.InvalidProgramIndex)
	admin(t, c, cs.Activation(0, false), nil, nvme.Success)
	run(0, nvme.ProgramNotActivated)
	preprocess(t, c, cs.Preprocess{}, nvme.ProgramNotActivated)
	admin(t, c, cs.Activation(1, true), nil, nvme.Success)
	run(1, nvme.Success)
	admin(t, c, cs.ImageActivate(2), nil, nvme.Success) // the vendor's replaces
	run(1, nvme.ProgramNotActivated)
	run(2, nvme.Success)
	preprocess(t, c, cs.Preprocess{}, nvme.Success)
	admin(t, c, cs.ImageActivate(3), nil, nvme.NoProgram)
	admin(t, c, cs.ImageActivate(4), nil, nvme.InvalidProgramIndex)

	admin(t, c, cs.UnloadProgram(2), nil, nvme.ProgramInUse)
	admin(t, c, cs.ImageDownload(cs.Chunk{Slot: 2, Size: 4, Len: 4}), make([]byte, 4), nvme.ProgramInUse)
	admin(t, c, cs.UnloadProgram(0), nil, nvme.ProgramNotDownloadable)
	admin(t, c, cs.UnloadProgram(3), nil, nvme.NoProgram)
	admin(t, c, cs.UnloadProgram(4), nil, nvme.InvalidProgramIndex)
	admin(t, c, cs.UnloadProgram(1), nil, nvme.Success)
	assert.Equal(t, cs.SlotEmpty, programList(t, c)[1].Occupancy)

	cmd := cs.Activation(0, true)
	cmd.SetDW(10, 2<<16)
	admin(t, c, cmd, nil, nvme.InvalidField)
	cmd.SetNSID(1)
	admin(t, c, cmd, nil, nvme.InvalidNamespace)
}

func TestAPlainDriveKnowsNothingOfComputation(t *testing.T) {
	d := newDrive(t, func(o *Options) { o.Compute = nil })
	c := d.connect()
	_, maps := c.(nvme.Mapper)
	assert.False(t, maps)
	io(t, c, nvme.Read(1, 0, 1, 512), make([]byte, 512), nvme.Success)
	io(t, c, cs.Fetch(0, 4), make([]byte, 4), nvme.InvalidOpcode)
	io(t, c, cs.MemoryRead(0, 4), make([]byte, 4), nvme.InvalidNamespace)
	io(t, c, cs.ExecuteSet(0, 1, nil).Command, nil, nvme.InvalidNamespace)
	admin(t, c, cs.SLMReserve(0, 4096), nil, nvme.InvalidOpcode)
	admin(t, c, cs.UnloadProgram(1), nil, nvme.InvalidOpcode)
	for _, lid := range []uint8{nvme.LogVendor, nvme.LogPrograms, nvme.LogProgramTypes, nvme.LogMemoryRangeSets} {
		admin(t, c, nvme.GetLog(lid, 0, 0, 64), make([]byte, 64), nvme.InvalidLogPage)
	}
	id := make([]byte, nvme.IdentifySize)
	admin(t, c, nvme.Identify(nvme.CNSActiveNamespaces, 0, 0), id, nvme.Success)
	assert.Equal(t, []uint32{1}, nvme.UnmarshalNamespaceList(id))
	admin(t, c, nvme.Identify(nvme.CNSSetController, 0, nvme.CSISLM), id, nvme.InvalidField)
}
