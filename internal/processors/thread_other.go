//go:build !linux

package processors

import "time"

// ThreadTime returns false: the processor time of a thread is not known here.
func ThreadTime() (used time.Duration, known bool) { return 0, false }
