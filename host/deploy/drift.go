package deploy

import (
	"context"

	"github.com/millrace/millrace/fpga/image"
)

// Drifted is a drive that is not at the image that is wanted of it.
type Drifted struct {
	Drive string   `json:"drive"`
	Want  image.ID `json:"image_wanted"`
	Runs  image.ID `json:"image"`  // empty: none, or unknown
	Why   string   `json:"reason"` // for people
	Err   error    `json:"-"`      // why nothing is known of the drive; else nil
}

// Drift returns the drives that do not run the image that is wanted of them (Drive.Want, or want where that is zero),
// that would boot another one, or that should not run it any more. A drive of which no image is wanted has not drifted.
// Drift changes nothing.
func Drift(ctx context.Context, drives []Drive, want image.ID) []Drifted {
	var all []Drifted
	for _, d := range drives {
		wanted := d.Want
		if wanted == (image.ID{}) {
			wanted = want
		}
		if wanted == (image.ID{}) {
			continue
		}
		r, err := d.Device.ImageLog(ctx)
		if err != nil {
			all = append(all, Drifted{Drive: d.Name, Want: wanted, Why: err.Error(), Err: err})
			continue
		}
		if runs, reason := drift(r, wanted); reason != "" {
			all = append(all, Drifted{Drive: d.Name, Want: wanted, Runs: runs, Why: reason})
		}
	}
	return all
}

// drift returns the image that a drive with this log page runs, and how it differs from the wanted image; "" if it does
// not.
func drift(r *image.LogPage, want image.ID) (runs image.ID, reason string) {
	active, ok := r.Active()
	switch {
	case !ok:
		return runs, "it runs no image"
	case active.Image != want:
		reason = "it runs another image"
		if held, ok := r.Find(want); ok && held.Reason != "" {
			reason += ": " + held.Reason
		}
		return active.Image, reason
	case !active.Boot:
		return active.Image, "it would start with another image"
	case active.Standing == image.StandingRevoked:
		return active.Image, "the image is revoked"
	case r.Policy == image.PolicyRequire &&
		active.Standing != image.StandingTrusted && active.Standing != image.StandingStock:
		return active.Image, "the image is not signed by a key that the drive trusts: " + string(active.Standing)
	}
	return active.Image, ""
}
