package programs

import (
	"context"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Device is the program slots of a device that computes. Slot 0 holds the device-defined stock program, which can not
// be replaced and is active when the device is new; slots 1 and up take images of type cs.ProgramTypeImage. The slots
// are a library for all regions: in each region one program is active at a time, or none after Deactivate, and a
// program may be active in several regions.
//
// The controller calls Load, Unload, Activate and Deactivate one at a time, the last two never while an Execute runs in
// their region, and only after checking what it can: the slot exists, is downloadable, is not active where it must not
// be, the image is not larger than Limits say. The device judges the image itself. A call that fails changes nothing.
type Device interface {
	// Limits says how many slots there are and how much an image may hold: constants.
	Limits() Limits
	// List describes every slot, in order; its length is Limits().Slots. A program is active if it is in any region.
	List() []cs.Program
	// Active returns the slot of the program that is active in a region, -1 for none.
	Active(region int) int
	// Load puts a whole image, which the controller gathered from its chunks, into an inactive slot, replacing what was
	// there. image is the device's to keep. A malformed image is nvme.InvalidProgramData; too many bytes over all slots
	// nvme.ProgramBytesExceeded; a signature that the device's policy refuses nvme.OperationDenied.
	Load(slot int, puid uint64, image []byte) nvme.Status
	// Unload empties an inactive slot.
	Unload(slot int) nvme.Status
	// Activate verifies the slot's image, tests it, and makes it the active program of a region. When this fails, the
	// program that was active there stays so.
	Activate(ctx context.Context, region, slot int) nvme.Status
	// Deactivate leaves no program active in a region.
	Deactivate(region int) nvme.Status
}

// ImageSlots is implemented by a Device whose slots hold images, of which the program list says too little.
type ImageSlots interface {
	// Firmware is log page 03h: program slot n is firmware slot n + 1. The first revision is the controller's own and left
	// empty.
	Firmware() nvme.FirmwareLog
	// ImageLog returns vendor log page C1h. The page says why the latest commands about images were refused; the entry
	// of such a command in the error information log names the page.
	ImageLog() []byte
	// Test verifies the image in a slot and runs its self-test. Nothing changes; executions go on beside it.
	Test(ctx context.Context, slot int) nvme.Status
	// Busy notes, for ImageLog, that an operation on a slot was refused because these hosts hold memory or execute.
	Busy(operation string, slot int, holders []string)
}

// Limits are the constants of a device's program slots.
type Limits struct {
	Slots    int    // including slot 0; 1 to 256
	MaxBytes uint64 // most bytes of one image, at most 1 GiB
	Regions  int    // 1 to cs.MaxRegions; 0 means 1
	// Weights of the regions, 1 to cs.MaxRegionWeight, in proportion to which they share the memory. nil: equal shares.
	Weights []int
}
