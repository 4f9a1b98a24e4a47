package control

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// TestASelectionThatFailsLeavesNoCall: the node of three partitions cannot test their rows for a filter. The job fails
// at the first answer, and the member waits for the answers of all calls that it has begun when it closes.
func TestASelectionThatFailsLeavesNoCall(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 4000), partition(t, "p1", 4000),
		partition(t, "p2", 4000)}})
	st := submit(t, c, &apiv1.JobSpec{Name: "job", Pipeline: []byte(testPipeline + "filter: {column: cat_0, ge: 1}\n")})
	require.Eventually(t, func() bool {
		return strings.HasPrefix(get(t, c, st.Id).State, "failed: make the selection of the filter")
	}, time.Minute, 5*time.Millisecond)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "the member does not close: nobody takes the answer of a call")
	}
}
