package controller

import (
	"context"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/programs"
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
	Programs() programs.Device
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
