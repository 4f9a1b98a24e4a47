package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/internal/wait"
)

// rollbackRetry is the wait between attempts to bring a drive back.
const rollbackRetry = 200 * time.Millisecond

// execution carries out one rollout.
type execution struct {
	o      *Options
	drives []*progress
}

// progress is a rollout's knowledge of one drive.
type progress struct {
	Drive
	before    image.ID // ran when the rollout began; zero: none
	slot      int      // The new image is in this slot.
	step      effect   // This step failed first.
	cause     error    // why it failed
	secondary []error  // the error on the way back
}

// logChanges logs the states that differ from those logged last.
func (x *execution) logChanges(r *rollout, logged []State) {
	for i, s := range r.states {
		if s != logged[i] {
			x.logChange(x.drives[i], logged[i], s)
			logged[i] = s
		}
	}
}

// logChange logs a change of a drive's state.
func (x *execution) logChange(p *progress, from, to State) {
	args := []any{"image", x.o.ID.Short(), "drive", p.Name, "from", from.String(), "to", to.String()}
	if to.Bad() || to == Returning || to == RollingBack {
		x.o.Logger.Warn("rollout", append(args, "error", p.cause)...)
		return
	}
	x.o.Logger.Info("rollout", args...)
}

// do carries out an action and returns the event that resulted.
func (x *execution) do(ctx context.Context, a action) event {
	p := x.drives[a.drive]
	limit := x.o.Policy.StepTime
	switch a.effect {
	case effectDrain:
		limit = x.o.Policy.DrainTime
	case effectResume, effectRollback:
		// A drive is brought back even if the caller no longer waits.
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if a.effect == effectLook {
		same, err := x.look(ctx, p)
		switch {
		case err != nil:
			return p.fail(a.effect, err)
		case same:
			return eventSame
		}
		return eventOther
	}
	if err := x.step(ctx, p, a.effect); err != nil {
		return p.fail(a.effect, err)
	}
	return eventDone
}

// fail records that a step failed.
func (p *progress) fail(step effect, err error) event {
	if p.cause == nil {
		p.step, p.cause = step, err
	} else {
		p.secondary = append(p.secondary, fmt.Errorf("%s: %w", step, err))
	}
	return eventFailed
}

// step carries out every effect but effectLook.
func (x *execution) step(ctx context.Context, p *progress, e effect) (err error) {
	switch e {
	case effectDrain:
		return callIfSet(ctx, p.Drain)
	case effectResume:
		return callIfSet(ctx, p.Resume)
	case effectLoad:
		p.slot, err = x.load(ctx, p)
		return err
	case effectTest:
		return p.Device.TestImage(ctx, p.slot)
	case effectActivate:
		return p.Device.ActivateImage(ctx, p.slot)
	case effectGate:
		return x.gate(ctx, p)
	case effectRollback:
		return x.rollback(ctx, p)
	}
	return nil
}

func callIfSet(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

// look asks the drive which image it runs, and reports whether that is the wanted image and is in order. An image
// whose signature no longer suffices is loaded again.
func (x *execution) look(ctx context.Context, p *progress) (same bool, err error) {
	r, err := p.Device.ImageLog(ctx)
	if err != nil {
		return false, err
	}
	active, _ := r.Active()
	p.before, p.slot = active.Image, active.Slot
	_, reason := drift(r, x.o.ID)
	return reason == "", nil
}

// load brings the image into a slot, unless a slot holds it.
func (x *execution) load(ctx context.Context, p *progress) (slot int, err error) {
	if x.o.Image != nil {
		slot, _, err := p.Device.PlaceImage(ctx, x.o.Image)
		return slot, err
	}
	r, err := p.Device.ImageLog(ctx)
	if err != nil {
		return 0, err
	}
	held, ok := r.Find(x.o.ID)
	if !ok {
		return 0, fmt.Errorf("no slot holds image %s, and the rollout has only its id", x.o.ID.Short())
	}
	return held.Slot, nil
}

// gate checks that the drive runs the image, and calls the caller's gate.
func (x *execution) gate(ctx context.Context, p *progress) error {
	r, err := p.Device.ImageLog(ctx)
	if err != nil {
		return err
	}
	if active, _ := r.Active(); active.Image != x.o.ID {
		return fmt.Errorf("the drive runs %s", imageName(active.Image))
	}
	return x.o.Gate(ctx, p.Drive)
}

// rollback brings the drive back to the image that it ran. A drive that went away may come back, so rollback tries
// until ctx ends, or until the drive refuses for good.
func (x *execution) rollback(ctx context.Context, p *progress) error {
	for {
		err := tryRollback(ctx, p)
		if err == nil {
			return nil
		}
		if wait.Sleep(ctx, rollbackRetry) != nil {
			return err
		}
		var refused *image.LoadError
		if errors.As(err, &refused) && refused.Step != image.StepInUse {
			return err
		}
	}
}

// tryRollback activates the image that the drive ran before, or, if no slot holds it, the image that the drive itself
// goes back to.
func tryRollback(ctx context.Context, p *progress) error {
	r, err := p.Device.ImageLog(ctx)
	if err != nil {
		return err
	}
	if active, ok := r.Active(); ok && active.Image == p.before {
		return nil
	}
	target, ok := r.Find(p.before)
	if !ok {
		if target, ok = r.Rollback(); !ok {
			return errors.New("the drive holds no image to go back to")
		}
	}
	return p.Device.ActivateImage(ctx, target.Slot)
}

// imageName returns how a message calls an image.
func imageName(id image.ID) string {
	if id == (image.ID{}) {
		return "no image"
	}
	return "image " + id.Short()
}
