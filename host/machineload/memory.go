package machineload

import (
	"strconv"
	"strings"
)

// readMemoryShare returns the share of MemoryLimit that this process has, without the pages of files that the kernel
// can drop.
func (m *Meter) readMemoryShare() float64 {
	status := m.read("proc/self/status")
	own, known := field(status, "RssAnon:") // in KiB
	buffers, _ := field(status, "RssShmem:")
	if !known {
		return 0
	}
	return share(float64(own+buffers)*1024, float64(m.MemoryLimit()))
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
