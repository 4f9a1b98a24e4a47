package autoscale

import (
	"errors"
	"fmt"
)

// errReplay says that a log's decisions do not follow from its inputs.
var errReplay = errors.New("autoscale: replay")

// replay computes every decision of a log again and compares the results. It also compares each state with the state
// that the record before led to. The records belong to one job and are in order; the log may begin at any record.
func replay(log []Record) error {
	for i, r := range log {
		if i > 0 && log[i-1].Decision.After != r.Before {
			return fmt.Errorf("%w: decision %d does not begin where the one before ended: a record is missing",
				errReplay, i)
		}
		if got := decide(r.Options.withDefaults(), r.Before, r.Inputs.known()); got != r.Decision {
			return fmt.Errorf("%w: decision %d was %d drives (%s), the inputs lead to %d (%s)", errReplay, i,
				r.Decision.Drives, r.Decision.Why, got.Drives, got.Why)
		}
	}
	return nil
}
