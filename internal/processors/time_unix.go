//go:build unix

package processors

import (
	"syscall"
	"time"
)

// Time returns the processor time that this process has used so far, user and system; 0 if it is not known.
func Time() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
