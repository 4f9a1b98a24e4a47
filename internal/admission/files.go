package admission

import (
	"fmt"
	"syscall"
)

// Reserved is how many file descriptors a server keeps for everything but the connections of its listeners: storage,
// etcd and its members, drives, logs, connections that it makes itself.
const Reserved = 256

// RaiseFiles raises the process's limit of file descriptors as far as it may without privileges, and returns the limit.
func RaiseFiles() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("file descriptors: read the limit: %w", err)
	}
	if l.Cur >= l.Max {
		return l.Cur, nil
	}
	raised := l
	raised.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
		return l.Cur, fmt.Errorf("file descriptors: raise the limit from %d to %d: %w", l.Cur, l.Max, err)
	}
	return raised.Cur, nil
}

// Connections returns how many connections a server may hold, at most most, in a process that may have files file
// descriptors: all but Reserved of the descriptors, or half of them where there are at most twice Reserved.
func Connections(most int, files uint64) int {
	room := files / 2
	if files > 2*Reserved {
		room = files - Reserved
	}
	return int(max(1, min(uint64(max(most, 1)), room)))
}
