//go:build !linux

package placement

import "time"

// threadTime returns 0, because this platform does not report it. No seconds are then attributed to an engine.
func threadTime() time.Duration { return 0 }
