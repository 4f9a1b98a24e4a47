package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// newWorker serves a fake machine without drives, with one worker of any reach.
func newWorker(t testing.TB, name string) *fakeNode {
	n := newNode(t, name, nil)
	n.set(func(s *apiv1.NodeStatus) {
		s.Drives = []*apiv1.Drive{{Name: "w", Streams: 2, State: "ready", Reach: "any"}}
		s.Schemas = nil
	})
	return n
}

func locate(t *testing.T, c *client, job []byte, names ...string) ([]*apiv1.PartitionSource, error) {
	r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LocateResponse, error) {
		return m.Locate(ctx, &apiv1.LocateRequest{Job: job, Partitions: names})
	})
	return r.GetSources(), err
}

// TestAWorkerIsToldWhereThePartitionsAre: Prepare lists the sources of the first partitions, and Locate those of
// every partition, also when holders die.
func TestAWorkerIsToldWhereThePartitionsAre(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	var many []*apiv1.Partition
	for i := range maxPrepared + 10 {
		many = append(many, partition(t, fmt.Sprintf("p%04d", i), 10))
	}
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": many})
	b := newNode(t, "b", map[string][]*apiv1.Partition{"d": many[:1]})
	w := newWorker(t, "w")
	a.beats(t, c)
	stopB := b.beats(t, c)
	w.beats(t, c)
	await(t, c, "a", "b", "w")
	st := submit(t, c, &apiv1.JobSpec{Name: "job", TRowsPerSecond: 1e6}) // T is more than the drives make
	until(t, c, "job", "running")

	copies := func(p *apiv1.PartitionSource) (on []string) {
		for _, h := range p.Copies {
			on = append(on, h.Node+"/"+h.Drive)
		}
		return on
	}
	sources := w.preparedSources(t, st.Digest)
	require.Len(t, sources, maxPrepared, "the first ones only")
	assert.Equal(t, "p0000", sources[0].Partition)
	assert.Equal(t, []string{"a/d", "b/d"}, copies(sources[0]))
	assert.Equal(t, []string{a.url}, sources[1].Copies[0].Urls)
	assert.Empty(t, a.preparedSources(t, st.Digest), "a node that holds partitions needs no sources")

	last := many[len(many)-1].Name
	sources, err := locate(t, c, st.Digest, last, "p0000")
	require.NoError(t, err)
	assert.Equal(t, last, sources[0].Partition, "in the order of the request")
	assert.Equal(t, []string{"a/d"}, copies(sources[0]))
	assert.Equal(t, []string{"a/d", "b/d"}, copies(sources[1]))
	stopB()
	require.Eventually(t, func() bool { return nodeRecord(t, s, "b").State == "dead" }, time.Minute, time.Millisecond)
	sources, err = locate(t, c, st.Digest, "p0000")
	require.NoError(t, err)
	assert.Equal(t, []string{"a/d"}, copies(sources[0]))

	names := make([]string, maxLocated+1)
	for i := range names {
		names[i] = many[i].Name
	}
	_, err = locate(t, c, st.Digest, names[:maxLocated]...)
	require.NoError(t, err)
	for name, bad := range map[string]struct {
		job   []byte
		names []string
		code  connect.Code
	}{
		"too many":            {st.Digest, names, connect.CodeInvalidArgument},
		"none":                {st.Digest, nil, connect.CodeInvalidArgument},
		"a short digest":      {st.Digest[1:], names[:1], connect.CodeInvalidArgument},
		"an unknown digest":   {make([]byte, 32), names[:1], connect.CodeNotFound},
		"another partition's": {st.Digest, []string{"q"}, connect.CodeInvalidArgument},
	} {
		_, err := locate(t, c, bad.job, bad.names...)
		assert.Equal(t, bad.code, connect.CodeOf(err), name)
	}
}
