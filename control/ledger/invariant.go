package ledger

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// InvariantError says that a statement that always holds does not: this program has a fault, or the memory of the
// machine has. The ledger writes no record from then on. Its owner gives up its term, and the next leader begins with
// the records, which were checked before they were written.
type InvariantError struct {
	Job       string
	Epoch     uint64
	Invariant string // Invariant is the statement that does not hold.
	Found     string // Found says what is the case.
}

// Error names the job, the epoch and the invariant.
func (e *InvariantError) Error() string {
	return fmt.Sprintf("ledger: job %s: epoch %d: this does not hold: %s; %s", e.Job, e.Epoch, e.Invariant, e.Found)
}

// The invariants.
const (
	deliveredWhole = "all fragments of a mini-batch are delivered, or none"
	deliveredOnce  = "a number is delivered once, so that no more numbers are delivered than the rank owns"
	leaseInSplit   = "a lease lies in its rank's part of a split, and no other lease has its numbers"
	markDelivered  = "every split before the mark is delivered"
	recordIsState  = "a record that is written is the state"
	stateHasRecord = "what a record says is delivered is delivered after the record was read"
	tokenIsCounted = "a token has as many numbers as are counted as delivered"
	rowsLeft       = "the rows of a partition that are left are not fewer than 0"
)

// Broken returns the first broken invariant, or nil.
func (l *Ledger) Broken() error {
	if l.broken == nil {
		return nil
	}
	return l.broken
}

// breaks notes a broken invariant, and returns it.
func (l *Ledger) breaks(e *epoch, invariant, found string, values ...any) error {
	err := &InvariantError{e.job.ID, e.number, invariant, fmt.Sprintf(found, values...)}
	if l.broken == nil {
		l.broken = err
	}
	return err
}

// checkDelivered checks the counts of a share after some of its numbers became delivered.
func (l *Ledger) checkDelivered(e *epoch, sh *share, s dataset.Split) {
	if got, owned := sh.delivered.fragments, sh.owned.fragments; got > owned {
		_ = l.breaks(e, deliveredOnce, "rank %d has delivered %d of %d", sh.rank.number, got, owned)
	}
	if rows := e.left[s.Partition]; rows < 0 && !e.uncounted {
		_ = l.breaks(e, rowsLeft, "partition %d has %d", s.Partition, rows)
	}
}

// checkLease checks a lease that is about to begin.
func (l *Ledger) checkLease(le *lease) {
	e := le.epoch
	from, to := e.shares[le.rank.number].portion(e.split(le.Split))
	if others := le.rank.leasesWithin(e, le.From, le.To); le.From < from || le.To > to || len(others) > 0 {
		_ = l.breaks(e, leaseInSplit, "rank %d gets [%d, %d) of split %d, owns [%d, %d) of it, and has %d leases there",
			le.rank.number, le.From, le.To, le.Split, from, to, len(others))
	}
}

// checkCount checks a token of the shares before it leaves the ledger: it lies in the plan, and has the numbers that
// were counted one by one. more are the mini-batches of no share.
func (l *Ledger) checkCount(e *epoch, t dataset.Token, shares []share, more numberset.Runs) error {
	has, want, end := uint64(0), more.Count(0, e.plan.MiniBatches()), uint64(0)
	for _, r := range t.Acknowledged() {
		has += r.To - r.From
		end = r.To
	}
	for i := range shares {
		own := shares[i].miniBatches
		want += shares[i].delivered.miniBatches + e.resumed.Count(own.From, own.To)
	}
	if has != want || end > e.plan.MiniBatches() {
		return l.breaks(e, tokenIsCounted, "a token has %d numbers below %d of %d, and %d are counted", has, end,
			e.plan.MiniBatches(), want)
	}
	return nil
}

// checkRecord reads a record before it is written, and compares it with the state.
func (l *Ledger) checkRecord(r format.Record) {
	j := l.job(r.Job)
	e := j.epoch(r.Epoch)
	if r.Data == nil || r.Kind == format.RanksRecord || e == nil {
		return // A deletion follows from other records, and the ranks' record is a list of numbers.
	}
	if r.Kind == format.MarkRecord {
		mark, err := format.DecodeMark(r.Data, e.splits)
		if first := e.done.Next(0, e.splits, false); err != nil || mark > first {
			_ = l.breaks(e, markDelivered, "the mark is %d and split %d is not delivered (%v)", mark, first, err)
		}
		return
	}
	first := int(r.Chunk) * format.ChunkSplits
	size := min(format.ChunkSplits, e.splits-first)
	done, parts, err := format.DecodeChunk(r.Data, size)
	if err == nil {
		err = e.checkParts(first, parts)
	}
	words := e.done[first/64 : (first+size+63)/64]
	if err != nil || !slices.Equal(words, done[:len(words)]) {
		_ = l.breaks(e, recordIsState, "chunk %d is another one (%v)", r.Chunk, err)
	}
}

// checkRead checks that a chunk's record that was read is part of the state.
func (l *Ledger) checkRead(e *epoch, chunk int, done numberset.Bits, parts []format.Part) error {
	first := chunk * format.ChunkSplits
	for w := range (min(format.ChunkSplits, e.splits-first) + 63) / 64 {
		if lost := done[w] &^ e.done[first/64+w]; lost != 0 {
			return l.breaks(e, stateHasRecord, "of splits %d and later the bits %#x are lost", first+64*w, lost)
		}
	}
	now := e.partsOf(chunk)
	for _, p := range parts {
		i := slices.IndexFunc(now, func(o format.Part) bool { return o.Split == p.Split })
		for _, r := range p.Runs {
			if !e.done.Get(first+p.Split) && (i < 0 || !now[i].Runs.Covers(r.From, r.To)) {
				return l.breaks(e, stateHasRecord, "numbers [%d, %d) of split %d are lost", r.From, r.To, first+p.Split)
			}
		}
	}
	return nil
}
