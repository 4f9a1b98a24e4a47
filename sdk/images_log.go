package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/nvme"
)

// ErrNoImageLog says that a drive computes but reports nothing about its images beyond the program list: it is not
// of this project, or of an earlier version.
var ErrNoImageLog = errors.New("drive does not tell of its images")

// firstLogPart is how much of a log page is read at first: all of it on a drive without long lists.
const firstLogPart = 8 << 10

// ImageLog reads the drive's log page of its images: interface, policy, keys, revoked keys and images, slots, regions,
// and the latest refusals. Its Active and Rollback are those of the device's region. An error wraps ErrNoCompute,
// ErrNoImageLog or image.ErrLogPage.
func (d *Device) ImageLog(ctx context.Context) (*image.LogPage, error) {
	if d.compute == nil {
		return nil, d.wrap("read the log page of images", ErrNoCompute)
	}
	r, err := d.imageLog(ctx)
	if isStatus(err, nvme.InvalidLogPage) {
		err = ErrNoImageLog
	}
	return r, d.wrap("read the log page of images", err)
}

func (d *Device) imageLog(ctx context.Context) (*image.LogPage, error) {
	// A page may change between two of its pieces; then it is read again.
	const tries = 5
	for range tries {
		b, err := d.logPart(ctx, nvme.LogImages, 0, min(firstLogPart, d.mdts))
		if err != nil {
			return nil, err
		}
		size, generation, err := image.LogPageSize(b)
		if err != nil {
			return nil, err
		}
		for len(b) < size {
			n := min(size-len(b), d.mdts-image.LogPageHeader)
			part, err := d.logPart(ctx, nvme.LogImages, uint64(len(b)), (n+3)&^3)
			if err != nil {
				return nil, err
			}
			b = append(b, part...)
		}
		if size > firstLogPart {
			now, err := d.logPart(ctx, nvme.LogImages, 0, image.LogPageHeader)
			if err != nil {
				return nil, err
			}
			if _, then, err := image.LogPageSize(now); err != nil || then != generation {
				continue
			}
		}
		r, err := image.ParseLogPage(b)
		if err != nil {
			return nil, err
		}
		return r.In(d.region), nil
	}
	return nil, fmt.Errorf("%w: it changed under each of %d readings", image.ErrLogPage, tries)
}

// logPart reads n bytes of a log page from byte off on; both are multiples of 4.
func (d *Device) logPart(ctx context.Context, lid uint8, off uint64, n int) ([]byte, error) {
	b := make([]byte, n)
	cmd := nvme.GetLog(lid, nvme.AllNamespaces, off, uint32(n))
	_, err := d.admin(ctx, &cmd, b)
	return b, err
}

// why finds out why the drive refused a command about images: it looks for the latest refusal of that operation on
// that slot in the drive's log page. The returned error holds the reason and the status, or the status alone if the
// drive has no such page.
func (d *Device) why(ctx context.Context, err error, operation string, slot int) error {
	var st nvme.Status
	if err == nil || !errors.As(err, &st) {
		return err
	}
	// Asked even if ctx has ended: the answer is there, and it is what a user needs.
	r, failure := d.imageLog(context.WithoutCancel(ctx))
	if failure != nil {
		return err
	}
	for i := range r.Refusals {
		if f := &r.Refusals[i]; f.Operation == operation && f.Slot == slot && plausible(f.Step, st) {
			return fmt.Errorf("%w (%w)", f.Err(), st)
		}
	}
	return err
}

// plausible reports whether a refusal at a step can have come with a status, so that an old refusal does not explain a
// new status.
func plausible(step image.Step, st nvme.Status) bool {
	switch step {
	case image.StepRevocation, image.StepSignature:
		return st.Is(nvme.OperationDenied)
	case image.StepInUse:
		return st.Is(nvme.ProgramInUse)
	case image.StepStore, image.StepCommit:
		return st.Is(nvme.InternalError)
	}
	return st.Is(nvme.InvalidProgramData)
}

// PlaceImage makes sure that an image is in some slot, and returns the slot: where it is already, or the free one of
// the field pair, into which it is loaded. Nothing is activated. loaded reports whether the image had to be loaded. An
// image that is there with another signature, or without, is loaded again: a drive may take it only with this one.
func (d *Device) PlaceImage(ctx context.Context, b []byte) (slot int, loaded bool, err error) {
	m, err := image.Parse(b)
	if err != nil {
		return 0, false, d.wrap("place image", &image.LoadError{Step: image.StepFormat, Err: err})
	}
	r, err := d.ImageLog(ctx)
	if err != nil {
		return 0, false, err
	}
	signer := image.KeyID{}
	if m.Signature != nil {
		signer = m.Signature.Key
	}
	slot = -1
	for _, s := range r.Slots {
		switch {
		case s.Image != m.ID || s.Role != image.RoleStock && s.SignedBy != signer:
		case s.Active:
			return s.Slot, false, nil
		case s.Role != image.RoleTrial: // rollouts leave that slot to the operator
			slot = s.Slot
		}
	}
	if slot >= 0 {
		return slot, false, nil
	}
	slot = r.Free()
	if slot < 0 {
		return 0, false, d.wrap("place image", fmt.Errorf("no slot is free: %w", nvme.InsufficientProgramSpace))
	}
	return slot, true, d.LoadImage(ctx, slot, b)
}

// RollbackImage activates the image that was active in the device's region before the active one, or the stock image
// where that is gone, and returns its slot. Errors are those of ActivateImage; when the stock image runs and nothing
// ran before it, ErrNoRollback.
func (d *Device) RollbackImage(ctx context.Context) (image.Slot, error) {
	r, err := d.ImageLog(ctx)
	if err != nil {
		return image.Slot{}, err
	}
	to, ok := r.Rollback()
	if !ok {
		return to, d.wrap("roll back", ErrNoRollback)
	}
	return to, d.ActivateImage(ctx, to.Slot)
}

// ErrNoRollback says that the stock image runs and that no image ran before it.
var ErrNoRollback = errors.New("no image was active before the stock image")
