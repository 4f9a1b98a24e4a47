package node

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestANodeWithoutTheBoundaryRefusesTheJob hands a job over as a node reads it that is older than the boundary none.
// The node makes another digest of it, and would cut other mini-batches.
func TestANodeWithoutTheBoundaryRefusesTheJob(t *testing.T) {
	f := start(t, nil, fill(t, "mem", content(t)))
	j := f.describeJob(nodetest.Document, dataset.Options{Boundary: dataset.BoundaryNone})
	old := &apiv1.PrepareRequest{}
	proto.Merge(old, j.PrepareRequest)
	old.Plan.Boundary = ""
	_, err := f.node.Prepare(t.Context(), old)
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "%v", err)
	assert.ErrorContains(t, err, "as new as its control plane")
	_, err = f.node.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)
}
