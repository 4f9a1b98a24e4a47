package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// movedCompute notes the report on its command's copies that every execution gets.
type movedCompute struct {
	*stubCompute
	moved []time.Duration
}

func (m *movedCompute) Execute(ctx context.Context, x Execution) (uint64, nvme.Status) {
	m.moved = append(m.moved, x.Moved)
	return m.stubCompute.Execute(ctx, x)
}

func TestAnExecutionKnowsWhatItsCopiesTook(t *testing.T) {
	m := &movedCompute{stubCompute: newStub(testSLM)}
	d, err := New(Options{Flash: &memFlash{data: pattern(testFlash, 1)}, Compute: m})
	require.NoError(t, err)
	c, err := Local(d, HostID{})
	require.NoError(t, err)
	defer c.Close()
	reserve(t, c, testSLM)
	ranges := []cs.Range{{Addr: 0, Len: 512}, {Addr: 512, Len: 512}, {Addr: 1024, Len: 512}}
	preprocess(t, c, cs.Preprocess{Ranges: ranges, Copies: []cs.Copy{{NSID: 1, NLB: 100, Dest: 4096}}}, nvme.Success)
	preprocess(t, c, cs.Preprocess{Ranges: ranges}, nvme.Success)
	execute(t, c, 0, ranges, nil, nvme.Success)
	require.Len(t, m.moved, 3)
	assert.Positive(t, m.moved[0])
	assert.LessOrEqual(t, vendorLog(t, c).FlashToDRAM.Nanoseconds, uint64(m.moved[0]),
		"the log counts the copies alone")
	assert.Zero(t, m.moved[1], "nothing was copied")
	assert.Zero(t, m.moved[2], "copies were commands of their own")
}
