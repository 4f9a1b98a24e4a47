//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock waits for the lock on an open file. Closing the file releases the lock.
func Lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
