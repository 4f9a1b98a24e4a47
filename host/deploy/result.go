package deploy

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/image"
)

// Result is how a rollout went.
type Result struct {
	Image   image.ID  `json:"image"`
	Stopped bool      `json:"stopped"` // before every drive had its turn
	Drives  []Outcome `json:"drives"`
}

// Outcome is how a rollout went for one drive.
type Outcome struct {
	Drive  string   `json:"drive"`
	State  State    `json:"state"`
	Before image.ID `json:"image_before"` // empty: none, or unknown
	Slot   int      `json:"slot"`         // The image is in this slot.
	Err    error    `json:"-"`            // a *DriveError; nil: none
	Error  string   `json:"error"`        // its text
}

// DriveError is why a rollout failed on a drive. It wraps the cause, and what failed on the way back.
type DriveError struct {
	Drive string
	State State  // in which the drive ended
	Step  string // This step failed: look, drain, load, test, activate, gate or resume.
	Err   error
}

func (e *DriveError) Error() string {
	return fmt.Sprintf("drive %s: %s, as step %s failed: %v", e.Drive, e.State, e.Step, e.Err)
}

// Unwrap returns the cause.
func (e *DriveError) Unwrap() error { return e.Err }

// result returns how the rollout went.
func (x *execution) result(r *rollout) Result {
	result := Result{Image: x.o.ID, Drives: []Outcome{}}
	for i, p := range x.drives {
		o := Outcome{Drive: p.Name, State: r.states[i], Before: p.before, Slot: p.slot}
		if p.cause != nil {
			causes := append([]error{p.cause}, p.secondary...)
			o.Err = &DriveError{Drive: p.Name, State: o.State, Step: p.step.String(), Err: errors.Join(causes...)}
			o.Error = o.Err.Error()
		}
		result.Stopped = result.Stopped || o.State == Untouched
		result.Drives = append(result.Drives, o)
	}
	return result
}

// Err joins the errors of the drives; nil if there are none and every drive had its turn.
func (r *Result) Err() error {
	var all []error
	for _, o := range r.Drives {
		all = append(all, o.Err)
	}
	if r.Stopped && errors.Join(all...) == nil {
		all = append(all, fmt.Errorf("rollout of image %s: %w", r.Image.Short(), context.Canceled))
	}
	return errors.Join(all...)
}
