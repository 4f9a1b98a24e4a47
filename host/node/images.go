package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host/deploy"
)

const (
	// imageInterval is how often the drives' images are looked at.
	imageInterval = 30 * time.Second
	// imageStep is the most time of a step of a rollout, but draining.
	imageStep = 30 * time.Second
	// drainPoll is how often a drive that drains is asked for.
	drainPoll = 10 * time.Millisecond
)

// images keeps the node's drives at the image that the configuration names.
type images struct {
	agent    *Agent
	image    *image.Image
	policy   image.Policy
	deployer *deploy.Deployer
	told     string // the drift that was logged last
}

// newImages reads the image; nil if the configuration names none.
func newImages(a *Agent) (*images, error) {
	c := a.config.Image
	if c.File == "" {
		return nil, nil
	}
	info, err := os.Stat(c.File)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: image.file: %w", ErrConfig, err)
	case !info.Mode().IsRegular() || info.Size() > image.MaxSize:
		return nil, fmt.Errorf("%w: image.file: %s is no regular file of at most %d bytes", ErrConfig, c.File, image.MaxSize)
	}
	b, err := os.ReadFile(c.File)
	if err != nil {
		return nil, fmt.Errorf("%w: image.file: %w", ErrConfig, err)
	}
	x := &images{agent: a}
	if x.image, err = image.Parse(b); err != nil {
		return nil, fmt.Errorf("%w: image.file: %s: %w", ErrConfig, c.File, err)
	}
	if x.policy, err = image.ParsePolicy(c.Policy); err != nil {
		return nil, fmt.Errorf("%w: image.policy: %w", ErrConfig, err)
	}
	if x.policy == image.PolicyRequire && x.image.Signature == nil {
		return nil, fmt.Errorf("%w: image.file: %s is not signed, and image.policy is require: sign it with millrace image sign", ErrConfig, c.File)
	}
	x.deployer = deploy.New(deploy.Options{
		Image: b, Logger: a.log, Policy: deploy.Policy{DrainTime: time.Duration(a.config.DrainTime), StepTime: imageStep},
	})
	return x, nil
}

// keep runs until ctx ends.
func (x *images) keep(ctx context.Context) {
	interval := imageInterval
	if x.agent.o.Probe > 0 {
		interval = x.agent.o.Probe // tests look often
	}
	// Its options were checked when it was made.
	if err := x.deployer.Keep(ctx, interval, x.open, x.tell); err != nil {
		x.agent.log.Error("images are not kept", "error", err)
	}
}

// open are the drives that can be looked at now: open, and computing.
func (x *images) open() []deploy.Drive {
	a := x.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []deploy.Drive
	for _, v := range a.drives {
		if v.drive == nil || !v.drive.Computes() {
			continue
		}
		dev := v.drive.Device()
		all = append(all, deploy.Drive{
			Name: v.config.Name, Device: dev,
			Drain: func(ctx context.Context) error {
				r, err := dev.ImageReport(ctx)
				if err == nil {
					err = x.trusted(r)
				}
				if err != nil {
					return err
				}
				return v.setAside(ctx)
			},
			Resume: func(context.Context) error { v.takeUp(); return nil },
		})
	}
	return all
}

// trusted holds the image's signature against the node's policy: whether the drive holds the key that made it.
func (x *images) trusted(r *image.Report) error {
	if x.policy == image.PolicyOff {
		return nil
	}
	err := errors.New("the image is not signed")
	if x.image.Signature != nil {
		key := image.KeyID(x.image.Signature.Key)
		if slices.Contains(r.Keys, key) && !slices.Contains(r.RevokedKeys, key) {
			return nil
		}
		err = fmt.Errorf("the drive does not trust key %s, which signed the image: give it to the drive (--image-key), or set image.policy", key)
	}
	if x.policy == image.PolicyWarn {
		x.agent.log.Warn("image", "image", x.image.ID.Short(), "error", err)
		return nil
	}
	return err
}

// tell logs what a look found, if it is news.
func (x *images) tell(k deploy.Kept) {
	if k.Err != nil {
		x.agent.log.Error("rollout", "image", x.image.ID.Short(), "stopped", k.Report.Stopped, "error", k.Err)
	}
	now := fmt.Sprint(k.Drift, k.Halted)
	if now == x.told {
		return
	}
	x.told = now
	for _, d := range k.Drift {
		x.agent.log.Warn("drive drifted", "drive", d.Drive, "image_wanted", d.Want.Short(), "image", d.Runs.Short(), "reason", d.Why, "halted", k.Halted)
	}
}

// errImage is why a drive takes no splits while its image changes.
var errImage = fmt.Errorf("%w: its image is being changed", ErrUnavailable)

// setAside ends the drive's work for a while: no new split, then, when those that run have ended, no program in its memory.
func (v *supervisor) setAside(ctx context.Context) error {
	a, name := v.agent, v.config.Name
	a.mu.Lock()
	v.aside = true
	a.mu.Unlock()
	a.runs.sendAway(name, fmt.Errorf("drive %s: %w", name, errDraining))
	a.beats.now()
	for a.runs.running(name) > 0 {
		if pause(ctx, drainPoll); ctx.Err() != nil {
			return fmt.Errorf("%d splits still run: %w", a.runs.running(name), ctx.Err())
		}
	}
	// What was lent and is being written ends too; then nothing of the drive's memory is used.
	a.runs.sendAway(name, fmt.Errorf("drive %s: %w", name, errImage))
	var errs []error
	for _, job := range a.manager.Jobs() {
		errs = append(errs, a.manager.Restart(job, name))
	}
	return errors.Join(errs...)
}

// takeUp gives the drive work again, if nothing else stands against it.
func (v *supervisor) takeUp() {
	a := v.agent
	a.mu.Lock()
	v.aside = false
	d, ready := v.drive, v.state == "ready"
	a.mu.Unlock()
	if ready {
		v.ready(d)
	}
	a.beats.now()
}
