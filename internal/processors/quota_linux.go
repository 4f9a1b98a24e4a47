package processors

import (
	"math"
	"os"
	"path/filepath"
)

// quota returns the least quota of the process's control groups and of those above them, in processors.
func quota() float64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.Inf(1)
	}
	g := parseGroups(string(text))
	least := math.Inf(1)
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil { // no quota is there, or the group is not visible from here
			return ""
		}
		return string(b)
	}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		walk(g.unified, func(group string) {
			least = math.Min(least, parseMax(read(filepath.Join(root, group, "cpu.max"))))
		})
	}
	for _, root := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"} {
		walk(g.cpu, func(group string) {
			dir := filepath.Join(root, group)
			least = math.Min(least, ratio(read(filepath.Join(dir, "cpu.cfs_quota_us")),
				read(filepath.Join(dir, "cpu.cfs_period_us"))))
		})
	}
	return least
}

// walk calls visit for a group and every group above it.
func walk(group string, visit func(group string)) {
	if group == "" {
		return
	}
	for group = filepath.Clean("/" + group); ; group = filepath.Dir(group) {
		visit(group)
		if group == "/" {
			return
		}
	}
}
