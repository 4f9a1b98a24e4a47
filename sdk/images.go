package sdk

import (
	"context"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// LoadImage puts an image into a program slot of the drive, which judges it; it does not become active. The command set
// in use carries it.
func (d *Device) LoadImage(ctx context.Context, slot int, b []byte) error {
	if d.compute == nil {
		return d.wrap("load image", ErrNoCompute)
	}
	m, err := image.Parse(b)
	if err != nil {
		return d.wrap("load image", err)
	}
	if slot < 0 || slot > math.MaxUint16 {
		return fmt.Errorf("%s: load image: slot %d: %w", d.name, slot, nvme.InvalidProgramIndex)
	}
	build := cs.ImageDownload
	if d.info.Commands == string(Standard) {
		build = cs.LoadProgram
	}
	for off := 0; off < len(b); off += d.mdts {
		part := b[off:min(len(b), off+d.mdts)]
		cmd := build(cs.Chunk{Slot: uint16(slot), Size: uint32(len(b)), Offset: uint32(off), Len: uint32(len(part)), PUID: m.ID.PUID()})
		if _, err := d.admin(ctx, &cmd, part); err != nil {
			return d.wrap("load image "+m.ID.String(), err)
		}
	}
	return nil
}

// ActivateImage makes the image in a slot the active one, in place of the one that is. The drive tests it first. It waits for
// nothing: while slices execute it fails with nvme.ProgramInUse.
func (d *Device) ActivateImage(ctx context.Context, slot int) error {
	if d.compute == nil {
		return d.wrap("activate image", ErrNoCompute)
	}
	if slot < 0 || slot > math.MaxUint16 {
		return fmt.Errorf("%s: activate image: slot %d: %w", d.name, slot, nvme.InvalidProgramIndex)
	}
	var cmds []nvme.Command
	if d.info.Commands == string(Standard) {
		list, err := d.programs(ctx)
		if err != nil {
			return d.wrap("activate image", err)
		}
		// The standard set replaces in two steps.
		for i, p := range list {
			if p.Active && i != slot {
				cmds = append(cmds, cs.Activation(uint16(i), false))
			}
		}
		cmds = append(cmds, cs.Activation(uint16(slot), true))
	} else {
		cmds = append(cmds, cs.ImageActivate(uint16(slot)))
	}
	for i := range cmds {
		if _, err := d.admin(ctx, &cmds[i], nil); err != nil {
			return d.wrap("activate image", err)
		}
	}
	return nil
}
