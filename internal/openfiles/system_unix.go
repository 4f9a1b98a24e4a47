//go:build unix

package openfiles

import (
	"io/fs"
	"math"
	"syscall"
)

// StateOf returns the state of a file.
func StateOf(info fs.FileInfo) State {
	s := State{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Device, s.Inode = uint64(stat.Dev), stat.Ino //nolint:unconvert // the type of Dev differs between systems
	}
	return s
}

// descriptorLimit returns how many descriptors the process may have.
func descriptorLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return defaultLimit
	}
	return int(min(uint64(l.Cur), math.MaxInt32)) //nolint:unconvert // the type of Cur differs between systems
}
