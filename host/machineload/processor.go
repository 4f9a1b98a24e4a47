package machineload

import (
	"math"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of the times in /proc/PID/stat: USER_HZ, which is 100 on every architecture that Go has.
const ticksPerSecond = 100

// The columns of /proc/self/stat behind the process's name (proc_pid_stat(5)).
const (
	columnUser   = 11 // utime
	columnSystem = 12 // stime
)

// readProcessorTicks returns how long processors have worked for this process, and reports whether that is known.
func (m *Meter) readProcessorTicks() (ticks float64, known bool) {
	text := m.read("proc/self/stat")
	words := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name may hold spaces
	if len(words) <= columnSystem {
		return 0, false
	}
	for _, word := range []string{words[columnUser], words[columnSystem]} {
		n, err := strconv.ParseUint(word, 10, 53)
		if err != nil {
			return 0, false
		}
		ticks += float64(n)
	}
	return ticks, true
}

// processors returns how many processors this process may use.
func (m *Meter) processors() float64 {
	if quota := parseQuota(m.groupFile("cpu.max")); quota > 0 {
		return math.Min(quota, m.cores)
	}
	return m.cores
}

// parseQuota returns how many processors cpu.max ("QUOTA PERIOD" in microseconds, or "max PERIOD") allows; 0: all.
func parseQuota(text string) float64 {
	words := strings.Fields(text)
	if len(words) != 2 {
		return 0
	}
	quota, err := strconv.ParseUint(words[0], 10, 63)
	if err != nil {
		return 0
	}
	period, err := strconv.ParseUint(words[1], 10, 63)
	if err != nil || period == 0 {
		return 0
	}
	return float64(quota) / float64(period)
}
