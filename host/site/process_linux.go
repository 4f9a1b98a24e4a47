package site

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// execTime bounds how long a process may be in the middle of execve, where its command line is empty: the process that
// started it goes on as soon as the old program is gone, which is before the arguments of the new program are readable.
const execTime = 2 * time.Second

// lookUp returns the process of an id. It returns nil if there is none, or if it has ended and only its exit status is
// left.
func lookUp(pid int) (*process, error) {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		p, err := lookUpOnce(pid)
		if err != nil || p == nil || len(p.Command) > 0 {
			return p, err
		}
		if time.Since(begin) > execTime {
			return nil, nil // a thread of the kernel has this id by now
		}
	}
}

// lookUpOnce is lookUp, except that the Command of a process in the middle of execve is empty.
func lookUpOnce(pid int) (*process, error) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, fmt.Errorf("/proc does not show the processes of this PID namespace (%s is not %d): mount it again",
			self, os.Getpid())
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if hasEnded(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The name, in parentheses, may hold anything: fields are counted behind it. State is the third field, the start
	// the 22nd.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("%sstat has %d fields", dir, len(fields)+2)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return nil, nil
	}
	command, err := os.ReadFile(dir + "cmdline")
	if hasEnded(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(command) == 0 {
		return &process{PID: pid}, nil
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	return &process{
		PID: pid, Began: strings.TrimSpace(string(boot)) + " " + fields[19],
		Command: strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00"),
	}, nil
}

// hasEnded reports whether an error says that a process ended while it was looked up.
func hasEnded(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
