package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// Compute is the computing side of a drive, in the device's region: its share of subsystem local memory (SLM) and its
// active program. It is safe for
// concurrent use.
type Compute struct {
	d   *Device
	set commandSet
}

// commandSet is what the vendor and the standard command set have in common. Callers keep every transfer within the
// device's largest.
type commandSet interface {
	// granularity returns the bytes that addresses and lengths of large transfers are multiples of; store and fetch
	// also take a part of one such unit.
	granularity() uint64
	// reserve takes n bytes of SLM for an association and returns their address.
	reserve(ctx context.Context, a association, n uint64) (uint64, error)
	release(ctx context.Context, a association, r cs.Range) error
	store(ctx context.Context, a association, addr uint64, p []byte) *Future
	fetch(ctx context.Context, a association, addr uint64, p []byte) *Future
	// preprocess moves and executes. It returns the program's 64-bit value and, if the moves were commands of their own,
	// the time that the moves took.
	preprocess(
		ctx context.Context, a association, copies []cs.Copy, ranges []cs.Range, args []byte,
	) (v uint64, moved time.Duration, err error)
	// maxArgs returns the most bytes of args that fit beside a number of copies and ranges.
	maxArgs(copies, ranges int) int
	// giveBack frees everything that the association holds. No other command runs meanwhile.
	giveBack(ctx context.Context) error
}

// SLMSize returns the size of the region's share of the drive's local memory in bytes, including memory that hosts
// hold.
func (c *Compute) SLMSize() uint64 { return c.d.info.SLM.Size }

// Threads returns the number of executions that the region runs at once; further executions wait.
func (c *Compute) Threads() int { return max(1, c.d.info.Threads) }

// MaxArgs returns the most bytes of arguments that one execution takes beside a number of copies and ranges.
func (c *Compute) MaxArgs(copies, ranges int) int { return c.set.maxArgs(copies, ranges) }

// ErrArgs says that a slice's arguments do not fit one command. Use fewer tasks a slice.
var ErrArgs = errors.New("arguments do not fit one command")

// Preprocess performs the copies (blocks of namespace 1 into SLM, in order), then runs the active program over the
// ranges (at most cs.MaxRanges, inside SLM that this association holds) with args, and returns the program's state.
//
// A program that gives up (states from program.BadSlice on) is not an error here: the result range says why. An error
// is a copy that failed, a range not held, arguments too large (ErrArgs), ctx's end, a drive that is gone.
func (c *Compute) Preprocess(
	ctx context.Context, copies []cs.Copy, ranges []cs.Range, args []byte,
) (program.State, error) {
	state, _, err := c.preprocess(ctx, c.d.anyAssociation(), copies, ranges, args)
	return state, err
}

// preprocess is Preprocess, and returns the time that the moves took if they were commands of their own.
func (c *Compute) preprocess(
	ctx context.Context, a association, copies []cs.Copy, ranges []cs.Range, args []byte,
) (program.State, time.Duration, error) {
	if most := c.set.maxArgs(len(copies), len(ranges)); len(args) > most {
		return 0, 0, fmt.Errorf("%s: preprocess: %d bytes of arguments beside %d copies, at most %d: %w",
			c.d.name, len(args), len(copies), most, ErrArgs)
	}
	v, moved, err := c.set.preprocess(ctx, a, copies, ranges, args)
	if err != nil && !errors.Is(err, cs.StatusProgramFault) {
		return 0, moved, c.d.wrap("preprocess", err)
	}
	if v > 0xffff {
		return 0, moved, fmt.Errorf("%s: preprocess: the program returned %#x, which is not a state", c.d.name, v)
	}
	return program.State(v), moved, nil
}

// Compute returns the drive's computing side, nil for a plain drive.
func (d *Device) Compute() *Compute { return d.compute }

// HasCompute reports whether the drive computes.
func (d *Device) HasCompute() bool { return d.compute != nil }

// isStatus reports whether err carries the status s.
func isStatus(err error, s nvme.Status) bool { return errors.Is(err, s) }
