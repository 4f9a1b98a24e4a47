package placement

import (
	"syscall"
	"time"
)

// threadTime returns the CPU time that this thread has used so far, user and system.
func threadTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
