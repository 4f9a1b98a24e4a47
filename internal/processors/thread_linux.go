package processors

import (
	"syscall"
	"time"
)

// rusageThread is RUSAGE_THREAD of getrusage(2).
const rusageThread = 1

// ThreadTime returns the processor time that the calling thread has used so far, user and system. known is false where
// the system does not report it. The caller locks its goroutine to the thread between two calls.
func ThreadTime() (used time.Duration, known bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
