//go:build unix

package service

import (
	"syscall"
	"time"
)

// processorTime returns the CPU time that the process has used so far, user and system.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
