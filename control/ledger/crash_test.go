package ledger

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// crashing is a job of two ranks whose leaders die between two transactions, and the store that outlives them.
type crashing struct {
	t       rapid.TB
	epoch   Epoch
	store   map[string][]byte
	fence   uint64
	l       *Ledger
	asked   [2]numberset.Runs // by rank: the mini-batches that were acknowledged, whether or not the call was answered
	durable [2]numberset.Runs // by rank: the mini-batches of calls that were answered
}

// threeChunks makes an epoch in which the splits of each of three chunks share mini-batches with those of the next.
func threeChunks(t testing.TB) Epoch {
	o := dataset.Options{Batch: 4, SplitBatches: 1, Boundary: dataset.BoundaryNone, Shuffle: dataset.ShuffleNone}
	var partitions []dataset.Partition
	for i := range 3 * format.ChunkSplits {
		rows := int64(1 + i%5)
		partitions = append(partitions, dataset.Partition{Name: fmt.Sprintf("p%05d", i), Bytes: rows + 1, Rows: rows,
			RowGroups: []int64{rows}})
	}
	m, err := dataset.NewManifest(partitions)
	require.NoError(t, err)
	plan, err := dataset.NewPlan(m, o)
	require.NoError(t, err)
	require.Equal(t, 3*format.ChunkSplits, plan.Splits())
	names := make([]string, len(partitions))
	for i, p := range m.Partitions {
		names[i] = p.Name
	}
	return Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names}
}

// newCrashing starts the first leader of the job.
func newCrashing(t rapid.TB, epoch Epoch) *crashing {
	c := &crashing{t: t, store: map[string][]byte{}, epoch: epoch}
	c.lead()
	return c
}

// lead starts a leader with what is stored.
func (c *crashing) lead() {
	c.fence++
	c.l = New(Config{Fence: c.fence})
	require.NoError(c.t, c.l.AddJob(Job{ID: "x", Ranks: 2}))
	if ranks, stored := c.store["ranks"]; stored {
		require.NoError(c.t, c.l.Restore(format.Record{Job: "x", Kind: format.RanksRecord, Data: ranks}))
	}
	require.NoError(c.t, c.l.Begin(c.epoch, scriptStart))
	for key, data := range c.store {
		if key == "ranks" {
			continue
		}
		r, err := format.RecordOf("x", key, data)
		require.NoError(c.t, err)
		require.NoError(c.t, c.l.Restore(r))
	}
	require.NoError(c.t, c.l.EndRestore("x"))
	require.NoError(c.t, c.l.verify())
}

// session returns the session of a rank.
func (c *crashing) session(rank uint32) Session { return c.l.job("x").ranks[rank].session }

// acknowledge acknowledges mini-batches of a rank.
func (c *crashing) acknowledge(rank uint32, from, to uint64) {
	own := c.l.job("x").epoch(0).shares[rank].miniBatches
	r := dataset.Range{From: max(from, own.From), To: min(to, own.To)}
	if r.From >= r.To {
		return
	}
	require.NoError(c.t, c.l.Acknowledge("x", c.session(rank), 0, []dataset.Range{r}, scriptStart))
	c.asked[rank] = c.asked[rank].Union(r.From, r.To)
}

// flush writes at most the given number of transactions of one record, and notes what is durable when there are no
// more.
func (c *crashing) flush(transactions int) {
	for range transactions {
		records := c.l.Flush(1)
		for _, r := range records {
			if c.store[r.Key()] = bytes.Clone(r.Data); r.Data == nil {
				delete(c.store, r.Key())
			}
		}
		if len(records) == 0 {
			require.NoError(c.t, c.l.Broken())
			for rank := range c.durable {
				token, err := c.l.RankToken("x", uint32(rank))
				require.NoError(c.t, err)
				c.durable[rank] = numberset.OfToken(&token)
			}
			return
		}
	}
}

// check compares what the leader has with what was acknowledged.
func (c *crashing) check() {
	for rank := range uint32(2) {
		token, err := c.l.RankToken("x", rank)
		require.NoError(c.t, err)
		own := c.l.job("x").epoch(0).shares[rank].miniBatches
		has := numberset.OfToken(&token)
		for _, r := range c.durable[rank] {
			require.True(c.t, has.Covers(r.From, r.To), "rank %d: %v was answered, and the leader has %v", rank, r, has)
		}
		resumed := numberset.OfToken(c.epoch.Resume).Within(own.From, own.To)
		most := numberset.Runs(dataset.UnionRanges(c.asked[rank], resumed))
		for _, r := range has {
			require.True(c.t, most.Covers(r.From, r.To), "rank %d: %v is delivered, and %v was asked for", rank, r, most)
		}
	}
}

// TestACrashLeavesNoHalfOfAMiniBatch kills the leader between any two transactions while mini-batches are acknowledged
// of which the fragments are in the records of two chunks, and while ranks go back. What was answered stays delivered.
// What was not answered is delivered with all its fragments, or with none, and the next leader writes it so.
func TestACrashLeavesNoHalfOfAMiniBatch(t *testing.T) {
	epoch := threeChunks(t)
	plan, total := epoch.Plan, epoch.Plan.MiniBatches()
	rapid.Check(t, func(t *rapid.T) {
		epoch := epoch
		if rapid.Bool().Draw(t, "resumed") {
			epoch.Resume = drawToken(t, "x", total)
		}
		c := newCrashing(t, epoch)
		borders := []uint64{0, total / 2, total}
		for _, place := range []int{format.ChunkSplits, 2 * format.ChunkSplits} {
			s, err := plan.Split(place)
			require.NoError(t, err)
			require.Positive(t, s.Before, "the chunks share a mini-batch")
			borders = append(borders, s.FirstBatch)
		}
		for rank := range uint32(2) {
			_, err := c.l.Attach("x", rank, nil, scriptStart)
			require.NoError(t, err)
		}
		c.flush(1 << 20)
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			rank := rapid.Uint32Range(0, 1).Draw(t, "rank")
			at := rapid.SampledFrom(borders).Draw(t, "border")
			from := at - min(at, rapid.Uint64Range(0, 3).Draw(t, "before"))
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0: // everything before a border
				c.acknowledge(rank, 0, at+rapid.Uint64Range(0, 3).Draw(t, "more"))
			case 1, 2:
				c.acknowledge(rank, from, at+rapid.Uint64Range(0, 3).Draw(t, "more"))
			case 3: // the rank goes back, and the call is not answered
				token := numberset.OfToken(epoch.Resume).Union(0, from).Token(digestOf("x"), 0)
				_, err := c.l.Attach("x", rank, &token, scriptStart)
				require.NoError(t, err)
				own := c.l.job("x").epoch(0).shares[rank].miniBatches
				c.asked[rank] = c.asked[rank].Union(own.From, min(own.To, max(from, own.From)))
				c.durable[rank] = c.durable[rank].Within(0, from)
			case 4:
				c.flush(1 << 20)
			}
			c.check()
			if rapid.Bool().Draw(t, "dies") {
				c.flush(rapid.IntRange(0, 6).Draw(t, "written"))
				c.lead()
				c.check()
			}
		}
		c.flush(1 << 20)
		c.lead()
		c.check()
	})
}

// TestAMiniBatchOfTwoChunksIsDeliveredWholeOrNotAtAll acknowledges the mini-batch between two chunks, and everything
// before it, and kills the leader after each transaction.
func TestAMiniBatchOfTwoChunksIsDeliveredWholeOrNotAtAll(t *testing.T) {
	halves, epoch := 0, threeChunks(t)
	for _, from := range []bool{false, true} { // the whole epoch before it, too
		for transactions := range 6 {
			c := newCrashing(t, epoch)
			_, err := c.l.Attach("x", 0, nil, scriptStart)
			require.NoError(t, err)
			s, err := c.epoch.Plan.Split(format.ChunkSplits)
			require.NoError(t, err)
			mb, err := c.epoch.Plan.MiniBatch(s.FirstBatch)
			require.NoError(t, err)
			require.Greater(t, mb.Fragments, 1)
			before := uint64(0)
			if from {
				before = s.FirstBatch
				c.acknowledge(0, 0, before)
			}
			c.flush(1 << 20)
			c.acknowledge(0, s.FirstBatch, s.FirstBatch+1)
			c.flush(transactions)
			answered := len(c.durable[0]) > 0 && c.durable[0].Covers(s.FirstBatch, s.FirstBatch+1)
			c.lead()
			c.check()
			token, err := c.l.RankToken("x", 0)
			require.NoError(t, err)
			has := numberset.OfToken(&token)
			whole := has.Covers(s.FirstBatch, s.FirstBatch+1)
			assert.True(t, whole || !answered, "after %d transactions", transactions)
			if c.l.Pending() > 0 && !whole {
				halves++
				assert.Positive(t, transactions)
			}
			c.flush(1 << 20)
			c.lead()
			again, err := c.l.RankToken("x", 0)
			require.NoError(t, err)
			assert.Equal(t, token, again, "the next leader has what this one had")
			assert.Zero(t, c.l.Pending())
		}
	}
	assert.Positive(t, halves, "some leader has left one half in the records")
}
