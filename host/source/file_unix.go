//go:build unix

package source

import (
	"fmt"
	"io/fs"
	"syscall"
)

// FileIdentity returns the identity of a file: device, inode, size and the time of the last write.
func FileIdentity(info fs.FileInfo) Identity {
	var device, inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		device, inode = uint64(stat.Dev), stat.Ino //nolint:unconvert // the type of Dev differs between systems
	}
	return Identity{
		Kind: ByFile, Size: info.Size(), Value: fmt.Sprintf("%d-%d-%d", device, inode, info.ModTime().UnixNano()),
	}
}
