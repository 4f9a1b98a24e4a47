package drives

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
)

const (
	// firstBackoff and longestBackoff are the waits before a drive that failed is opened, or used, again.
	firstBackoff   = 250 * time.Millisecond
	longestBackoff = 30 * time.Second
	// healthyTime is how long a drive works without a fault before its backoff starts from the first again.
	healthyTime = 10 * time.Second
	// probeTime is how long a drive may take to answer a probe.
	probeTime = 5 * time.Second
	// giveUpTime is how long a drive on a network may be away before its splits fail: other drives can do them.
	giveUpTime = 3 * time.Second
	// healthInterval is how often a drive's SMART log is read.
	healthInterval = 30 * time.Second
)

// supervisor keeps one drive open.
type supervisor struct {
	set    *Set
	config Config
	faults chan error // faults has errors of splits that put the drive in question; its capacity is 1.

	// deciding is held while a ready drive begins to take splits, or to refuse them because it is drained, so that the
	// later of both counts.
	deciding sync.Mutex

	// Guarded by Set.mu.
	known    Status
	updating bool      // the drive gets an image, and takes no splits
	healthAt time.Time // when its SMART log was read last
}

// run keeps the drive open until ctx ends.
func (v *supervisor) run(ctx context.Context) {
	pauses := wait.Backoff{First: firstBackoff, Longest: longestBackoff}
	for ctx.Err() == nil {
		worked, err := v.openAndWatch(ctx)
		if ctx.Err() != nil {
			return
		}
		if worked > healthyTime {
			pauses.Reset()
		}
		pause := pauses.Next()
		v.set.o.Log.Warn("drive failed", "drive", v.config.Name, "error", err, "again_in", pause)
		v.setState(nil, failedPrefix+err.Error())
		v.set.signalOpened()
		v.refuseFailed(err)
		_ = wait.Sleep(ctx, pause) // the loop ends with ctx
	}
}

// openAndWatch opens the drive and returns when it is lost, or ctx ends. worked is how long it was open.
func (v *supervisor) openAndWatch(ctx context.Context) (worked time.Duration, err error) {
	d, err := v.open(ctx)
	if err != nil {
		return 0, err
	}
	if err := v.set.o.Manager.AddDrive(d); err != nil {
		return 0, errors.Join(err, d.Close())
	}
	v.set.mu.Lock()
	v.known.Opens++
	v.updating = false
	v.set.mu.Unlock()
	begin := time.Now()
	err = v.watch(ctx, d)
	return time.Since(begin), err
}

// open opens the drive.
func (v *supervisor) open(ctx context.Context) (*host.Drive, error) {
	if v.config.Open != nil {
		return v.config.Open(ctx, v.driveOptions())
	}
	return host.OpenDrive(ctx, v.config.URI, v.driveOptions())
}

// driveOptions returns how the drive is opened.
func (v *supervisor) driveOptions() host.DriveOptions {
	o, name := v.config.Host, v.config.Name
	o.Sources, o.Files = v.set.o.Sources, v.set.files
	o.Device = sdk.DeviceOptions{
		Logger: v.set.o.Log, Owner: v.set.o.Owner(name), TCP: tcp.DialOptions{GiveUp: giveUpTime},
		Trust: v.set.o.Image.Trust, Shared: &v.set.shared,
	}
	if v.set.o.Device != nil {
		v.set.o.Device(name, &o.Device)
	}
	o.Skip = func(member string, err error) {
		v.set.o.Log.Warn("member left out", "drive", name, "member", member, "error", err)
	}
	return o
}

// setState changes the drive's state, and tells the control plane of a change.
func (v *supervisor) setState(d *host.Drive, state string) {
	v.set.mu.Lock()
	was := v.known.State
	v.known.Drive, v.known.State, v.known.Tried = d, state, true
	v.set.mu.Unlock()
	if was != state {
		v.set.o.Log.Info("drive", "drive", v.config.Name, "from", was, "to", state)
		v.set.o.Changed()
	}
}

// refuse makes the node refuse splits on the drive, with a reason; nil makes it take them.
func (v *supervisor) refuse(reason error) { v.set.o.Splits.RefuseDrive(v.config.Name, reason) }

// refuseFailed makes the node refuse splits on the drive because the drive failed.
func (v *supervisor) refuseFailed(err error) {
	v.refuse(fmt.Errorf("drive %s: %w: %w", v.config.Name, errorcode.ErrUnavailable, err))
}

// takeSplits makes the drive take splits, unless it is drained or gets an image. The drive takes splits before it is
// called ready: a client that saw it ready is not refused.
func (v *supervisor) takeSplits(d *host.Drive) {
	v.deciding.Lock()
	defer v.deciding.Unlock()
	v.set.mu.Lock()
	drained, updating := v.known.Drained, v.updating
	v.set.mu.Unlock()
	if updating {
		v.setState(d, stateLoading)
		v.refuseFailed(errLoading)
		return
	}
	v.refuse(v.drainReason(drained))
	v.setState(d, stateReady)
}

// drainReason returns why a ready drive refuses splits, or nil if it is not drained.
func (v *supervisor) drainReason(drained bool) error {
	if !drained {
		return nil
	}
	return fmt.Errorf("drive %s: %w", v.config.Name, splits.ErrDraining)
}

// watch probes an open drive, and repairs what its jobs have on it after a fault, until the drive is lost or ctx ends.
func (v *supervisor) watch(ctx context.Context, d *host.Drive) error {
	v.takeSplits(d)
	v.set.signalOpened()
	v.readHealth(ctx, d)
	ticker := time.NewTicker(v.set.o.Probe)
	defer ticker.Stop()
	var usage utilization
	repair := repairBackoff{pauses: wait.Backoff{First: firstBackoff, Longest: longestBackoff}}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-v.faults:
			if lost := v.repair(ctx, d, err, &repair); lost != nil {
				return lost
			}
		case <-ticker.C:
			busy, err := v.probe(ctx, d)
			if err != nil && ctx.Err() == nil {
				v.refuseFailed(err)
				return errors.Join(err, v.set.o.Manager.RemoveDrive(v.config.Name))
			}
			if share, ok := usage.add(busy, time.Now()); ok {
				v.set.mu.Lock()
				v.known.Busy = share
				v.set.mu.Unlock()
			}
			v.readHealth(ctx, d)
		}
	}
}

// utilization turns the time that a drive's engine threads have computed since it was opened into a share.
type utilization struct {
	busy time.Duration // at the last probe
	at   time.Time     // The last probe was at this time.
}

// add returns the engine threads that were busy since the last probe; ok is false for the first probe, and when the
// drive's counter was reset.
func (u *utilization) add(busy time.Duration, now time.Time) (threads float64, ok bool) {
	if ok = !u.at.IsZero() && busy >= u.busy; ok {
		threads = float64(busy-u.busy) / float64(now.Sub(u.at))
	}
	u.busy, u.at = busy, now
	return threads, ok
}

// repairBackoff is the wait after a repair, which doubles while repairs follow each other closely.
type repairBackoff struct {
	pauses wait.Backoff
	last   time.Time // when the last repair ended
}

// repair handles a fault of a split. A drive that still answers gets the processors of its jobs again, because it may
// have forgotten its state for them; a drive that does not answer is closed, and the error returned.
func (v *supervisor) repair(ctx context.Context, d *host.Drive, fault error, backoff *repairBackoff) error {
	o, name := &v.set.o, v.config.Name
	v.refuseFailed(fault)
	v.setState(d, failedPrefix+fault.Error())
	if time.Since(backoff.last) > healthyTime {
		backoff.pauses.Reset()
	}
	if _, err := v.probe(ctx, d); err != nil {
		return errors.Join(fault, err, o.Manager.RemoveDrive(name))
	}
	o.Log.Warn("drive answers: its jobs get their programs again", "drive", name, "error", fault)
	for _, job := range o.Manager.Jobs() {
		if err := o.Manager.Restart(job, name); err != nil {
			o.Log.Debug("processor did not close well", "drive", name, "digest", host.ShortDigest(job), "error", err)
		}
	}
	_ = backoff.pauses.Sleep(ctx) // the caller looks whether ctx has ended
	select {
	case <-v.faults: // it was sent before the repair
	default:
	}
	backoff.last = time.Now()
	v.takeSplits(d)
	return nil
}

// probe returns how long the drive's engine threads have computed since it was opened. The answer also says that the
// drive is there.
func (v *supervisor) probe(ctx context.Context, d *host.Drive) (busy time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	defer processor.Contain("drive "+v.config.Name+": probe", &err)
	return v.set.o.Manager.Busy(ctx, d)
}

// readHealth reads the drive's SMART log if the last reading is old. A drive that does not report it is in order.
func (v *supervisor) readHealth(ctx context.Context, d *host.Drive) {
	v.set.mu.Lock()
	fresh := time.Since(v.healthAt) < healthInterval
	v.set.mu.Unlock()
	if fresh || d.Device() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	report, err := health.Read(ctx, d.Device())
	if err != nil {
		v.set.o.Log.Debug("drive does not tell its health", "drive", v.config.Name, "error", err)
		report = nil
	}
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	v.known.Health, v.healthAt = report, time.Now()
}

// questionsDrive reports whether a split's error puts its drive in question. An error of the partition or of the
// request does not, and neither does a split that was stopped or refused.
func questionsDrive(err error) bool {
	for _, ours := range []error{splits.ErrStopped, splits.ErrDraining, errorcode.ErrUnavailable, host.ErrSuspended,
		host.ErrSource} {
		if errors.Is(err, ours) {
			return false
		}
	}
	if source.Concerns(err) { // a partition of a store could not be read, which is not a fault of the drive
		return false
	}
	return errors.Is(err, processor.ErrPanic) || errorcode.Of(err) == connect.CodeUnavailable
}
