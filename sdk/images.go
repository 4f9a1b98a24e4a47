package sdk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// LoadImage puts an image into a program slot of the drive, which judges it; it does not become active. The command
// set in use carries it. A refusal by the drive is an *image.LoadError.
func (d *Device) LoadImage(ctx context.Context, slot int, b []byte) error {
	const op = "load image"
	if err := d.checkSlot(op, slot); err != nil {
		return err
	}
	m, err := image.Parse(b)
	if err != nil {
		return d.wrap(op, &image.LoadError{Step: image.StepFormat, Slot: slot, Err: err})
	}
	build := cs.ImageDownload
	if d.info.Commands == string(Standard) {
		build = cs.LoadProgram
	}
	for off := 0; off < len(b); off += d.mdts {
		part := b[off:min(len(b), off+d.mdts)]
		cmd := build(cs.Chunk{
			Slot: uint16(slot), Size: uint32(len(b)), Offset: uint32(off), Len: uint32(len(part)), PUID: m.ID.PUID(),
		})
		if _, err := d.admin(ctx, &cmd, part); err != nil {
			return d.wrap(op, d.why(ctx, err, "load", slot))
		}
	}
	return nil
}

// TestImage has the drive verify the image in a slot and run its self-test. The active image stays and goes on
// executing. A refusal by the drive is an *image.LoadError.
func (d *Device) TestImage(ctx context.Context, slot int) error {
	const op = "test image"
	if err := d.checkSlot(op, slot); err != nil {
		return err
	}
	cmd := cs.ImageTest(uint16(slot))
	_, err := d.admin(ctx, &cmd, nil)
	return d.wrap(op, d.why(ctx, err, "test", slot))
}

// ActivateImage makes the image in a slot the active image of the device's region. The drive tests the image first;
// until the test is passed, the old image stays active. ActivateImage does not wait for hosts: while hosts execute or
// hold local memory of the region, it fails with an *image.LoadError that holds an *image.BusyError, and with
// nvme.ProgramInUse.
//
// The standard command set replaces in two steps. Between them no image is active; when the second fails, the old one
// is activated again.
func (d *Device) ActivateImage(ctx context.Context, slot int) error {
	const op = "activate image"
	if err := d.checkSlot(op, slot); err != nil {
		return err
	}
	if d.info.Commands != string(Standard) {
		cmd := cs.InRegion(cs.ImageActivate(uint16(slot)), d.region)
		_, err := d.admin(ctx, &cmd, nil)
		return d.wrap(op, d.why(ctx, err, "activate", slot))
	}
	return d.wrap(op, d.replaceProgram(ctx, slot))
}

// replaceProgram is ActivateImage with the standard command set.
func (d *Device) replaceProgram(ctx context.Context, slot int) error {
	list, err := d.programs(ctx)
	if err != nil {
		return err
	}
	old := slices.IndexFunc(list, func(p cs.Program) bool { return p.Active })
	if old == slot {
		return nil
	}
	if old >= 0 {
		// Nothing is deactivated for an image that would fail.
		cmd := cs.ImageTest(uint16(slot))
		_, err := d.admin(ctx, &cmd, nil)
		if err != nil && !isStatus(err, nvme.InvalidOpcode) && !isStatus(err, nvme.InvalidField) {
			return d.why(ctx, err, "test", slot)
		}
		cmd = d.standard(cs.Activation(uint16(old), false))
		if _, err := d.admin(ctx, &cmd, nil); err != nil {
			return d.why(ctx, err, "deactivate", old)
		}
	}
	cmd := d.standard(cs.Activation(uint16(slot), true))
	if _, err = d.admin(ctx, &cmd, nil); err == nil {
		return nil
	}
	err = d.why(ctx, err, "activate", slot)
	if old >= 0 {
		cmd := d.standard(cs.Activation(uint16(old), true))
		if _, again := d.admin(context.WithoutCancel(ctx), &cmd, nil); again != nil {
			err = errors.Join(err,
				fmt.Errorf("the image that was active, in slot %d, cannot be activated again: %w", old, again))
		}
	}
	return err
}

func (d *Device) checkSlot(op string, slot int) error {
	if d.compute == nil {
		return d.wrap(op, ErrNoCompute)
	}
	if slot < 0 || slot > math.MaxUint16 {
		return fmt.Errorf("%s: %s: slot %d: %w", d.name, op, slot, nvme.InvalidProgramIndex)
	}
	return nil
}
