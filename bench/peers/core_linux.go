package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// tie binds every thread of this process, and so those it will start and its children, to one processor: the last
// allowed one for cpu -1. It returns which.
func tie(cpu int) (int, error) {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return 0, fmt.Errorf("which processors may be used: %w", err)
	}
	if cpu < 0 {
		for i := range 8 * len(allowed) * 8 {
			if allowed.IsSet(i) {
				cpu = i
			}
		}
	}
	if cpu < 0 || !allowed.IsSet(cpu) {
		return 0, fmt.Errorf("processor %d may not be used", cpu)
	}
	one.Set(cpu)
	for range 2 { // a thread that starts meanwhile is the child of a bound thread, or is found the second time
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return 0, err
		}
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return 0, err
			}
			if err := unix.SchedSetaffinity(id, &one); err != nil && err != unix.ESRCH {
				return 0, fmt.Errorf("bind thread %d to processor %d: %w", id, cpu, err)
			}
		}
	}
	return cpu, nil
}

// cpuSeconds is the processor time of this process.
func cpuSeconds() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
