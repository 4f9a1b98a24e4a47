package placement

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

// engineTime is the processor time that a software drive's engine has used, in nanoseconds.
type engineTime struct{ used atomic.Int64 }

// wrap counts the time of a drive's executions.
func (t *engineTime) wrap(c controller.Compute) controller.Compute { return timedCompute{c, t} }

// timedCompute is a compute device whose executions are timed.
type timedCompute struct {
	controller.Compute
	time *engineTime
}

// Execute implements controller.Compute. The thread is the execution's own while it runs, so that the thread's time is
// the execution's.
func (c timedCompute) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	defer func() { c.time.used.Add(int64(threadTime() - begin)) }()
	return c.Compute.Execute(ctx, x)
}
