package remote

import (
	"errors"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestInsertKeepsRuns: ascending, neither empty nor touching, and the same set as a list of numbers.
func TestInsertKeepsRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOf(rapid.Uint64Range(0, 40)).Draw(rt, "numbers")
		var runs []dataset.Run
		for _, n := range numbers {
			runs = insert(runs, n)
		}
		want := sorted(numbers)
		want = slices.Compact(want)
		var got []uint64
		for i, r := range runs {
			require.Less(rt, r.From, r.To)
			if i > 0 {
				require.Less(rt, runs[i-1].To, r.From)
			}
			got = append(got, all(r.From, r.To)...)
		}
		require.Equal(rt, len(want), len(got))
		for i := range want {
			require.Equal(rt, want[i], got[i])
		}
	})
}

// TestAcknowledgementsTravelInGroups: bounded by a count and by a delay.
func TestAcknowledgementsTravelInGroups(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	j := c.attach(t, c.dial(t), AttachOptions{AckDelay: time.Hour, Acks: 25})
	require.Len(t, take(t, c, j, 60, nil).numbers, 60)
	require.NoError(t, j.Flush(t.Context()))
	count := func() (n uint64) {
		token := c.delivered(0)
		for _, r := range append(token.Runs, dataset.Run{To: token.Mark}) {
			n += r.To - r.From
		}
		return n
	}
	require.EqualValues(t, 60, count())
	c.mu.Lock()
	assert.LessOrEqual(t, c.calls["Acknowledge"], 6, "sixty went in a few groups")
	c.mu.Unlock()
	require.NoError(t, j.Close())

	c = newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	j = c.attach(t, c.dial(t), AttachOptions{AckDelay: time.Millisecond, Acks: 1 << 20})
	var token []byte
	take(t, c, j, 5, func(mb *tensor.MiniBatch) {
		require.NoError(t, j.Acknowledge(mb.Name))
		require.Eventually(t, func() bool { return count() > 0 }, 10*time.Second, time.Millisecond, "nobody asked for it")
		var err error
		token, err = j.Checkpoint(t.Context())
		require.NoError(t, err)
	})
	read, err := ReadToken(token)
	require.NoError(t, err)
	require.Equal(t, j.Token(), read)
	require.NoError(t, j.Close())
}

// TestAnAcknowledgementThatIsRefusedEndsTheJob at the next mini-batch, and stays said.
func TestAnAcknowledgementThatIsRefusedEndsTheJob(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	c.before = func(call string) error {
		if call == "Acknowledge" {
			return connect.NewError(connect.CodeInvalidArgument, errors.New("mini-batch 3 is not yours"))
		}
		return nil
	}
	j := c.attach(t, c.dial(t), AttachOptions{})
	got := take(t, c, j, -1, nil)
	require.ErrorContains(t, got.err, "not yours")
	require.ErrorContains(t, j.Flush(t.Context()), "not yours")
	_, err := j.Checkpoint(t.Context())
	require.ErrorContains(t, err, "not yours")
	for _, err := range j.MiniBatches(t.Context()) {
		require.ErrorContains(t, err, "not yours")
	}
	require.ErrorContains(t, j.Close(), "may not be durable")
}

// TestALedgerThatForgotIsNoticed: a token that lacks what was acknowledged is not handed to a trainer.
func TestALedgerThatForgotIsNoticed(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	j := c.attach(t, c.dial(t), AttachOptions{})
	require.NoError(t, take(t, c, j, 10, nil).err)
	require.NoError(t, j.Flush(t.Context()))
	forget := func() { c.ranks[0].delivered = dataset.NewProgress(c.digest, 0, 100) }
	c.set(forget)
	token, err := j.Checkpoint(t.Context())
	require.NoError(t, err, "it is told again")
	read, err := ReadToken(token)
	require.NoError(t, err)
	require.Equal(t, j.Token(), read)
	c.set(func() {
		c.before = func(call string) error {
			if call == "Checkpoint" {
				c.set(forget)
			}
			return nil
		}
	})
	_, err = j.Checkpoint(t.Context())
	require.ErrorIs(t, err, dataset.ErrToken, "it forgets whatever it is told")
	require.NoError(t, j.Close())
}

// TestANewLeaderIsToldWhatWasAcknowledged, since the one before may have had it in memory alone.
func TestANewLeaderIsToldWhatWasAcknowledged(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	j := c.attach(t, c.dial(t), AttachOptions{QueueBytes: 3000})
	n := 0
	got := take(t, c, j, -1, func(*tensor.MiniBatch) {
		if n++; n == 30 {
			require.NoError(t, j.Flush(t.Context()))
			c.set(func() {
				c.fence++
				c.ranks[0].delivered = dataset.NewProgress(c.digest, 0, 100)
			})
		}
	})
	require.NoError(t, got.err)
	require.Len(t, got.numbers, 100)
	require.EqualValues(t, 100, c.delivered(0).Mark)
	require.NoError(t, j.Close())
}

func TestRunsMeetAndJoin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) (set map[uint64]bool, runs []dataset.Run) {
			set = map[uint64]bool{}
			for _, n := range rapid.SliceOf(rapid.Uint64Range(0, 30)).Draw(rt, name) {
				set[n] = true
				runs = insert(runs, n)
			}
			return set, runs
		}
		a, ar := draw("a")
		b, br := draw("b")
		in := func(runs []dataset.Run, n uint64) bool {
			return slices.ContainsFunc(runs, func(r dataset.Run) bool { return r.From <= n && n < r.To })
		}
		both, either := meet(ar, br), join(ar, br)
		for n := range uint64(32) {
			require.Equal(rt, a[n] && b[n], in(both, n), "%d", n)
			require.Equal(rt, a[n] || b[n], in(either, n), "%d", n)
		}
	})
}

func FuzzReadToken(f *testing.F) {
	bare, err := dataset.Token{Epoch: 1, Mark: 3, Runs: []dataset.Run{{From: 5, To: 9}}}.MarshalBinary()
	require.NoError(f, err)
	f.Add(bare)
	f.Add(append([]byte(tokenMagic), append(bare, make([]byte, tokenTag)...)...))
	f.Add([]byte(tokenMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		token, err := ReadToken(b)
		if err != nil {
			require.ErrorIs(t, err, dataset.ErrToken)
			return
		}
		again, err := token.MarshalBinary()
		require.NoError(t, err)
		require.Contains(t, string(b), string(again))
	})
}
