package machineload

import (
	"strconv"
	"strings"
	"time"
)

// processorTime is how long processors worked until now.
type processorTime struct {
	busy float64 // seconds under a quota, else ticks
	// total is every tick of every processor, idle or not; 0 under a quota, where quota says how many processors the
	// group may use.
	total float64
	quota float64
}

// shareSince returns the share of the processors, or of the quota, that worked since an earlier reading.
func (t processorTime) shareSince(before processorTime, elapsed time.Duration) float64 {
	if t.quota > 0 {
		if before.quota <= 0 {
			return 0 // the quota is new: busy counted something else before
		}
		return share(t.busy-before.busy, t.quota*elapsed.Seconds())
	}
	if before.quota > 0 {
		return 0
	}
	return share(t.busy-before.busy, t.total-before.total)
}

// readProcessorTime reads the group's time where it has a quota, else the machine's.
func (m *Meter) readProcessorTime() processorTime {
	if quota := parseQuota(m.groupFile("cpu.max")); quota > 0 {
		if used, ok := field(m.groupFile("cpu.stat"), "usage_usec"); ok {
			return processorTime{busy: float64(used) / 1e6, quota: quota}
		}
	}
	return parseProcessorTicks(m.read("proc/stat"))
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

// The columns of the line "cpu" of /proc/stat (proc_stat(5)) that are not work: idle and iowait. Guests' time is
// counted in user and nice, too, so what follows steal is left out.
const (
	columnIdle   = 3
	columnIOWait = 4
	columns      = 8
)

// parseProcessorTicks reads the line of all processors of /proc/stat.
func parseProcessorTicks(text string) (t processorTime) {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	if len(words) < 1+columns || words[0] != "cpu" {
		return processorTime{}
	}
	for i, word := range words[1 : 1+columns] {
		ticks, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return processorTime{}
		}
		t.total += float64(ticks)
		if i != columnIdle && i != columnIOWait {
			t.busy += float64(ticks)
		}
	}
	return t
}
