package deploy

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/image"
)

// Report is how a rollout went.
type Report struct {
	Image   image.ID  `json:"image"`
	Stopped bool      `json:"stopped"` // before every drive had its turn
	Drives  []Outcome `json:"drives"`
}

// Outcome is how a rollout went for one drive.
type Outcome struct {
	Drive  string   `json:"drive"`
	State  State    `json:"state"`
	Before image.ID `json:"image_before"` // empty: none, or not known
	Slot   int      `json:"slot"`         // of the image
	Err    error    `json:"-"`            // an *Error; nil: none
	Error  string   `json:"error"`        // what it says
}

// Error is why a rollout failed on a drive. It wraps the cause, and what failed on the way back.
type Error struct {
	Drive string
	State State  // how the drive ended
	Step  string // that failed: look, drain, load, test, activate, gate, resume
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("drive %s: %s, as step %s failed: %v", e.Drive, e.State, e.Step, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// report is how it went.
func (x *execution) report(r *rollout) Report {
	out := Report{Image: x.d.opt.ID, Drives: []Outcome{}}
	for i, p := range x.drives {
		o := Outcome{Drive: p.Name, State: r.states[i], Before: p.before, Slot: p.slot}
		if p.cause != nil {
			o.Err = &Error{Drive: p.Name, State: o.State, Step: p.step.String(), Err: errors.Join(append([]error{p.cause}, p.also...)...)}
			o.Error = o.Err.Error()
		}
		out.Stopped = out.Stopped || o.State == Untouched
		out.Drives = append(out.Drives, o)
	}
	return out
}

// Err joins what failed; nil if nothing did.
func (r *Report) Err() error {
	var all []error
	for _, o := range r.Drives {
		all = append(all, o.Err)
	}
	if r.Stopped && errors.Join(all...) == nil {
		all = append(all, fmt.Errorf("rollout of image %s: %w", r.Image.Short(), context.Canceled))
	}
	return errors.Join(all...)
}

// Drifted is a drive that is not as it was wanted.
type Drifted struct {
	Drive string   `json:"drive"`
	Want  image.ID `json:"image_wanted"`
	Runs  image.ID `json:"image"`  // empty: none, or not known
	Why   string   `json:"reason"` // for people
	Err   error    `json:"-"`      // why nothing is known of it; else nil
}

// Drift lists the drives that do not run the image they are wanted to: Drive.Want, or want where that is zero; and those that run it but would
// boot another, or should not run it any more. A drive of which no image is wanted has not drifted. It changes nothing.
func Drift(ctx context.Context, drives []Drive, want image.ID) []Drifted {
	var all []Drifted
	for _, d := range drives {
		w := d.Want
		if w == (image.ID{}) {
			w = want
		}
		if w == (image.ID{}) {
			continue
		}
		r, err := d.Device.ImageReport(ctx)
		if err != nil {
			all = append(all, Drifted{Drive: d.Name, Want: w, Why: err.Error(), Err: err})
			continue
		}
		if runs, why := drift(r, w); why != "" {
			all = append(all, Drifted{Drive: d.Name, Want: w, Runs: runs, Why: why})
		}
	}
	return all
}

// drift says how a drive that reports this differs from what is wanted; empty: it does not.
func drift(r *image.Report, want image.ID) (runs image.ID, why string) {
	s, ok := r.Active()
	switch {
	case !ok:
		return runs, "it runs no image"
	case s.Image != want:
		why = "it runs another image"
		if at, ok := r.Find(want); ok && at.Reason != "" {
			why += ": " + at.Reason
		}
		return s.Image, why
	case !s.Boot:
		return s.Image, "it would start with another image"
	case s.Standing == image.StandingRevoked:
		return s.Image, "the image is revoked"
	case r.Policy == image.PolicyRequire && s.Standing != image.StandingTrusted && s.Standing != image.StandingStock:
		return s.Image, "the image is not signed by a key that the drive trusts: " + string(s.Standing)
	}
	return s.Image, ""
}
