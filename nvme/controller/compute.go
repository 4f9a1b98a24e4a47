package controller

import (
	"context"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/slm"
	"github.com/millrace/millrace/nvme/cs"
)

// Compute is the device behind namespace 2 (subsystem local memory) and the namespaces of computational programs, 3 and
// up, one a region. It does not interpret images, arguments and results. Methods are safe for concurrent use.
type Compute interface {
	// SLM returns the device DRAM of the memory namespace: the same slice on every call. Only the controller decides which
	// association may touch which byte; the device reads and writes without further locks, as a DMA engine does.
	SLM() []byte
	// ClearSLM makes bytes, a part of SLM that an earlier association used, read as zeros.
	ClearSLM(bytes []byte)
	// Execute runs the active program of x.Region over x.Ranges with x.Args, and returns its 64-bit result. Executions of
	// different regions do not wait for each other. Execute waits for an engine thread, and returns nvme.CommandAborted
	// when ctx ends first. It keeps nothing of x. A program that fails returns cs.StatusProgramFault and a result of its
	// own, or a status of the specification; the controller adds the do-not-retry bit to the latter.
	Execute(ctx context.Context, x Execution) (uint64, nvme.Status)
	// Programs is the device's program slots: the same on every call.
	Programs() Programs
	// Log is the body of vendor log C0h as cs.Log.Marshal writes it. The fields of movement are the controller's: it
	// sets them in the log that the device returns.
	Log() []byte
	// BackendName is functional, rtl-sim or bitstream.
	BackendName() string
}

// Execution is what one Execute computes. The controller makes it from a host's command and from what the drive has
// done for that command before. Slices and Input are valid until Execute returns.
type Execution struct {
	// Region is where the program runs, from 0 up. The command names it.
	Region int
	// Ranges are the 0 to cs.MaxRanges ranges of memory that the command names. They lie in the region's share of SLM,
	// are disjoint, and are held by one association for the length of the call.
	Ranges []cs.Range
	// Args are the command's arguments, which the controller does not interpret.
	Args []byte
	// Input is the input range if some of its blocks are lent or were not read, and nil otherwise: then all of its bytes
	// are in SLM. It is always nil for a device that is not an InputReader.
	Input *slm.Input
	// Moved is how long the copies of the same command took, 0 if it had none.
	Moved time.Duration
	// MovedBytes is how many bytes of flash these copies moved or lent.
	MovedBytes uint64
}

// Programs is the device's program slots. Slot 0 holds the device-defined stock program, which can not be replaced and
// is active when the device is new; slots 1 and up take images of type cs.ProgramTypeImage. The slots are a library for
// all regions: in each region one program is active at a time, or none after Deactivate, and a program may be active in
// several regions.
//
// The controller calls Load, Unload, Activate and Deactivate one at a time, the last two never while an Execute runs in
// their region, and only after checking what it can: the slot exists, is downloadable, is not active where it must not
// be, the image is not larger than Limits say. The device judges the image itself. A call that fails changes nothing.
type Programs interface {
	// Limits says how many slots there are and how much an image may hold: constants.
	Limits() ProgramLimits
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

// ImageSlots is implemented by Programs whose slots hold images, of which the program list says too little.
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

// ProgramLimits are the constants of a device's program slots.
type ProgramLimits struct {
	Slots    int    // including slot 0; 1 to 256
	MaxBytes uint64 // most bytes of one image, at most 1 GiB
	Regions  int    // 1 to cs.MaxRegions; 0 means 1
	// Weights of the regions, 1 to cs.MaxRegionWeight, in proportion to which they share the memory. nil: equal shares.
	Weights []int
}
