package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/programs"
	"github.com/millrace/millrace/nvme/cs"
)

// imageSlots is a device whose slots hold images.
type imageSlots struct {
	*stubPrograms
	busy   []string
	tested []int
}

func (r *imageSlots) Firmware() nvme.FirmwareLog {
	return nvme.FirmwareLog{Active: 2, Next: 3, Revisions: [7]string{"ignored", "two", "three"}}
}
func (r *imageSlots) ImageLog() []byte { return []byte("page C1h") }
func (r *imageSlots) Test(_ context.Context, slot int) nvme.Status {
	r.tested = append(r.tested, slot)
	return nvme.InvalidProgramData
}
func (r *imageSlots) Busy(operation string, slot int, holders []string) {
	r.busy = append(append(r.busy, operation), holders...)
}

type imageCompute struct {
	*stubCompute
	r *imageSlots
}

func (c imageCompute) Programs() programs.Device { return c.r }

func TestADeviceWithImageSlots(t *testing.T) {
	stub := newStub(testSLM)
	r := &imageSlots{stubPrograms: stub.Programs().(*stubPrograms)}
	d := newDrive(t, func(o *Options) { o.Compute, o.Firmware = imageCompute{stub, r}, "9.9" })
	c := d.connect()

	b := make([]byte, 512)
	admin(t, c, nvme.GetLog(nvme.LogFirmware, nvme.AllNamespaces, 0, 512), b, nvme.Success)
	var fw nvme.FirmwareLog
	require.NoError(t, fw.Unmarshal(b))
	assert.Equal(t, nvme.FirmwareLog{Active: 2, Next: 3, Revisions: [7]string{"9.9", "two", "three"}}, fw,
		"the first is the controller's own")
	page := make([]byte, nvme.IdentifySize)
	admin(t, c, nvme.Identify(nvme.CNSController, 0, 0), page, nvme.Success)
	var id nvme.IdentifyController
	require.NoError(t, id.Unmarshal(page))
	assert.Equal(t, "two", id.Firmware)
	log := make([]byte, 8)
	admin(t, c, nvme.GetLog(nvme.LogImages, nvme.AllNamespaces, 0, 8), log, nvme.Success)
	assert.Equal(t, "page C1h", string(log))

	admin(t, c, cs.ImageDownload(cs.Chunk{Slot: 1, Size: 4, Len: 4}), make([]byte, 4), nvme.Success)
	admin(t, c, cs.ImageTest(1), nil, nvme.InvalidProgramData)
	assert.Equal(t, []int{1}, r.tested)
	entry := make([]byte, nvme.ErrorEntrySize)
	admin(t, c, nvme.GetLog(nvme.LogErrors, nvme.AllNamespaces, 0, nvme.ErrorEntrySize), entry, nvme.Success)
	errors := nvme.UnmarshalErrors(entry)
	require.Len(t, errors, 1)
	assert.EqualValues(t, nvme.LogImages, errors[0].VendorLog)
	assert.EqualValues(t, cs.AdminImageActivate, errors[0].Opcode)
	admin(t, c, cs.ImageTest(3), nil, nvme.NoProgram)
	admin(t, c, cs.ImageTest(4), nil, nvme.InvalidProgramIndex)
}

// TestAProgramIsNotChangedUnderAHostThatHoldsMemory: also where the device is no ImageSlots.
func TestAProgramIsNotChangedUnderAHostThatHoldsMemory(t *testing.T) {
	d := newDrive(t)
	c, other := d.connect(), d.connect()
	admin(t, c, cs.ImageDownload(cs.Chunk{Slot: 1, Size: 4, Len: 4}), make([]byte, 4), nvme.Success)
	admin(t, other, cs.SLMReserve(0, 4096), nil, nvme.Success)
	admin(t, c, cs.ImageActivate(1), nil, nvme.ProgramInUse)
	admin(t, c, cs.Activation(0, false), nil, nvme.ProgramInUse)
	admin(t, c, cs.ImageActivate(0), nil, nvme.Success) // it is the active one
	admin(t, c, cs.ImageTest(1), nil, nvme.InvalidField)
	admin(t, c, nvme.GetLog(nvme.LogImages, 0, 0, 64), make([]byte, 64), nvme.InvalidLogPage)
	admin(t, other, cs.SLMRelease(0, 4096), nil, nvme.Success)
	admin(t, c, cs.ImageActivate(1), nil, nvme.Success)
}
