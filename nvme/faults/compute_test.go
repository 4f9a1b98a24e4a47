package faults

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// counted is a compute device whose executions give their number.
type counted struct {
	controller.Compute // nil: what is not here is not called
	ran                uint64
}

func (c *counted) Execute(context.Context, controller.Execution) (uint64, nvme.Status) {
	c.ran++
	return c.ran, nvme.Success
}

func TestExecutionsFailByCount(t *testing.T) {
	in, err := New(&Script{Execute: []Execute{
		{Status: nvme.InternalError, Count: Count{After: 1, Times: 2}},
		{Status: cs.StatusProgramFault, Result: 7, Count: Count{After: 2, Times: 1}},
	}}, Options{})
	require.NoError(t, err)
	device := &counted{}
	wrapped := in.Compute(device)
	for i, want := range []struct {
		result uint64
		st     nvme.Status
	}{{1, nvme.Success}, {0, nvme.InternalError}, {0, nvme.InternalError}, {2, nvme.Success}, {7,
		cs.StatusProgramFault}, {3, nvme.Success}} {
		result, st := wrapped.Execute(t.Context(), controller.Execution{})
		require.Equal(t, want.result, result, i)
		require.Equal(t, want.st, st, i)
	}
	assert.EqualValues(t, 3, device.ran, "an execution that fails does not run")
	assert.EqualValues(t, 3, in.Stats().Executions)
}

func TestReplaceCountsFromZero(t *testing.T) {
	in := injector(t, "fail: [{operation: read, lba: 0, times: 1}]")
	f := in.Flash(&memory{data: make([]byte, 1024)})
	once, err := Parse([]byte("fail: [{operation: read, lba: 0, times: 1}]"))
	require.NoError(t, err)
	for range 2 {
		_, err = f.ReadAt(make([]byte, 512), 0)
		require.ErrorIs(t, err, ErrInjected)
		_, err = f.ReadAt(make([]byte, 512), 0)
		require.NoError(t, err)
		require.NoError(t, in.Replace(once))
	}
	require.Error(t, in.Replace(&Script{Execute: []Execute{{Count: Count{Times: 1}}}}), "a success is not a fault")
	_, err = f.ReadAt(make([]byte, 512), 0)
	require.ErrorIs(t, err, ErrInjected, "the script stays")
	require.NoError(t, in.Replace(&Script{Fail: []Fail{{Operation: Read, Blocks: 1, Status: nvme.UnrecoveredReadError,
		Count: Count{Times: Always}}}}))
	require.NoError(t, in.Replace(&Script{}))
	_, err = f.ReadAt(make([]byte, 512), 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, in.Stats().Reads)
}
