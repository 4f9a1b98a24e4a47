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

// execTime bounds how long a process may be in the middle of execve, where its command line is empty: the program that
// started it goes on as soon as the old program is gone, which is before the new one's arguments are in place.
const execTime = 2 * time.Second

// look tells what process has an id; nil if none has, or it has ended and nobody has asked for its exit status yet.
func look(pid int) (*process, error) {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		p, err := lookOnce(pid)
		if err != nil || p == nil || len(p.Command) > 0 {
			return p, err
		}
		if time.Since(begin) > execTime {
			return nil, nil // a thread of the kernel has this id by now
		}
	}
}

// lookOnce is look, but for a process in the middle of execve, whose Command is empty.
func lookOnce(pid int) (*process, error) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, fmt.Errorf("/proc does not show the processes of this PID namespace (%s is not %d): mount it anew", self, os.Getpid())
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if gone(err) {
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
	if gone(err) {
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

// gone reports whether a process has ended while it was looked at.
func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
