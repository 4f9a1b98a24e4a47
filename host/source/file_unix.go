//go:build unix

package source

import (
	"fmt"
	"os"
	"syscall"
)

// fileIdentity returns the identity of an open file: device, inode, size and the time of the last write.
func fileIdentity(f *os.File) (Identity, error) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, err
	}
	var device, inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		device, inode = uint64(stat.Dev), stat.Ino //nolint:unconvert // the type of Dev differs between systems
	}
	return Identity{
		Kind: ByFile, Size: info.Size(), Value: fmt.Sprintf("%d-%d-%d", device, inode, info.ModTime().UnixNano()),
	}, nil
}
