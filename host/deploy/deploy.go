package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/sdk"
)

// Drive is one drive of a node.
type Drive struct {
	Name   string // as the configuration calls it
	Device *sdk.Device
	// Want is the image that the drive is to run; zero: the rollout's. A rollout of another image leaves the drive alone.
	Want image.ID
	// Drain returns when nothing uses the drive any more, and until Resume nothing may. Resume gives it work again; it is called after
	// Drain also when that failed. nil: nothing to do.
	Drain  func(context.Context) error
	Resume func(context.Context) error
}

// Options say what is rolled out, and how. Image or ID is required.
type Options struct {
	Image []byte   // the image; nil: the drives have ID already
	ID    image.ID // of the image, if Image is nil
	// Policy says when to stop.
	Policy Policy
	// Gate says whether a drive that runs the image is well; nil: Healthy. It is asked while the drive has no work, and of drives that ran the image
	// already, with their work.
	Gate   func(context.Context, Drive) error
	Logger *slog.Logger // nil: no log
}

// Policy says when a rollout stops, and how long it waits. The zero value stops with the first failure.
type Policy struct {
	Failures  int           // drives that may fail before the rollout stops
	DrainTime time.Duration // the most time of a drain; 0 means 10 minutes
	StepTime  time.Duration // the most time of every other step; 0 means 2 minutes
}

// Defaults of Policy.
const (
	DefaultDrainTime = 10 * time.Minute
	DefaultStepTime  = 2 * time.Minute
)

// retryTime is the wait between tries to bring a drive back.
const retryTime = 200 * time.Millisecond

// ErrRunning says that the deployer does a rollout already.
var ErrRunning = errors.New("a rollout is under way")

// Deployer rolls an image out. It is safe for concurrent use; it does one rollout at a time.
type Deployer struct {
	opt Options
	err error // why the options are no good
	run sync.Mutex
}

// New makes a deployer. What is wrong with the options comes out of Run.
func New(o Options) *Deployer {
	d := &Deployer{opt: o}
	if d.opt.Logger == nil {
		d.opt.Logger = slog.New(slog.DiscardHandler)
	}
	if d.opt.Gate == nil {
		d.opt.Gate = Healthy
	}
	if d.opt.Policy.DrainTime <= 0 {
		d.opt.Policy.DrainTime = DefaultDrainTime
	}
	if d.opt.Policy.StepTime <= 0 {
		d.opt.Policy.StepTime = DefaultStepTime
	}
	switch {
	case o.Image != nil:
		m, err := image.Parse(o.Image)
		switch {
		case err != nil:
			d.err = &image.LoadError{Step: image.StepFormat, Err: err}
		case o.ID != (image.ID{}) && o.ID != m.ID:
			d.err = &image.LoadError{Step: image.StepIdentifier, Image: m.ID, Want: m.Interface(), Err: fmt.Errorf("image %s was asked for", o.ID)}
		default:
			d.opt.ID = m.ID
		}
	case o.ID == image.ID{}:
		d.err = errors.New("no image is named: give Image or ID")
	}
	return d
}

// Run rolls the image out over the drives, in order. The report is whole in any case. When ctx ends, the drive whose turn it is goes back, and
// the rest is left alone.
func (d *Deployer) Run(ctx context.Context, drives []Drive) (Report, error) {
	if d.err != nil {
		return Report{Image: d.opt.ID, Drives: []Outcome{}}, fmt.Errorf("rollout: %w", d.err)
	}
	if !d.run.TryLock() {
		return Report{Image: d.opt.ID, Drives: []Outcome{}}, fmt.Errorf("rollout of image %s: %w", d.opt.ID.Short(), ErrRunning)
	}
	defer d.run.Unlock()
	x := &execution{d: d}
	for _, drive := range drives {
		if drive.Want == (image.ID{}) || drive.Want == d.opt.ID {
			x.drives = append(x.drives, &progress{Drive: drive})
		}
	}
	r := &rollout{states: make([]State, len(x.drives)), allowed: d.opt.Policy.Failures}
	seen := slices.Clone(r.states)
	o, err := r.start()
	for err == nil && o.do != nothing {
		x.changes(r, seen)
		on := x.do(ctx, o)
		if ctx.Err() != nil {
			r.end()
		}
		o, err = r.next(on)
	}
	x.changes(r, seen)
	report := x.report(r)
	return report, errors.Join(err, report.Err())
}

// changes logs the states that are others than they were seen.
func (x *execution) changes(r *rollout, seen []State) {
	for i, s := range r.states {
		if s != seen[i] {
			x.d.note(x.drives[i], seen[i], s)
			seen[i] = s
		}
	}
}

// note logs a change of a drive's state.
func (d *Deployer) note(p *progress, from, to State) {
	args := []any{"image", d.opt.ID.Short(), "drive", p.Name, "from", from.String(), "to", to.String()}
	if to.Bad() || to == Returning || to == RollingBack {
		d.opt.Logger.Warn("rollout", append(args, "error", p.cause)...)
		return
	}
	d.opt.Logger.Info("rollout", args...)
}

// execution is one rollout as it acts on drives.
type execution struct {
	d      *Deployer
	drives []*progress
}

// progress is what a rollout knows of one drive.
type progress struct {
	Drive
	before image.ID // ran when the rollout came; zero: none
	slot   int      // the new image's
	step   effect   // that failed first
	cause  error    // why
	also   []error  // what failed on the way back
}

// do carries an order out and tells what came of it.
func (x *execution) do(ctx context.Context, o order) event {
	p := x.drives[o.drive]
	limit := x.d.opt.Policy.StepTime
	switch o.do {
	case drain:
		limit = x.d.opt.Policy.DrainTime
	case resume, rollback:
		// The way back is gone also when the caller has enough.
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if o.do == look {
		runs, err := x.look(ctx, p)
		switch {
		case err != nil:
			return x.failed(p, o.do, err)
		case runs:
			return same
		}
		return other
	}
	if err := x.step(ctx, p, o.do); err != nil {
		return x.failed(p, o.do, err)
	}
	return done
}

func (x *execution) failed(p *progress, step effect, err error) event {
	if p.cause == nil {
		p.step, p.cause = step, err
	} else {
		p.also = append(p.also, fmt.Errorf("%s: %w", step, err))
	}
	return failed
}

func (x *execution) step(ctx context.Context, p *progress, do effect) (err error) {
	switch do {
	case drain:
		return call(ctx, p.Drain)
	case resume:
		return call(ctx, p.Resume)
	case load:
		p.slot, err = x.load(ctx, p)
		return err
	case test:
		return p.Device.TestImage(ctx, p.slot)
	case activate:
		return p.Device.ActivateImage(ctx, p.slot)
	case gate:
		return x.gate(ctx, p)
	case rollback:
		return x.rollback(ctx, p)
	}
	return nil
}

func call(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

// look asks what the drive runs, and whether that is the image, as it should be: one whose signature does not do any more is loaded again.
func (x *execution) look(ctx context.Context, p *progress) (bool, error) {
	r, err := p.Device.ImageReport(ctx)
	if err != nil {
		return false, err
	}
	s, _ := r.Active()
	p.before, p.slot = s.Image, s.Slot
	_, why := drift(r, x.d.opt.ID)
	return why == "", nil
}

// load brings the image into a slot, where it is not in one.
func (x *execution) load(ctx context.Context, p *progress) (int, error) {
	if x.d.opt.Image != nil {
		slot, _, err := p.Device.PlaceImage(ctx, x.d.opt.Image)
		return slot, err
	}
	r, err := p.Device.ImageReport(ctx)
	if err != nil {
		return 0, err
	}
	s, ok := r.Find(x.d.opt.ID)
	if !ok {
		return 0, fmt.Errorf("no slot holds image %s, and the rollout has only its id", x.d.opt.ID.Short())
	}
	return s.Slot, nil
}

// gate demands that the drive runs the image, and asks the caller's gate.
func (x *execution) gate(ctx context.Context, p *progress) error {
	runs, err := p.Device.ImageReport(ctx)
	if err != nil {
		return err
	}
	if s, _ := runs.Active(); s.Image != x.d.opt.ID {
		return fmt.Errorf("the drive runs %s", nameOf(s.Image))
	}
	return x.d.opt.Gate(ctx, p.Drive)
}

// rollback brings the drive back to what it ran. A drive that went away may come back, so it is tried until the time is over.
func (x *execution) rollback(ctx context.Context, p *progress) error {
	for {
		err := x.back(ctx, p)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryTime):
		}
		var refused *image.LoadError
		if errors.As(err, &refused) && refused.Step != image.StepInUse {
			return err
		}
	}
}

func (x *execution) back(ctx context.Context, p *progress) error {
	r, err := p.Device.ImageReport(ctx)
	if err != nil {
		return err
	}
	if s, ok := r.Active(); ok && s.Image == p.before {
		return nil
	}
	to, ok := r.Find(p.before)
	if !ok {
		if to, ok = r.Rollback(); !ok {
			return errors.New("the drive holds no image to go back to")
		}
	}
	return p.Device.ActivateImage(ctx, to.Slot)
}

// Healthy is the gate where none is given: the drive's health log has no critical warning.
func Healthy(ctx context.Context, d Drive) error {
	l, err := d.Device.SMART(ctx)
	if err != nil {
		return err
	}
	if l.CriticalWarning != 0 {
		return fmt.Errorf("the drive's health log has critical warning %#02x", l.CriticalWarning)
	}
	return nil
}

// nameOf is how a message calls an image.
func nameOf(id image.ID) string {
	if id == (image.ID{}) {
		return "no image"
	}
	return "image " + id.Short()
}
