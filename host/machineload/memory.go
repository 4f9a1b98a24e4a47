package machineload

import (
	"strconv"
	"strings"
)

// readMemoryShare returns the share of the group's limit that is in use, where it has one, else of the machine's
// memory. Pages of files that the kernel can drop at once are not in use.
func (m *Meter) readMemoryShare() float64 {
	limit, err := strconv.ParseUint(strings.TrimSpace(m.groupFile("memory.max")), 10, 64)
	if err == nil && limit > 0 {
		used, err := strconv.ParseUint(strings.TrimSpace(m.groupFile("memory.current")), 10, 64)
		if err == nil {
			droppable, _ := field(m.groupFile("memory.stat"), "inactive_file")
			return share(float64(used)-float64(droppable), float64(limit))
		}
	}
	text := m.read("proc/meminfo")
	total, known := field(text, "MemTotal:")
	available, knownToo := field(text, "MemAvailable:")
	if !known || !knownToo {
		return 0
	}
	return share(float64(total)-float64(available), float64(total))
}

// MemoryLimit returns how many bytes of memory the processes here may use: the group's limit, or the machine's memory
// where that is less. 0 means not known.
func (m *Meter) MemoryLimit() uint64 {
	total, _ := field(m.read("proc/meminfo"), "MemTotal:") // in KiB
	limit, err := strconv.ParseUint(strings.TrimSpace(m.groupFile("memory.max")), 10, 64)
	if err == nil && limit > 0 && (total == 0 || limit < total*1024) {
		return limit
	}
	return total * 1024
}
