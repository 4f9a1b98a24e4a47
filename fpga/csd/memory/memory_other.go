//go:build !unix

package memory

import "fmt"

// Map allocates n bytes of zeros. Systems without mmap hold them all from the start.
func Map(n int64) ([]byte, func() error, error) {
	if int64(int(n)) != n || n <= 0 {
		return nil, nil, fmt.Errorf("map %d bytes: out of range", n)
	}
	return make([]byte, n), func() error { return nil }, nil
}
