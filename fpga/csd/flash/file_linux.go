package flash

import (
	"os"

	"golang.org/x/sys/unix"
)

// punch makes bytes [off, off+n) read as zeros, and frees their space where the file system can.
func punch(f *os.File, off, n int64) error {
	if unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n) == nil {
		return nil
	}
	return writeZeros(f, off, n)
}
