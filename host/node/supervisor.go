package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
)

// Backoff of a drive that does not open, or fails again and again.
const (
	firstBackoff   = 250 * time.Millisecond
	longestBackoff = 30 * time.Second
	// healthyTime is how long a drive has to do well for the backoff to begin anew.
	healthyTime = 10 * time.Second
	// probeTime is how long a drive may take to answer a question.
	probeTime = 5 * time.Second
	// giveUpTime is how long a drive on a network may be away before its splits fail: other drives can do them.
	giveUpTime = 3 * time.Second
)

// supervisor keeps one drive open. What it tells others is guarded by Agent.mu.
type supervisor struct {
	agent  *Agent
	config DriveConfig
	faults chan error // streams that failed; capacity 1
	done   chan struct{}

	// Guarded by Agent.mu.
	drive   *host.Drive // nil while it is not open
	state   string      // "opening", "ready", "failed: why"
	drained bool        // by Drain
	tried   bool        // opened, or failed to, once
	busy    float64     // engine threads busy in the last interval
	opens   int         // how often it was opened
	aside   bool        // it gets an image: no splits
	drift   string      // why it is not at the image that is wanted

	health   *health.Report // nil: it does not tell, or was not asked yet
	healthAt time.Time      // when it was asked
}

// fault says that a stream on the drive failed. It does not wait.
func (v *supervisor) fault(err error) {
	if !driveFault(err) {
		return
	}
	select {
	case v.faults <- err:
	default:
	}
}

// run keeps the drive open until ctx ends.
func (v *supervisor) run(ctx context.Context) {
	defer close(v.done)
	for delay := firstBackoff; ctx.Err() == nil; delay = min(2*delay, longestBackoff) {
		d, err := host.OpenDrive(ctx, v.config.URI, v.options())
		if err == nil {
			if err = v.agent.manager.AddDrive(d); err != nil {
				err = errors.Join(err, d.Close())
			}
		}
		if err == nil {
			v.agent.mu.Lock()
			v.opens++
			v.aside = false
			v.agent.mu.Unlock()
			begin := time.Now()
			err = v.watch(ctx, d)
			if time.Since(begin) > healthyTime {
				delay = firstBackoff
			}
		}
		if ctx.Err() != nil {
			return
		}
		v.agent.log.Warn("drive failed", "drive", v.config.Name, "error", err, "again_in", delay)
		v.set(nil, "failed: "+err.Error())
		v.agent.images.opened() // it was tried, which others wait for
		v.agent.runs.SendAway(v.config.Name, fmt.Errorf("drive %s: %w: %w", v.config.Name, ErrUnavailable, err))
		pause(ctx, delay)
	}
}

func (v *supervisor) options() host.DriveOptions {
	o := v.config.options(v.agent.config.Text)
	o.Jobs = v.config.jobs()
	o.Device = sdk.DeviceOptions{Logger: v.agent.log, Owner: v.agent.owner(v.config.Name), TCP: tcp.DialOptions{GiveUp: giveUpTime}}
	v.agent.images.want.trustOf(&o.Device)
	if v.agent.o.Device != nil {
		v.agent.o.Device(v.config.Name, &o.Device)
	}
	o.Skip = func(member string, err error) {
		v.agent.log.Warn("member left out", "drive", v.config.Name, "member", member, "error", err)
	}
	return o
}

// set changes the drive's state; a change is told to the control plane at once.
func (v *supervisor) set(d *host.Drive, state string) {
	a := v.agent
	a.mu.Lock()
	was := v.state
	v.drive, v.state, v.tried = d, state, true
	a.mu.Unlock()
	if was != state {
		a.log.Info("drive", "drive", v.config.Name, "from", was, "to", state)
		a.heartbeat.SendSoon()
	}
}

// ready takes splits, unless the drive is drained or gets an image.
func (v *supervisor) ready(d *host.Drive) {
	v.agent.mu.Lock()
	drained, aside := v.drained, v.aside
	v.agent.mu.Unlock()
	name := v.config.Name
	switch {
	case aside:
		v.set(d, loading)
		v.agent.runs.SendAway(name, fmt.Errorf("drive %s: %w: %w", name, ErrUnavailable, errLoading))
	case drained:
		v.set(d, "ready")
		v.agent.runs.SendAway(name, fmt.Errorf("drive %s: %w", name, splits.ErrDraining))
	default:
		v.set(d, "ready")
		v.agent.runs.SendAway(name, nil)
	}
}

// setAside says whether the drive gets an image; false when it is no longer the one that is open.
func (v *supervisor) setAside(d *host.Drive, on bool) bool {
	v.agent.mu.Lock()
	defer v.agent.mu.Unlock()
	v.aside = on && v.drive == d
	return v.drive == d
}

// watch probes an open drive and heals it until it is lost, or ctx ends. It closes the drive.
func (v *supervisor) watch(ctx context.Context, d *host.Drive) error {
	a, name := v.agent, v.config.Name
	v.ready(d)
	a.images.opened()
	v.readHealth(ctx, d)
	probe := time.NewTicker(a.o.probe())
	defer probe.Stop()
	busy, at := time.Duration(0), time.Time{}
	heal := firstBackoff
	healed := time.Time{}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-v.faults:
			a.runs.SendAway(name, fmt.Errorf("drive %s: %w: %w", name, ErrUnavailable, err))
			v.set(d, "failed: "+err.Error())
			if time.Since(healed) > healthyTime {
				heal = firstBackoff
			}
			if _, perr := v.probe(ctx, d); perr != nil {
				return errors.Join(err, perr, a.manager.RemoveDrive(name))
			}
			// It answers: what it held for the jobs may be gone.
			a.log.Warn("drive answers: its jobs get their programs again", "drive", name, "error", err)
			for _, job := range a.manager.Jobs() {
				if rerr := a.manager.Restart(job, name); rerr != nil {
					a.log.Debug("processor did not close well", "drive", name, "digest", short(job), "error", rerr)
				}
			}
			pause(ctx, heal)
			select {
			case <-v.faults: // of before
			default:
			}
			heal, healed = min(2*heal, longestBackoff), time.Now()
			v.ready(d)
		case <-probe.C:
			now, err := v.probe(ctx, d)
			if err != nil && ctx.Err() == nil {
				a.runs.SendAway(name, fmt.Errorf("drive %s: %w: %w", name, ErrUnavailable, err))
				return errors.Join(err, a.manager.RemoveDrive(name))
			}
			if t := time.Now(); !at.IsZero() && now >= busy {
				a.mu.Lock()
				v.busy = float64(now-busy) / float64(t.Sub(at))
				a.mu.Unlock()
			}
			busy, at = now, time.Now()
			v.readHealth(ctx, d)
		}
	}
}

// probe asks the drive how busy it was, which tells whether it is there.
func (v *supervisor) probe(ctx context.Context, d *host.Drive) (busy time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	defer sdk.Contain("drive "+v.config.Name+": probe", &err)
	return v.agent.manager.Busy(ctx, d)
}

// drive finds an open drive by name.
func (a *Agent) drive(name string) (*host.Drive, error) {
	v := a.supervisor(name)
	if v == nil {
		return nil, a.noDrive(name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if v.drive == nil || strings.HasPrefix(v.state, "failed") {
		return nil, fmt.Errorf("drive %s: %w: %s", name, ErrUnavailable, v.state)
	}
	return v.drive, nil
}

func (a *Agent) noDrive(name string) error {
	return fmt.Errorf("drive %.80q: %w on node %s", name, api.ErrUnknownDrive, a.config.Name)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// roles that may call what; the zero value of a connection without TLS passes (identity.Require).
var (
	mayOperate = []identity.Role{identity.Control, identity.Operator}
	mayLook    = []identity.Role{identity.Control, identity.Operator, identity.Launcher, identity.Node}
	mayTrain   = []identity.Role{identity.Launcher, identity.Operator}
	mayCopy    = []identity.Role{identity.Node, identity.Operator, identity.Control}
)
