//go:build !unix

package service

import "time"

// processorTime returns 0, because this platform does not report it. Values derived from it are 0.
func processorTime() time.Duration { return 0 }
