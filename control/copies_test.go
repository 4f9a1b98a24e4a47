package control

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

func setCopies(t *testing.T, c *client, list ...*apiv1.PartitionCopies) error {
	t.Helper()
	_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.SetCopiesResponse,
		error) {
		return m.SetCopies(ctx, &apiv1.SetCopiesRequest{Partitions: list})
	})
	return err
}

// copiesOf returns the stored numbers as "partition=copies/rows".
func copiesOf(t *testing.T, c *client) []string {
	t.Helper()
	r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ListCopiesResponse,
		error) {
		return m.ListCopies(ctx, &apiv1.ListCopiesRequest{})
	})
	require.NoError(t, err)
	list := []string{}
	for _, p := range r.Partitions {
		list = append(list, fmt.Sprintf("%s=%d/%d", p.Partition, p.Copies, p.Rows))
	}
	return list
}

// TestWantedCopiesOutliveTheControlPlane: the wanted copies exist after a restart, with the last changes.
func TestWantedCopiesOutliveTheControlPlane(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	open := func() (*Server, *client) {
		s, err := Start(patient(t), o)
		require.NoError(t, err)
		return s, newClient(s)
	}
	s, c := open()
	assert.Empty(t, copiesOf(t, c))
	var many []*apiv1.PartitionCopies
	for i := range 250 { // more than fit into one transaction of the store
		many = append(many, &apiv1.PartitionCopies{Partition: fmt.Sprintf("day/p%03d", i), Copies: 2, Rows: 10,
			Bytes: 100})
	}
	require.NoError(t, setCopies(t, c, many...))
	require.NoError(t, setCopies(t, c, &apiv1.PartitionCopies{Partition: "day/p001", Copies: 3, Rows: 10},
		&apiv1.PartitionCopies{Partition: "day/p002"}))
	want := copiesOf(t, c)
	require.Len(t, want, 249)
	require.Equal(t, []string{"day/p000=2/10", "day/p001=3/10", "day/p003=2/10"}, want[:3])
	// Records of another build, and damaged records, are skipped.
	l, err := s.leader()
	require.NoError(t, err)
	require.NoError(t, l.commit(t.Context(), store.Put(record.CopiesPrefix+"junk", []byte("\xff\xff"))))
	require.NoError(t, s.Close())

	s, c = open()
	assert.Equal(t, want, copiesOf(t, c))
	require.NoError(t, s.Close())
}

// TestWantedCopiesFollowTheLeader: another member that becomes the leader knows the wanted copies.
func TestWantedCopiesFollowTheLeader(t *testing.T) {
	t.Parallel()
	members, c := startCluster(t, 3)
	defer closeAll(t, members)
	require.NoError(t, setCopies(t, c, &apiv1.PartitionCopies{Partition: "p", Copies: 2, Rows: 5}))
	at := leads(t, members)
	require.NoError(t, members[at].Close())
	members[at] = nil
	assert.Equal(t, []string{"p=2/5"}, copiesOf(t, c))
}

// TestWantedCopiesAreChecked tests both sides of each limit.
func TestWantedCopiesAreChecked(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	longest := strings.Repeat("n", maxCopyName)
	for name, p := range map[string]*apiv1.PartitionCopies{
		"the longest name": {Partition: longest, Copies: 1},
		"the most copies":  {Partition: "p", Copies: maxCopies},
		"what is unknown":  {Partition: "q"},
	} {
		assert.NoError(t, setCopies(t, c, p), name)
	}
	good := copiesOf(t, c)
	for name, list := range map[string][]*apiv1.PartitionCopies{
		"no name":          {{Copies: 1}},
		"a longer name":    {{Partition: longest + "n", Copies: 1}},
		"a path up":        {{Partition: "../p", Copies: 1}},
		"a NUL":            {{Partition: "a\x00b", Copies: 1}},
		"too many copies":  {{Partition: "p", Copies: maxCopies + 1}},
		"negative bytes":   {{Partition: "p", Copies: 1, Bytes: -1}},
		"negative rows":    {{Partition: "p", Copies: 1, Rows: -1}},
		"one named twice":  {{Partition: "p", Copies: 1}, {Partition: "p", Copies: 2}},
		"one bad of a few": {{Partition: "new", Copies: 1}, {Partition: "", Copies: 2}},
	} {
		err := setCopies(t, c, list...)
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), "%s: %v", name, err)
	}
	assert.Equal(t, good, copiesOf(t, c), "what was refused changed nothing")
}
