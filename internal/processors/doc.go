// Package processors says what this process uses of the machine's processors, and how much of them it may use.
package processors

import (
	"bufio"
	"math"
	"runtime"
	"strconv"
	"strings"
)

// Available returns how many processors this process may use: those of the machine that its affinity allows, or fewer
// if a quota of its control groups (cpu.max, cpu.cfs_quota_us) says so. It may be a fraction.
func Available() float64 { return math.Min(float64(runtime.NumCPU()), quota()) }

// parseMax reads a cpu.max of cgroup v2: quota and period in microseconds. It returns +Inf for "max", and for text
// that is not a quota.
func parseMax(text string) float64 {
	quota, period, ok := strings.Cut(strings.TrimSpace(text), " ")
	if !ok {
		return math.Inf(1)
	}
	return ratio(quota, period)
}

// ratio returns quota over period, or +Inf if they are not two positive numbers.
func ratio(quota, period string) float64 {
	q, err := strconv.ParseUint(strings.TrimSpace(quota), 10, 53)
	if err != nil || q == 0 {
		return math.Inf(1)
	}
	p, err := strconv.ParseUint(strings.TrimSpace(period), 10, 53)
	if err != nil || p == 0 {
		return math.Inf(1)
	}
	return float64(q) / float64(p)
}

// groups are the control groups of a process, as /proc/self/cgroup lists them.
type groups struct {
	unified string // cgroup v2; "" if there is none
	cpu     string // the controller cpu of cgroup v1; "" if there is none
}

// parseGroups reads /proc/self/cgroup. Lines that are no control groups are left out.
func parseGroups(text string) groups {
	var g groups
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			g.unified = parts[2]
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if controller == "cpu" {
				g.cpu = parts[2]
			}
		}
	}
	return g
}
