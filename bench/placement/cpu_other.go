//go:build !unix

package placement

import "time"

// processorTime is not known here: what is derived from it is 0.
func processorTime() time.Duration { return 0 }
