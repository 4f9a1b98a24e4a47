//go:build !linux

package placement

import "time"

// threadTime is not known here: no seconds are told as an engine's.
func threadTime() time.Duration { return 0 }
