package faults

import (
	"context"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/controller/programs"
)

// Compute wraps the compute device of a drive.
func (in *Injector) Compute(c controller.Compute) controller.Compute { return &compute{c, in} }

type compute struct {
	controller.Compute
	in *Injector
}

func (c *compute) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	if result, st := c.in.endExecution(); !st.OK() {
		c.in.log.Warn("fault: execution", "status", st)
		return result, st
	}
	return c.Compute.Execute(ctx, x)
}

// Programs returns the device's program slots. The drive asks for them before a host connects.
func (c *compute) Programs() programs.Device {
	p := c.Compute.Programs()
	c.in.regions.Store(int32(max(p.Limits().Regions, 1) - 1))
	return p
}

// endExecution counts an execution, and returns how it ends where a rule meets it; otherwise the status is Success.
func (in *Injector) endExecution() (result uint64, st nvme.Status) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.script.Execute {
		if e := &in.script.Execute[i]; in.execute[i].countMatch(e.Count) {
			in.stats.Executions++
			return e.Result, e.Status
		}
	}
	return 0, nvme.Success
}
