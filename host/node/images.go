package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/deploy"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/sdk"
)

// Times of image rollouts.
const (
	lookEvery  = time.Minute      // drift is looked for so often
	retryImage = 10 * time.Minute // a rollout that failed is tried again, unless a drive is opened before
)

// wanted is the image that the configuration names, and what drives trust.
type wanted struct {
	options deploy.Options
	id      image.ID
	trust   func(*image.Trust) error // nil: drives keep what they trust
}

// readImage reads what a configuration says of images; nil if it names none.
func readImage(c ImageConfig) (*wanted, error) {
	w := &wanted{}
	if c.ID != "" {
		if err := w.id.UnmarshalText([]byte(c.ID)); err != nil {
			return nil, fmt.Errorf("image.id: %w", err)
		}
		w.options.ID = w.id
	}
	if c.File != "" {
		b, err := readFile(c.File, image.MaxSize)
		if err != nil {
			return nil, fmt.Errorf("image.file: %w", err)
		}
		m, err := image.Parse(b)
		if err != nil {
			return nil, fmt.Errorf("image.file: %s: %w", c.File, err)
		}
		if c.ID != "" && m.ID != w.id {
			return nil, fmt.Errorf("image.file: %s is image %s, image.id says %s", c.File, m.ID, w.id)
		}
		w.options.Image, w.options.ID, w.id = b, image.ID{}, m.ID
	}
	var err error
	if w.trust, err = trust(c); err != nil {
		return nil, err
	}
	return w, nil
}

// trust is what in-process drives are told to trust; nil: they keep what they do.
func trust(c ImageConfig) (func(*image.Trust) error, error) {
	if c.Policy == "" && len(c.Keys) == 0 {
		return nil, nil
	}
	var policy image.Policy
	var keys image.Trust
	if c.Policy != "" {
		var err error
		if policy, err = image.ParsePolicy(c.Policy); err != nil {
			return nil, fmt.Errorf("image.policy: %w", err)
		}
	}
	for i, path := range c.Keys {
		b, err := readFile(path, image.MaxKeyFile)
		if err != nil {
			return nil, fmt.Errorf("image.keys[%d]: %w", i, err)
		}
		more, err := image.ParsePublicKeys(b)
		if err != nil {
			return nil, fmt.Errorf("image.keys[%d]: %s: %w", i, path, err)
		}
		keys.Keys = append(keys.Keys, more...)
	}
	return func(t *image.Trust) error {
		if c.Policy != "" {
			t.Policy = policy
		}
		if len(keys.Keys) > 0 {
			t.Keys = keys.Keys
		}
		return t.Check()
	}, nil
}

// readFile reads a file of at most so many bytes.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return b, errors.Join(err, f.Close())
}

// deployer keeps the drives at the image that the configuration names. It has one goroutine.
type deployer struct {
	agent *Agent
	want  *wanted
	kick  chan struct{} // a drive was opened; capacity 1
}

// opened says that a drive was opened.
func (p *deployer) opened() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// run rolls the image out when drives drift from it, until ctx ends.
func (p *deployer) run(ctx context.Context) {
	if p.want.id == (image.ID{}) {
		return
	}
	notBefore := time.Time{}
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
			notBefore = time.Time{}
		case <-t.C:
		}
		drives := p.drives()
		if p.agent.opening() || len(drives) == 0 {
			continue // each that is opened says so
		}
		drifted := deploy.Drift(ctx, drives, p.want.id)
		p.agent.drifted(drifted)
		if len(drifted) == 0 || time.Now().Before(notBefore) {
			continue
		}
		o := p.want.options
		o.Logger = p.agent.log
		report, err := deploy.New(o).Run(ctx, drives)
		if err != nil {
			p.agent.log.Error("image rollout failed", "image", p.want.id.String(), "error", err, "again_in", retryImage)
			notBefore = time.Now().Add(retryImage)
		}
		for _, d := range report.Drives {
			p.agent.log.Info("image rollout", "drive", d.Drive, "state", d.State.String(), "image", p.want.id.String())
		}
		p.agent.drifted(deploy.Drift(ctx, p.drives(), p.want.id))
	}
}

// drives are those that compute and are open.
func (p *deployer) drives() []deploy.Drive {
	var list []deploy.Drive
	for _, v := range p.agent.drives {
		p.agent.mu.Lock()
		d := v.drive
		p.agent.mu.Unlock()
		if d != nil && d.Computes() && d.Device() != nil {
			list = append(list, deploy.Drive{
				Name: v.config.Name, Device: d.Device(),
				Drain:  func(ctx context.Context) error { return v.drainForImage(ctx, d) },
				Resume: func(ctx context.Context) error { return v.resumeFromImage(ctx, d) },
			})
		}
	}
	return list
}

// errLoading refuses splits while an image is loaded.
var errLoading = errors.New("an image is being loaded")

// loading is the state of a drive that gets an image.
const loading = "loading image"

// drainForImage ends what runs on the drive, and takes its memory from the jobs: an image is activated on a drive that holds nothing.
func (v *supervisor) drainForImage(ctx context.Context, d *host.Drive) error {
	a, name := v.agent, v.config.Name
	if !v.setAside(d, true) {
		return fmt.Errorf("drive %s: %w: it was lost meanwhile", name, ErrUnavailable)
	}
	v.set(d, loading)
	// Splits that run may end, in the drain's time; requests for new ones go to other drives.
	a.runs.SendAway(name, fmt.Errorf("drive %s: %w: %w", name, splits.ErrDraining, errLoading))
	bound, cancel := context.WithTimeout(ctx, time.Duration(a.config.DrainTime))
	defer cancel()
	if err := a.runs.SettleDrive(bound, name); err != nil {
		a.log.Warn("splits are cut off for an image", "drive", name, "error", err)
	}
	a.runs.SendAway(name, fmt.Errorf("drive %s: %w: %w", name, ErrUnavailable, errLoading))
	return a.manager.Suspend(name)
}

// resumeFromImage gives the drive to the jobs again.
func (v *supervisor) resumeFromImage(ctx context.Context, d *host.Drive) error {
	if !v.setAside(d, false) {
		return fmt.Errorf("drive %s: %w: it was lost meanwhile", v.config.Name, ErrUnavailable)
	}
	if err := v.agent.manager.Resume(ctx, v.config.Name); err != nil {
		return err
	}
	v.ready(d)
	return nil
}

// opening tells whether a drive was not tried yet.
func (a *Agent) opening() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.drives {
		if !v.tried {
			return true
		}
	}
	return false
}

// drifted remembers, and logs, which drives are not at the image.
func (a *Agent) drifted(list []deploy.Drifted) {
	now := map[string]string{}
	for _, d := range list {
		now[d.Drive] = d.Why
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.drives {
		why := now[v.config.Name]
		if why != v.drift && why != "" {
			a.log.Warn("drive has drifted from its image", "drive", v.config.Name, "why", why)
		}
		v.drift = why
	}
}

// trustOf puts what the configuration says of images into a drive's options. Drives elsewhere have it in their own.
func (w *wanted) trustOf(o *sdk.DeviceOptions) {
	if w.trust != nil {
		o.Trust = w.trust
	}
}
