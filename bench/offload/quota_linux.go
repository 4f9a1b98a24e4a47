package offload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// quotaPeriod is the period of a quota, in microseconds.
const quotaPeriod = 100_000

// quota is a control group with a quota of CPU.
type quota struct{ dir string }

// newQuota makes a control group: in cgroup v2 with cpu.max, or in v1 with cpu.cfs_quota_us. The error says why the
// process is not permitted to make one.
func newQuota(name string, cores float64) (*quota, error) {
	limit := strconv.Itoa(int(cores * quotaPeriod))
	var errs []error
	for _, group := range []struct{ root, file, value string }{
		{"/sys/fs/cgroup", "cpu.max", fmt.Sprintf("%s %d", limit, quotaPeriod)},
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", limit},
	} {
		if _, err := os.Stat(filepath.Join(group.root, "cgroup.procs")); err != nil {
			errs = append(errs, err)
			continue
		}
		q := &quota{filepath.Join(group.root, name)}
		if err := os.Mkdir(q.dir, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := os.WriteFile(filepath.Join(q.dir, group.file), []byte(group.value), 0o644); err != nil {
			errs = append(errs, err, q.close())
			continue
		}
		return q, nil
	}
	return nil, errors.Join(errs...)
}

// add puts a process into the group.
func (q *quota) add(pid int) error {
	return os.WriteFile(filepath.Join(q.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// close removes the group. Its processes have ended.
func (q *quota) close() error { return os.Remove(q.dir) }
