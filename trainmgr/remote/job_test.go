package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

func TestEveryMiniBatchComesOnce(t *testing.T) {
	for _, o := range []clusterOptions{
		{rows: 400, parts: 3, batch: 10, split: 4, nodes: 2},
		{rows: 400, parts: 3, batch: 10, split: 4, nodes: 2, order: "deterministic"},
		{rows: 95, parts: 2, batch: 10, split: 3, nodes: 1, epochs: 3, unix: true},
		{rows: 5, batch: 10, split: 1, nodes: 3, epochs: 2, order: "deterministic"},
	} {
		c := newCluster(t, o)
		j := c.attach(t, c.dial(t), AttachOptions{})
		assert.Equal(t, testSchema, j.Schema())
		got := take(t, c, j, -1, nil)
		require.NoError(t, got.err)
		total := c.plan[0].MiniBatches()
		require.Len(t, got.numbers, int(total)*len(c.plan))
		for e := range c.plan {
			numbers := got.numbers[e*int(total) : (e+1)*int(total)]
			if o.order == "" {
				numbers = sorted(numbers)
			}
			require.Equal(t, all(0, total), numbers)
		}
		last := c.delivered(0)
		require.EqualValues(t, c.spec.Epochs-1, last.Epoch)
		require.Equal(t, total, last.Mark, "everything is durable when the iteration ends")
		require.NoError(t, j.Close())
	}
}

// TestAnswersThatAreLostAreSaidAgain checks that the leader repeats a grant until the launcher confirms it.
func TestAnswersThatAreLostAreSaidAgain(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 300, batch: 10, split: 3})
	c.set(func() { c.lose = 2 })
	j := c.attach(t, c.dial(t), AttachOptions{Pieces: 2})
	got := take(t, c, j, 12, nil)
	require.NoError(t, got.err)
	rest := take(t, c, j, -1, nil) // the request was broken off and repeated
	require.NoError(t, rest.err)
	require.Equal(t, all(0, 30), sorted(append(got.numbers, rest.numbers...)))
	require.NoError(t, j.Close())
}

// TestARankReportsItsEndAfterAnElection checks that Close of a finished rank asks for longer than the control plane has
// no leader. A report that is lost would keep the job for minutes.
func TestARankReportsItsEndAfterAnElection(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 100, batch: 10, split: 3})
	j := c.attach(t, c.dial(t), AttachOptions{})
	require.NoError(t, take(t, c, j, -1, nil).err)
	elected := time.Now().Add(4 * time.Second)
	c.set(func() {
		c.before = func(call string) error {
			if call == "Release" && time.Now().Before(elected) {
				return connect.NewError(connect.CodeUnavailable, errors.New("no leader is elected"))
			}
			return nil
		}
	})
	require.NoError(t, j.Close())
	c.set(func() { require.Contains(t, c.reasons, protocol.ReasonDone) })
}

// TestTheBatchMayBeThePipelines: a job that says no batch has its pipeline's.
func TestTheBatchMayBeThePipelines(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 95, batch: 10, split: 3})
	c.spec.Plan.Batch = 0
	c.spec.Pipeline = []byte("name: t\nbatch: 10\nlabel: {column: label}\n")
	j := c.attach(t, c.dial(t), AttachOptions{})
	require.Len(t, take(t, c, j, -1, nil).numbers, 10)
	require.NoError(t, j.Close())
	c.spec.Pipeline = []byte("nothing")
	_, err := c.dial(t).Attach(t.Context(), "job", AttachOptions{})
	require.ErrorContains(t, err, "the job's pipeline")
}

func TestEachRankGetsItsShare(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 510, batch: 10, split: 4, nodes: 2, ranks: 2, order: "deterministic"})
	client := c.dial(t)
	for rank, want := range [][]uint64{all(0, 25), all(25, 50)} {
		j := c.attach(t, client, AttachOptions{Rank: uint32(rank)})
		got := take(t, c, j, -1, nil)
		require.NoError(t, got.err)
		require.Equal(t, want, got.numbers)
		require.NoError(t, j.Close())
	}
	_, err := client.Attach(t.Context(), "job", AttachOptions{Rank: 2})
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	_, err = client.Attach(t.Context(), "other", AttachOptions{})
	require.ErrorIs(t, err, ErrNoJob)
}

// TestATrainerThatCrashesResumesFromItsToken: at any point, with acknowledgements of the time after the token already
// durable, whatever the token does not have comes again, and nothing else.
func TestATrainerThatCrashesResumesFromItsToken(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := newCluster(t, clusterOptions{
			rows: 150, parts: 2, batch: 10, split: 4, nodes: 2, epochs: 2,
			order: []string{"fastest", "deterministic"}[seed%2],
		})
		client := c.dial(t)
		seen := map[tensor.Name]int{}
		var token []byte
		for lives := 0; ; lives++ {
			require.Less(t, lives, 200)
			j := c.attach(t, client, AttachOptions{Token: token, QueueBytes: 4000})
			n := 1 + rng.IntN(40)
			var since []tensor.Name // acknowledged, not in the token
			got := take(t, c, j, n, func(mb *tensor.MiniBatch) {
				seen[mb.Name]++
				since = append(since, mb.Name)
				if rng.IntN(6) == 0 {
					require.NoError(t, j.Acknowledge(mb.Name))
					var err error
					token, err = j.Checkpoint(t.Context())
					require.NoError(t, err)
					since = nil
				}
			})
			require.NoError(t, got.err)
			done := len(got.numbers) < n
			require.NoError(t, j.Close())
			if done {
				break
			}
			if token == nil { // nothing to go back to: the ledger stands where it stands
				continue
			}
			for _, name := range since { // the trainer's model forgets them with it
				seen[name]--
			}
		}
		require.Len(t, seen, 2*30)
		for name, n := range seen {
			require.Equal(t, 1, n, "seed %d: mini-batch %v counts %d times in the trainer's model", seed, name, n)
		}
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 100, batch: 10, split: 2})
	client := c.dial(t)
	j := c.attach(t, client, AttachOptions{})
	require.NoError(t, take(t, c, j, 3, nil).err)
	token, err := j.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	bare, err := j.Token().MarshalBinary()
	require.NoError(t, err)
	flip := func(b []byte, at int) []byte {
		b = append([]byte(nil), b...)
		b[at] ^= 1
		return b
	}
	before := c.calls["Attach"]
	for name, tc := range map[string]struct {
		token []byte
		want  error
		local bool
	}{
		"the seal was changed":   {flip(token, len(token)-1), dataset.ErrToken, false},
		"the inside was changed": {flip(token, 10), dataset.ErrToken, true},
		"cut":                    {token[:20], dataset.ErrToken, true},
		"garbage":                {[]byte("garbage"), dataset.ErrToken, true},
		"a bare one changed":     {flip(bare, 40), dataset.ErrToken, true},
		"a bare one":             {bare, dataset.ErrToken, false},
		"another job's":          {c.seal(dataset.Token{Job: dataset.Digest{1}}), dataset.ErrOtherJob, false},
	} {
		_, err := client.Attach(t.Context(), "job", AttachOptions{Token: tc.token})
		require.ErrorIs(t, err, tc.want, name)
		if tc.local {
			require.Equal(t, before, c.calls["Attach"], "%s: seen here", name)
		}
		before = c.calls["Attach"]
	}
	j = c.attach(t, client, AttachOptions{Token: token})
	require.Len(t, take(t, c, j, -1, nil).numbers, 7)
	require.NoError(t, j.Close())
}

func TestTheOlderOfTwoConsumersIsOut(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 5000, batch: 10, split: 4})
	client := c.dial(t)
	old := c.attach(t, client, AttachOptions{QueueBytes: 2000})
	var young *Job
	n := 0
	got := take(t, c, old, -1, func(*tensor.MiniBatch) {
		if n++; n == 20 {
			young = c.attach(t, client, AttachOptions{})
		}
	})
	require.ErrorIs(t, got.err, ErrFenced)
	_, err := old.Checkpoint(t.Context())
	require.ErrorIs(t, err, ErrFenced)
	err = old.Close()
	if err != nil { // its last acknowledgements may have been on their way
		require.ErrorIs(t, err, ErrFenced)
	}
	rest := take(t, c, young, -1, nil)
	require.NoError(t, rest.err)
	require.GreaterOrEqual(t, len(rest.numbers), 500-len(got.numbers))
	require.NoError(t, young.Close())
}

func TestAJobThatWasCancelledSaysSo(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 5000, batch: 10, split: 4})
	client := c.dial(t)
	j := c.attach(t, client, AttachOptions{QueueBytes: 2000})
	n := 0
	got := take(t, c, j, -1, func(*tensor.MiniBatch) {
		if n++; n == 5 {
			require.NoError(t, client.Cancel(t.Context(), "j1"))
		}
	})
	require.ErrorIs(t, got.err, ErrEnded)
	assert.ErrorContains(t, got.err, "cancelled")
	_ = j.Close() // the last acknowledgements cannot be sent any more
}

// TestAJobsNameDoesNotFenceItsRanksOff: the words of the error hold the job's name, and why it has ended.
func TestAJobsNameDoesNotFenceItsRanksOff(t *testing.T) {
	for text, fenced := range map[string]bool{
		"job session-ads-1 has ended: cancelled":              false,
		"job ads-1 has ended: failed: the session is cut off": false,
		"ledger: the session was fenced off: attach again":    true,
	} {
		err := withSentinel(connect.NewError(connect.CodeAborted, errors.New(text)))
		require.Equal(t, fenced, errors.Is(err, ErrFenced), text)
		require.Equal(t, !fenced, errors.Is(err, ErrEnded), text)
	}
}

// TestTheLeaderMayBeAway: while no member leads, leased pieces go on; then acknowledgements arrive.
func TestTheLeaderMayBeAway(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 2000, batch: 10, split: 8, nodes: 2})
	client := c.dial(t)
	j := c.attach(t, client, AttachOptions{QueueBytes: 20_000})
	n := 0
	got := take(t, c, j, -1, func(*tensor.MiniBatch) {
		switch n++; n {
		case 10:
			c.set(func() {
				c.before = func(string) error {
					return connect.NewError(connect.CodeUnavailable,
						errors.New("no leader"))
				}
			})
			time.AfterFunc(300*time.Millisecond, func() {
				c.set(func() { c.before, c.fence, c.ask = nil, 2, true })
			})
		}
	})
	require.NoError(t, got.err)
	require.Equal(t, all(0, 200), sorted(got.numbers))
	require.EqualValues(t, 200, c.delivered(0).Mark)
	require.NoError(t, j.Close())
}

// TestANewLeaderIsTold: a new leader that asks for them gets the leases that the rank holds, with split, range, node
// and drive.
func TestANewLeaderIsTold(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8, nodes: 2})
	j := c.attach(t, c.dial(t), AttachOptions{QueueBytes: 3000})
	n := 0
	got := take(t, c, j, -1, func(*tensor.MiniBatch) {
		if n++; n%5 == 0 {
			c.set(func() {
				if len(c.adopted) > 0 { // else the launcher held nothing when it was asked
					return
				}
				clear(c.ranks[0].leases)
				c.ask = true
			})
		}
	})
	require.NoError(t, got.err)
	require.NotEmpty(t, c.adopted)
	for _, h := range c.adopted {
		s, err := c.plan[0].Split(int(h.Split))
		require.NoError(t, err)
		require.True(t, h.From >= s.FirstFragment && h.To <= s.FirstFragment+uint64(s.Fragments) && h.From < h.To, "%v",
			h)
		require.NotNil(t, c.node(h.Node))
		require.Equal(t, "d 0", h.Drive)
	}
	require.NoError(t, j.Close())
}

func TestAGrantThatIsNotOfThePlanEndsTheJob(t *testing.T) {
	for name, spoil := range map[string]func(*apiv1.Grant){
		"another split": func(g *apiv1.Grant) { g.Split++ },
		"no such split": func(g *apiv1.Grant) { g.Split = 1 << 31 },
		"empty":         func(g *apiv1.Grant) { g.To = g.From },
		"another epoch": func(g *apiv1.Grant) { g.Epoch = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
			c.spoil = spoil
			j := c.attach(t, c.dial(t), AttachOptions{})
			got := take(t, c, j, -1, nil)
			require.ErrorContains(t, got.err, "lease ")
			require.NoError(t, j.Close())
		})
	}
}

// TestASlowTrainerHoldsTheNodesBack: the mini-batches that were asked for and not taken fit the queue.
func TestASlowTrainerHoldsTheNodesBack(t *testing.T) {
	for _, order := range []string{"fastest", "deterministic"} {
		c := newCluster(t, clusterOptions{rows: 20_000, batch: 100, split: 4, nodes: 2, order: order})
		one := makeBatch(tensor.Name{}, 100).Bytes()
		j := c.attach(t, c.dial(t), AttachOptions{QueueBytes: 5 * one})
		n := 0
		got := take(t, c, j, 40, func(*tensor.MiniBatch) {
			n++
			if n%10 == 0 {
				time.Sleep(30 * time.Millisecond)
			}
			served := 0
			for _, node := range c.nodes {
				node.mu.Lock()
				served += len(node.served)
				node.mu.Unlock()
			}
			// Five fit; the mini-batch that is due may come besides, and one was requested before its size was known.
			assert.LessOrEqual(t, served, n+7)
		})
		require.NoError(t, got.err)
		require.NoError(t, j.Close())
	}
}

// TestTheControlPlaneHears of T, of the queue, and of held and fetched leases.
func TestTheControlPlaneHears(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	c.nodes[0].restarted = true
	steps := 0
	j := c.attach(t, c.dial(t), AttachOptions{QueueBytes: 3000,
		Throughput: trainmgr.ThroughputOptions{Time: time.Millisecond},
		Step: &trainmgr.Step{Run: func(_ context.Context, mb *tensor.MiniBatch) error {
			steps++
			require.Equal(t, 10, mb.Rows)
			require.Len(t, mb.Values64, 30, "lists are as long as the data's")
			return nil
		}}})
	require.Positive(t, steps)
	full := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.ContainsFunc(c.reports, func(r *apiv1.RankReport) bool {
			return r.Blocked && r.QueueBatches > 0 &&
				r.QueueBytes > 0
		})
	}
	require.NoError(t, take(t, c, j, 50, func(*tensor.MiniBatch) {
		require.Eventually(t, full, time.Minute, time.Millisecond, "it says when its queue is full")
	}).err)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 50, r.MiniBatches)
	assert.Equal(t, "n0/d 0", r.PerDrive[0].Name)
	assert.EqualValues(t, 7, r.PerDrive[0].CountedRows)
	assert.Equal(t, r.Rows, r.PerDrive[0].Rows, "what the trainer got, whatever the node counted")
	require.Len(t, r.Notes, 1)
	assert.Contains(t, r.Notes[0], "drive n0/d 0 began to count again")
	assert.Equal(t, 2, r.Drives)
	assert.Positive(t, r.TRowsPerSecond)
	require.NoError(t, j.Close())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reports {
		require.Positive(t, r.TRowsPerSecond)
		require.EqualValues(t, 3000, r.QueueLimitBytes)
	}
	assert.Contains(t, c.reasons, "stop")
	assert.Equal(t, "detach", c.reasons[len(c.reasons)-1], "whoever closes in the middle says that nobody is there")
}

// TestReportsNameNodesInOrder: of one job, two reports differ in their numbers alone.
func TestReportsNameNodesInOrder(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 400, batch: 10, split: 1, nodes: 8})
	j := c.attach(t, c.dial(t), AttachOptions{})
	require.NoError(t, take(t, c, j, -1, nil).err)
	for _, n := range c.nodes {
		n.kill()
	}
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(r.Notes), 8)
	assert.IsIncreasing(t, r.Notes[:8])
	require.NoError(t, j.Close())
}

// TestAnEpochOfAnotherJobIsRefused: mini-batches, tokens and acknowledgements are named by the job's digest.
func TestAnEpochOfAnotherJobIsRefused(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 40, batch: 10, split: 1, epochs: 2})
	j := c.attach(t, c.dial(t), AttachOptions{})
	c.set(func() {
		c.before = func(call string) error {
			if call == "Attach" {
				c.set(func() {
					c.digest[0]++
					c.enter(0, 1)
				})
			}
			return nil
		}
	})
	got := take(t, c, j, -1, nil)
	assert.ErrorContains(t, got.err, "the answer is about job j1 with digest")
	assert.Len(t, got.numbers, 4)
	require.NoError(t, j.Close())
}

// TestAnEpochOfAnotherEdition: the partitions of a later epoch are another edition's, whose digest names its
// mini-batches, their acknowledgements and the token.
func TestAnEpochOfAnotherEdition(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 40, batch: 10, split: 1, epochs: 2})
	c.spec.Follow = true
	j := c.attach(t, c.dial(t), AttachOptions{})
	first := j.Digest()
	c.set(func() {
		c.before = func(call string) error {
			if call == "Attach" {
				c.set(func() {
					c.digest[0]++
					c.enter(0, 1)
				})
			}
			return nil
		}
	})
	got := take(t, c, j, -1, nil)
	require.NoError(t, got.err)
	assert.Len(t, got.numbers, 8)
	assert.Equal(t, first, j.Digest())
	assert.Equal(t, c.digest, j.Token().Job)
	assert.NotEqual(t, first, j.Token().Job)
	require.NoError(t, j.Close())
}

func TestNoGoroutineOutlivesAJob(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 5000, batch: 10, split: 4, nodes: 2})
	client := c.dial(t)
	for i := range 4 {
		j := c.attach(t, client, AttachOptions{QueueBytes: 3000})
		require.NoError(t, take(t, c, j, 10, nil).err)
		require.NoError(t, j.Close())
		require.NoError(t, client.Close()) // which closes idle connections; the client can be used on
		if i == 0 {                        // connections of the servers' side are theirs
			leaks.Check(t)
		}
	}
}

func TestAttachRefuses(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 10, batch: 10, split: 1})
	client := c.dial(t)
	for name, o := range map[string]AttachOptions{
		"credits": {Credits: -1}, "pieces": {Pieces: -1}, "acks": {Acks: -1}, "deadline": {Deadline: -1},
		"delay": {AckDelay: -1}, "queue": {QueueBytes: -1}, "t": {RowsPerSecond: -1},
	} {
		_, err := client.Attach(t.Context(), "job", o)
		require.ErrorIs(t, err, ErrOptions, name)
	}
	require.Zero(t, c.calls["Attach"])
}
