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
	// Want is the image that the drive is to run; zero: the rollout's. A rollout of another image leaves the drive
	// alone.
	Want image.ID
	// Drain returns when nothing uses the drive any more; until Resume nothing may. Resume gives the drive work again;
	// it is called after Drain even if Drain failed. nil: nothing to do.
	Drain  func(context.Context) error
	Resume func(context.Context) error
}

// Options name the image that is rolled out, and configure the rollout. Image or ID is required.
type Options struct {
	Image []byte   // the image; nil: the drives hold ID already
	ID    image.ID // ID is that of the image, if Image is nil.
	// Policy says when to stop.
	Policy Policy
	// Gate returns an error unless a drive that runs the image is in order; nil: Healthy. It is called while the drive
	// has no work, and, for a drive that ran the image already, while its work goes on.
	Gate   func(context.Context, Drive) error
	Logger *slog.Logger // nil: no log
}

// Policy says when a rollout stops, and how long it waits. The zero value stops at the first failure.
type Policy struct {
	Failures  int           // drives that may fail before the rollout stops
	DrainTime time.Duration // longest time of a drain; 0 means DefaultDrainTime
	StepTime  time.Duration // longest time of every other step; 0 means DefaultStepTime
}

// Defaults of Policy.
const (
	DefaultDrainTime = 10 * time.Minute
	DefaultStepTime  = 2 * time.Minute
)

// ErrRunning says that the deployer does a rollout already.
var ErrRunning = errors.New("a rollout is under way")

// Deployer rolls an image out. It is safe for concurrent use; it does one rollout at a time.
type Deployer struct {
	o       Options
	err     error // the error of invalid options
	running sync.Mutex
}

// New makes a deployer. If the options are invalid, Run returns the error.
func New(o Options) *Deployer {
	d := &Deployer{o: o}
	if o.Logger == nil {
		d.o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Gate == nil {
		d.o.Gate = Healthy
	}
	if o.Policy.DrainTime <= 0 {
		d.o.Policy.DrainTime = DefaultDrainTime
	}
	if o.Policy.StepTime <= 0 {
		d.o.Policy.StepTime = DefaultStepTime
	}
	d.o.ID, d.err = imageID(&o)
	return d
}

// imageID returns the id of the image that options name.
func imageID(o *Options) (image.ID, error) {
	if o.Image == nil {
		if o.ID == (image.ID{}) {
			return image.ID{}, errors.New("no image is named: give Image or ID")
		}
		return o.ID, nil
	}
	m, err := image.Parse(o.Image)
	if err != nil {
		return o.ID, &image.LoadError{Step: image.StepFormat, Err: err}
	}
	if o.ID != (image.ID{}) && o.ID != m.ID {
		return o.ID, &image.LoadError{
			Step: image.StepIdentifier, Image: m.ID, Want: m.Interface(), Err: fmt.Errorf("image %s was asked for",
				o.ID),
		}
	}
	return m.ID, nil
}

// Run rolls the image out over the drives, in order. The result is complete even if there is an error. When ctx ends,
// the drive in progress goes back to its earlier image, and later drives are left alone.
func (d *Deployer) Run(ctx context.Context, drives []Drive) (Result, error) {
	if d.err != nil {
		return Result{Image: d.o.ID, Drives: []Outcome{}}, fmt.Errorf("rollout: %w", d.err)
	}
	if !d.running.TryLock() {
		return Result{Image: d.o.ID, Drives: []Outcome{}},
			fmt.Errorf("rollout of image %s: %w", d.o.ID.Short(), ErrRunning)
	}
	defer d.running.Unlock()
	x := &execution{o: &d.o}
	for _, drive := range drives {
		if drive.Want == (image.ID{}) || drive.Want == d.o.ID {
			x.drives = append(x.drives, &progress{Drive: drive})
		}
	}
	r := &rollout{states: make([]State, len(x.drives)), allowed: d.o.Policy.Failures}
	logged := slices.Clone(r.states)
	a, err := r.start()
	for err == nil && a.effect != effectNone {
		x.logChanges(r, logged)
		on := x.do(ctx, a)
		if ctx.Err() != nil {
			r.end()
		}
		a, err = r.next(on)
	}
	x.logChanges(r, logged)
	result := x.result(r)
	return result, errors.Join(err, result.Err())
}

// Healthy is the gate where none is given: the drive's health log must have no critical warning.
func Healthy(ctx context.Context, d Drive) error {
	log, err := d.Device.SMART(ctx)
	if err != nil {
		return err
	}
	if log.CriticalWarning != 0 {
		return fmt.Errorf("the drive's health log has critical warning %#02x", log.CriticalWarning)
	}
	return nil
}
