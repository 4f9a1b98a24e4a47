package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// dataNamespace is the namespace that partitions lie on.
const dataNamespace = 1

// driveMoves bounds the moves of one command; a partition in many pieces takes more slices.
const driveMoves = 4096

// NewProcessor runs a lowered pipeline on a drive. It reserves Options.SLM bytes of the drive's local memory (all of it
// if 0; an error that wraps ErrSLMFull if others hold some) until Close, and writes the program there. Of partitions
// with Extents the drive moves the windows from its flash; windows of others, which lie elsewhere, are read by this
// host and stored in the drive's memory. The device stays the caller's: close it after the processor.
func NewProcessor(
	ctx context.Context, dev *Device, prog *program.Program, schema *tensor.Schema, opts processor.Options,
) (processor.Processor, error) {
	c := dev.Compute()
	if c == nil {
		return nil, dev.wrap("start a processor", ErrNoCompute)
	}
	n := opts.SLM
	if n == 0 {
		n = c.SLMSize()
	}
	slm, err := c.Reserve(ctx, n)
	if err != nil {
		return nil, err
	}
	// While this host holds memory the drive activates no other image.
	if err := dev.checkModules(ctx, prog); err != nil {
		return nil, errors.Join(err, slm.Release(context.WithoutCancel(ctx)))
	}
	return processor.Start(ctx, newDrive(dev, c, slm), prog, schema, opts)
}

// drive is the target that is a drive: moves are copies from its flash to its local memory, or bytes that the host
// reads and stores there.
type drive struct {
	dev     *Device
	compute *Compute
	slm     *SLM
	feeder  *feeder
}

func newDrive(dev *Device, c *Compute, slm *SLM) *drive {
	return &drive{dev: dev, compute: c, slm: slm, feeder: newFeeder(slm, dev.MaxTransfer())}
}

// Limits implements Target.
func (d *drive) Limits() target.Limits {
	args := d.compute.MaxArgs(driveMoves, target.Ranges) - wire.SliceHeader
	return target.Limits{
		Engine: "drive", Memory: d.slm.Size(), Block: uint64(d.dev.BlockSize()), Device: true,
		Moves: driveMoves, Tasks: max(args/wire.SliceTask, 1),
		Host: true, HostBlock: d.compute.set.granularity(),
	}
}

// Direct implements Target: a drive's engine reads its local memory only.
func (d *drive) Direct(*partition.Partition) bool { return false }

// Store implements Target.
func (d *drive) Store(ctx context.Context, addr uint64, b []byte) error {
	return d.slm.Store(ctx, addr, b)
}

// Load implements Target.
func (d *drive) Load(ctx context.Context, addr uint64, b []byte) error {
	return d.slm.Fetch(ctx, addr, b)
}

// View implements Target.
func (d *drive) View(s target.Span) ([]byte, bool) { return d.slm.View(s.Addr, s.Len) }

// Execute implements Target.
func (d *drive) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	copies, stores, err := d.parse(x.Moves)
	if err != nil {
		return target.Outcome{}, err
	}
	var ranges [target.Ranges]cs.Range
	for i, s := range x.Ranges {
		ranges[i] = d.slm.Range(s.Addr, s.Len)
	}
	given := ranges[:]
	if x.Ranges[target.RangeTables].Len == 0 { // as drives without lookup tables want it
		given = ranges[:target.RangeTables]
	}
	start := time.Now()
	if err := d.feeder.feed(ctx, x.Partition, stores); err != nil {
		return target.Outcome{}, err
	}
	fed := time.Since(start)
	ahead := d.feeder.begin(ctx, x.Partition, x.Ahead)
	defer ahead.cancel()
	state, moved, err := d.compute.preprocess(ctx, d.slm.association, copies, given, x.Args)
	moved += fed
	outcome := target.Outcome{State: state, Move: moved, Execute: time.Since(start) - moved}
	if err != nil {
		return outcome, d.unread(ctx, copies, err)
	}
	return outcome, ahead.wait()
}

// parse turns the moves of an execution into copies from flash, and those that the host makes.
func (d *drive) parse(moves []target.Move) (copies []cs.Copy, stores []target.Move, err error) {
	if len(moves) > 0 && moves[0].Source == target.FromHost {
		return nil, moves, nil // so are all: a partition's bytes have one source, which the feeder checks
	}
	block := uint64(d.dev.BlockSize())
	copies = make([]cs.Copy, len(moves))
	for i, m := range moves {
		if m.Source != target.FromPartition || block == 0 {
			return nil, nil, fmt.Errorf("%s: move %d bytes from %v: the drive moves from its flash or the host only",
				d.dev, m.Len, m.Source)
		}
		if m.From%block != 0 || m.Len%block != 0 || m.Len/block > 1<<32-1 {
			return nil, nil, fmt.Errorf("%s: move bytes %d+%d: no whole blocks of %d", d.dev, m.From, m.Len, block)
		}
		copies[i] = cs.Copy{NSID: dataNamespace, SLBA: m.From / block, NLB: uint32(m.Len / block), Dest: d.slm.Addr() + m.To}
	}
	return copies, nil, nil
}

// Close implements Target.
func (d *drive) Close() error { return d.slm.Release(context.Background()) }
