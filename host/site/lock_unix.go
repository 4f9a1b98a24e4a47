//go:build unix

package site

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits for the lock on an open file; closing the file ends it.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
