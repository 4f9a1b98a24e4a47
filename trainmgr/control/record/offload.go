package record

import (
	"fmt"
	"strconv"

	"github.com/millrace/millrace/trainmgr/offload"
)

// Offload is how the splits of a rank are shared out between the rank's own CPUs and all other workers. It changes who
// makes a mini-batch, and no byte of it, so that it is no part of the job's digest. The zero value shares nothing.
type Offload struct {
	Shares bool // the job shares splits out
	// Fixed reports whether Ratio, the share of the splits that other workers make, stays what it is. Otherwise the
	// Policy decides it.
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
