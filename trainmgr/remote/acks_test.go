package remote

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestAcknowledgementsTravelInGroups: bounded by a count and by a delay.
func TestAcknowledgementsTravelInGroups(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	j := c.attach(t, c.dial(t), AttachOptions{AckDelay: time.Hour, Acks: 25})
	require.Len(t, take(t, c, j, 60, nil).numbers, 60)
	require.NoError(t, j.Flush(t.Context()))
	count := func() (n uint64) {
		token := c.delivered(0)
		for _, r := range append(token.Ranges, dataset.Range{To: token.Mark}) {
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
		require.Eventually(t, func() bool { return count() > 0 }, time.Minute, time.Millisecond,
			"nobody asked for it")
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

// TestALedgerThatForgotIsNoticed: a token that lacks acknowledged mini-batches is not handed to a trainer.
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

// TestANewLeaderGetsAllAcknowledgements: launchers repeat acknowledgements to a new leader, since the control plane may
// have been restored from a backup.
func TestANewLeaderGetsAllAcknowledgements(t *testing.T) {
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

// TestALeaderThatIsNewBetweenTwoEpochs: a leader that is new between two epochs gets the acknowledgements of the epoch
// that has ended, and none of the next one.
func TestALeaderThatIsNewBetweenTwoEpochs(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 200, batch: 10, split: 4, epochs: 3})
	c.before = func(call string) error {
		if call == "Lease" { // of the next epoch too
			c.set(func() { c.fence++ })
		}
		return nil
	}
	j := c.attach(t, c.dial(t), AttachOptions{AckDelay: 20 * time.Millisecond})
	n := 0
	got := take(t, c, j, -1, func(*tensor.MiniBatch) {
		n++
		d := c.delivered(0)
		count := d.Mark
		for _, r := range d.Ranges {
			count += r.To - r.From
		}
		if int(d.Epoch) == (n-1)/20 {
			require.Less(t, count, uint64((n-1)%20+1), "epoch %d", d.Epoch)
		}
	})
	require.NoError(t, got.err)
	require.Len(t, got.numbers, 60)
	require.NoError(t, j.Close())
}

// TestATokenThatSaysTooMuchIsRefused: a trainer that resumed from the token would never get the rest.
func TestATokenThatSaysTooMuchIsRefused(t *testing.T) {
	c := newCluster(t, clusterOptions{rows: 1000, batch: 10, split: 8})
	j := c.attach(t, c.dial(t), AttachOptions{})
	got := take(t, c, j, 10, nil)
	require.NoError(t, got.err)
	require.NoError(t, j.Flush(t.Context()))
	_, err := j.Checkpoint(t.Context())
	require.NoError(t, err)
	never := uint64(99) // mini-batches come in any order, so which ten came is not known before
	for slices.Contains(got.numbers, never) {
		never--
	}
	c.set(func() { require.NoError(t, c.ranks[0].delivered.Ack(never)) })
	_, err = j.Checkpoint(t.Context())
	require.ErrorIs(t, err, dataset.ErrToken)
	require.ErrorContains(t, err, fmt.Sprintf("mini-batch %d was", never))
	require.NoError(t, j.Close())
}

func FuzzReadToken(f *testing.F) {
	bare, err := dataset.Token{Epoch: 1, Mark: 3, Ranges: []dataset.Range{{From: 5, To: 9}}}.MarshalBinary()
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
