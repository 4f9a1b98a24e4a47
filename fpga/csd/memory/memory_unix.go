//go:build unix

package memory

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Map maps n bytes of zeros that take up room only once they are written.
func Map(n int64) ([]byte, func() error, error) {
	if int64(int(n)) != n || n <= 0 {
		return nil, nil, fmt.Errorf("map %d bytes: out of range", n)
	}
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|mapNoReserve)
	if err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
