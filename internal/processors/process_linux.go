package processors

import (
	"time"

	"golang.org/x/sys/unix"
)

// TimeOf returns the processor time that another process of this machine has used so far, user and system; 0 if it is
// not known.
func TimeOf(pid int) time.Duration {
	const wholeProcess = 2 // CPUCLOCK_SCHED: the nanoseconds that the scheduler counted, of all threads
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|wholeProcess), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
