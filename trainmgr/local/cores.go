package local

import (
	"runtime"

	"github.com/millrace/millrace/sdk"
)

// EngineThreads returns how many engine threads each of the drives made of files has: as many as the user asked for, or
// an equal part of the cores that the trainer leaves. cores is how many this process may use, by its affinity and its
// control group's quota.
func (c *Config) EngineThreads(cores int) int {
	if c.Threads > 0 {
		return c.Threads
	}
	left := cores - max(c.TrainerCores, 0)
	if c.TrainerCores == 0 {
		left = cores - 1
	}
	return min(max(left/max(c.Spread, 1), 1), sdk.MaxThreads)
}

// availableCores returns how many cores this process may use.
func availableCores() int { return runtime.GOMAXPROCS(0) }
