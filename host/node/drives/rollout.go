package drives

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/deploy"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/splits"
)

const (
	// driftInterval is how often the drives' images are compared with the wanted one.
	driftInterval = time.Minute
	// rolloutRetry is the wait after a rollout that failed, unless a drive is opened before.
	rolloutRetry = 10 * time.Minute
)

// Image is the image that drives are kept at, and the trust of drives in this process. The zero value changes
// nothing.
type Image struct {
	ID      image.ID                 // zero: the drives keep the images that they have
	Content []byte                   // nil: the drives hold the image already
	Trust   func(*image.Trust) error // changes a drive's trust when it is opened; nil: no change
}

// errLoading is why a drive refuses splits while it gets an image.
var errLoading = errors.New("an image is being loaded")

// signalOpened wakes RollOut, because a drive was opened or failed to open.
func (s *Set) signalOpened() {
	select {
	case s.opened <- struct{}{}:
	default:
	}
}

// RollOut rolls the wanted image out whenever drives drift from it, until ctx ends. It returns at once if no image is
// wanted.
func (s *Set) RollOut(ctx context.Context) {
	want := s.o.Image
	if want.ID == (image.ID{}) {
		return
	}
	notBefore := time.Time{}
	ticker := time.NewTicker(driftInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.opened:
			notBefore = time.Time{}
		case <-ticker.C:
		}
		drives := s.deployable()
		if s.opening() || len(drives) == 0 {
			continue // each drive wakes this goroutine when it was opened
		}
		drifted := deploy.Drift(ctx, drives, want.ID)
		s.recordDrift(drifted)
		if len(drifted) == 0 || time.Now().Before(notBefore) {
			continue
		}
		if !s.deploy(ctx, drives) {
			notBefore = time.Now().Add(rolloutRetry)
		}
		s.recordDrift(deploy.Drift(ctx, s.deployable(), want.ID))
	}
}

// deploy does one rollout, and reports whether it succeeded.
func (s *Set) deploy(ctx context.Context, drives []deploy.Drive) bool {
	id := s.o.Image.ID
	o := deploy.Options{Image: s.o.Image.Content, Logger: s.o.Log}
	if o.Image == nil {
		o.ID = id
	}
	report, err := deploy.New(o).Run(ctx, drives)
	if err != nil {
		s.o.Log.Error("image rollout failed", "image", id.String(), "error", err, "again_in", rolloutRetry)
	}
	for _, d := range report.Drives {
		s.o.Log.Info("image rollout", "drive", d.Drive, "state", d.State.String(), "image", id.String())
	}
	return err == nil
}

// deployable returns the drives that compute and are open.
func (s *Set) deployable() []deploy.Drive {
	var list []deploy.Drive
	for i, status := range s.Statuses() {
		v, d := s.supervisors[i], status.Drive
		if d == nil || !d.Computes() || d.Device() == nil {
			continue
		}
		list = append(list, deploy.Drive{
			Name: status.Name, Device: d.Device(),
			Drain:  func(ctx context.Context) error { return v.drainForImage(ctx, d) },
			Resume: func(ctx context.Context) error { return v.resumeFromImage(ctx, d) },
		})
	}
	return list
}

// opening reports whether a drive was not tried yet.
func (s *Set) opening() bool {
	for _, status := range s.Statuses() {
		if !status.Tried {
			return true
		}
	}
	return false
}

// recordDrift records which drives are not at the image, and logs each that was not known.
func (s *Set) recordDrift(drifted []deploy.Drifted) {
	reasons := map[string]string{}
	for _, d := range drifted {
		reasons[d.Drive] = d.Why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.supervisors {
		why := reasons[v.config.Name]
		if why != v.known.Drift && why != "" {
			s.o.Log.Warn("drive has drifted from its image", "drive", v.config.Name, "why", why)
		}
		v.known.Drift = why
	}
}

// drainForImage ends the splits on the drive, and takes its memory from the jobs: an image is activated on a drive that
// holds nothing.
func (v *supervisor) drainForImage(ctx context.Context, d *host.Drive) error {
	name := v.config.Name
	if err := v.setUpdating(d, true); err != nil {
		return err
	}
	v.setState(d, stateLoading)
	// Open splits may end in the drain's time; requests for new ones go to other drives.
	v.refuse(fmt.Errorf("drive %s: %w: %w", name, splits.ErrDraining, errLoading))
	bound, cancel := context.WithTimeout(ctx, v.set.o.Drain)
	defer cancel()
	if err := v.set.o.Splits.SettleDrive(bound, name); err != nil {
		v.set.o.Log.Warn("splits are cut off for an image", "drive", name, "error", err)
	}
	v.refuseFailed(errLoading)
	return v.set.o.Manager.Suspend(name)
}

// resumeFromImage gives the drive to the jobs again.
func (v *supervisor) resumeFromImage(ctx context.Context, d *host.Drive) error {
	if err := v.setUpdating(d, false); err != nil {
		return err
	}
	if err := v.set.o.Manager.Resume(ctx, v.config.Name); err != nil {
		return err
	}
	v.takeSplits(d)
	return nil
}

// setUpdating records whether the drive gets an image. It fails when d is no longer the drive that is open.
func (v *supervisor) setUpdating(d *host.Drive, on bool) error {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	v.updating = on && v.known.Drive == d
	if v.known.Drive != d {
		return fmt.Errorf("drive %s: %w: it was lost meanwhile", v.config.Name, errorcode.ErrUnavailable)
	}
	return nil
}
