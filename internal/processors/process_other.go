//go:build !linux

package processors

import "time"

// TimeOf returns 0: the processor time of another process is not known here.
func TimeOf(int) time.Duration { return 0 }
