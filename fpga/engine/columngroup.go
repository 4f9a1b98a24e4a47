package engine

import (
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/engine/tensors"
)

// groupPlan is the compiled form of columns that are read side by side, a block of rows at a time: a map (mapPlan) or a
// graph (graphPlan).
type groupPlan interface {
	base() *columnGroup
	// blockSize returns how many values a leaf should have in a block, and how many rows a block has at most.
	blockSize(x *executor) (values, maxRows int)
	// writeBlock writes what the group makes of the n rows in the blocks of the leaves, as rows row, row+1, ... of the
	// mini-batch. ValuesStart is the element of kjt.values at which the group's values begin. ok is false if the
	// output lacks room. leaf is the leaf that an error is about.
	writeBlock(x *executor, row uint64, n int, valuesStart uint64) (ok bool, leaf int, err error)
}

// columnGroup is what all groups have.
type columnGroup struct {
	leaves     int          // columns of the group
	valuesLeaf int          // the leaf whose task reports the values written, and the lack of output
	keys       tensors.Keys // The output that the group feeds has these keys.
}

// base implements groupPlan.
func (g *columnGroup) base() *columnGroup { return g }

// checkGroupTask checks that the tasks of a group follow each other in the order of columns and cover the same rows.
func (x *executor) checkGroupTask(i int, c *column) error {
	if c.group == nil {
		return nil
	}
	tasks := x.slice.Tasks
	t := &tasks[i]
	if c.part.Continues() {
		if i == 0 || tasks[i-1].Column+1 != t.Column {
			return failure.Slice("column %q: it is read together with the column before it, and that has no task before",
				c.Name)
		}
		if before := &tasks[i-1]; before.Row != t.Row || before.Count != t.Count {
			return failure.Slice("column %q: rows %d+%d, read together with column %d in rows %d+%d", c.Name, t.Row, t.Count,
				before.Column, before.Row, before.Count)
		}
		return nil
	}
	for k := 1; k < c.group.base().leaves; k++ {
		if i+k >= len(tasks) || tasks[i+k].Column != t.Column+uint32(k) {
			return failure.Slice("column %q: it has a task, and the %d columns that are read together with it have not all one",
				c.Name, c.group.base().leaves-1)
		}
	}
	return nil
}
