package record

import (
	"fmt"
	"strconv"

	"github.com/millrace/millrace/trainmgr/offload"
)

// Offload says how a rank's splits are divided between the rank's own CPUs and all other workers. It selects the worker
// of a mini-batch and changes no byte of the mini-batch, so that it is not part of the job's digest. The zero value
// divides nothing.
type Offload struct {
	Shares bool // the job divides its splits
	// Fixed reports whether Ratio, the share of the splits that other workers make, stays constant. Otherwise the Policy
	// decides Ratio.
	Fixed  bool
	Ratio  float64
	Policy offload.Policy
}

// ParseOffload reads JobSpec.offload. The error wraps ErrSpec.
func ParseOffload(word string) (Offload, error) {
	if word == "" {
		return Offload{}, nil
	}
	if ratio, err := strconv.ParseFloat(word, 64); err == nil {
		if !(ratio >= 0 && ratio <= 1) {
			return Offload{}, fmt.Errorf("%w: offload %q: a share is from 0 to 1", ErrSpec, word)
		}
		return Offload{Shares: true, Fixed: true, Ratio: ratio}, nil
	}
	policy, err := offload.ParsePolicy(word)
	if err != nil {
		return Offload{}, fmt.Errorf("%w: offload: %w, or a share from 0 to 1", ErrSpec, err)
	}
	return Offload{Shares: true, Policy: policy}, nil
}
