package endtoend

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestALinkThatIsCut runs a control plane and two storage nodes, each in a network of its own behind a link that the
// test cuts in the middle of a job. The leader counts a node that is cut off as dead. When the link works again, the
// job goes on, and every mini-batch comes once with the right bytes. A trainer whose control plane is cut off goes on
// with the leases that it holds. It takes long, because a node counts as dead after a time of silence.
func TestALinkThatIsCut(t *testing.T) {
	if !apartOrSkip(t) {
		return
	}
	data := files(t, 700, 1100, 400, 49, 950)
	want := onOneMachine(t, data, 1)
	for _, c := range cuts() {
		for n, whose := range []string{"control plane", "node"} {
			t.Run(c.name+", "+whose, func(t *testing.T) { overLinks(t, data, want, c, n) })
		}
	}
}

// overLinks runs a job over links and cuts the n-th of them: the control plane's link, or the first node's.
func overLinks(t *testing.T, data map[string][]byte, want *result, c cut, n int) {
	all := []*link{{N: 1}, {N: 2}, {N: 3}}
	o := controlOptions(t.TempDir())
	o.Logger, o.Listen, o.Trusted, o.DeadAfter = nil, all[0].there()+":7460", links, time.Second
	member := start(t, role{Member: &o, Link: all[0]})
	var nodes []*process
	for i, held := range deal(data, 2) {
		config := nodeConfig(fmt.Sprintf("n%d", i), member.said[:1], makeDrive(t, "file", held))
		config.Listen, config.InsecureNetwork = []string{all[i+1].there() + ":7070"}, links
		nodes = append(nodes, start(t, role{Node: &config, Link: all[i+1]}))
	}
	client := dial(t, member.said[0])
	awaitPartitions(t, client, map[string]bool{"n0": true, "n1": true}, len(data))
	st, err := client.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j, err := client.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 20_000, Deadline: time.Second})
	require.NoError(t, err)
	got := newResult()
	var cutting sync.WaitGroup
	defer cutting.Wait()
	for mb, err := range j.MiniBatches(ctx) {
		require.NoError(t, err)
		got.add(t, mb)
		if len(got.sums) == 12 {
			cutting.Go(func() {
				assert.NoError(t, c.cut(all[n]))
				defer func() { assert.NoError(t, c.mend(all[n])) }()
				if n == 0 {
					time.Sleep(3 * time.Second)
					return
				}
				assert.Eventually(t, func() bool { return stateOf(ctx, client, "n0") == "dead" }, time.Minute,
					20*time.Millisecond, "the link is cut")
				time.Sleep(time.Second)
			})
		}
	}
	cutting.Wait() // the job may be over before the node is known to be dead; its processes are still asked
	require.NoError(t, j.Close())
	check(t, want, got, false)
	for _, p := range append(nodes, member) {
		p.kill() // none has ended before
		require.Error(t, p.err)
	}
}

// stateOf returns the leader's state of a node.
func stateOf(ctx context.Context, c *remote.Client, name string) string {
	list, err := c.Nodes(ctx)
	if err != nil {
		return err.Error()
	}
	for _, n := range list {
		if n.Status.Name == name {
			return n.State
		}
	}
	return "unknown"
}
