package node

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/shared"
)

func TestTheStatusSaysHowMuchOfTheMachineTheNodeUses(t *testing.T) {
	if runtime.GOOS != "linux" {
		shared.Missing(t, "the counters are Linux's")
	}
	f := start(t, nil, fill(t, "mem", nil))
	f.wait("the process has memory", func() bool {
		r, err := f.node.Describe(t.Context(), &apiv1.DescribeRequest{})
		require.NoError(t, err)
		return r.Status.Load.GetMemory() > 0
	})
}
