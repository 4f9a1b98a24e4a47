//go:build linux || darwin

package passes

import "golang.org/x/sys/unix"

// freeBytes returns the bytes that this user may write on the disk of a folder.
func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}
