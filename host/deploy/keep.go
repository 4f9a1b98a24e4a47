package deploy

import (
	"context"
	"errors"
	"slices"
	"time"
)

// DefaultInterval is how often Keep looks where no interval is given.
const DefaultInterval = time.Minute

// Kept is what a look of Keep found and did.
type Kept struct {
	Drift  []Drifted // when it looked, before it did anything
	Report Report    // of the rollout that it did; no drives: none
	Err    error     // of that rollout
	Halted bool      // a rollout failed: nothing more is rolled out, drift is only told
}

// Keep holds drives at the image until ctx ends. It looks at once, and again every interval (0: DefaultInterval), and rolls the image out over
// the drives that have drifted. drives gives those that are open then; told hears of every look. Neither is called beside a rollout.
//
// A rollout that fails is the last one: an image that did one drive harm is not tried on the next at the next look. Drives that Policy.Failures
// let fail are not tried again either. Drift goes on being told. A new Deployer begins anew.
func (d *Deployer) Keep(ctx context.Context, interval time.Duration, drives func() []Drive, told func(Kept)) error {
	if d.err != nil {
		return d.err
	}
	if interval <= 0 {
		interval = DefaultInterval
	}
	k := keeper{d: d, left: d.opt.Policy.Failures}
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		told(k.look(ctx, drives()))
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// keeper is what Keep remembers from look to look.
type keeper struct {
	d      *Deployer
	left   int      // failures that are still taken
	failed []string // drives that are not tried again
	halted bool
}

// look finds drift and does something about it.
func (k *keeper) look(ctx context.Context, drives []Drive) Kept {
	out := Kept{Drift: Drift(ctx, drives, k.d.opt.ID), Report: Report{Image: k.d.opt.ID, Drives: []Outcome{}}}
	var todo []Drive
	for _, drive := range drives {
		drifted := slices.ContainsFunc(out.Drift, func(x Drifted) bool { return x.Drive == drive.Name && x.Want == k.d.opt.ID && x.Err == nil })
		if drifted && !slices.Contains(k.failed, drive.Name) {
			todo = append(todo, drive)
		}
	}
	if len(todo) > 0 && !k.halted && ctx.Err() == nil {
		out.Report, out.Err = k.d.Run(ctx, todo)
		k.learn(out)
	}
	out.Halted = k.halted
	return out
}

// learn remembers what failed. A rollout that the caller broke off, or that met another one, says nothing of the image.
func (k *keeper) learn(out Kept) {
	if errors.Is(out.Err, context.Canceled) || errors.Is(out.Err, ErrRunning) {
		return
	}
	for _, o := range out.Report.Drives {
		if o.State.Bad() {
			k.failed = append(k.failed, o.Drive)
			k.left--
		}
	}
	k.halted = k.halted || k.left < 0
}
