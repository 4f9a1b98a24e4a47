package ledger

import (
	"fmt"
	"math/bits"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
)

// journal notes which of an epoch's records differ from the stored records.
type journal struct {
	splits     int
	mark       int            // as stored, or about to be stored: every split before it is delivered
	dirtyMark  bool           // differs from what is stored
	storedMark int            // The mark in the record, or -1 if there is no record.
	dirty      numberset.Bits // by chunk
	stored     numberset.Bits // by chunk: there is a record
}

func newJournal(splits int) journal {
	n := chunks(splits)
	return journal{splits: splits, storedMark: -1, dirty: numberset.NewBits(n), stored: numberset.NewBits(n)}
}

func chunks(splits int) int { return (splits + format.ChunkSplits - 1) / format.ChunkSplits }

// chunkChanged notes that the record of a split's chunk changes.
func (n *journal) chunkChanged(place int) { n.dirty.Set(place / format.ChunkSplits) }

// splitChanged notes that a split became delivered, or is not delivered any more.
func (n *journal) splitChanged(place int) {
	n.chunkChanged(place)
	if place < n.mark { // the records of the chunks before the mark were deleted: write them again
		n.dirty.Fill(place/format.ChunkSplits, chunks(n.mark))
		n.mark, n.dirtyMark = place, true
	}
}

// settled notes that the state in which the epoch begins needs no record, because the state follows from the job.
func (n *journal) settled() { clear(n.dirty) }

// advanceMark moves the mark past delivered splits.
func (e *epoch) advanceMark() {
	n := &e.journal
	if n.dirty.Next(0, chunks(n.splits), true) == chunks(n.splits) && !n.dirtyMark {
		return
	}
	if m := e.done.Next(n.mark, n.splits, false); m > n.mark {
		n.dirty.Fill(n.mark/format.ChunkSplits, m/format.ChunkSplits) // to be deleted
		n.mark, n.dirtyMark = m, true
	}
}

// flush appends the epoch's records, at most most in all. A mark that goes on is written before the records of chunks.
// A mark that goes back is written after them, since the chunks that it had passed have no records until then.
func (e *epoch) flush(out []format.Record, most int, fence uint64) []format.Record {
	e.advanceMark()
	n := &e.journal
	if n.mark >= n.storedMark {
		out = e.flushMark(out, most, fence)
	}
	out = e.flushChunks(out, most, fence, false)
	out = e.flushMark(out, most, fence)
	return e.flushChunks(out, most, fence, true)
}

// flushMark appends the record of the mark if the mark has changed.
func (e *epoch) flushMark(out []format.Record, most int, fence uint64) []format.Record {
	n := &e.journal
	if !n.dirtyMark || len(out) >= most {
		return out
	}
	n.dirtyMark = false
	rec := format.Record{Job: e.job.ID, Kind: format.MarkRecord, Epoch: e.number}
	if n.mark > 0 {
		rec.Data = format.EncodeMark(fence, n.mark, n.splits)
	}
	if n.mark > 0 || n.storedMark >= 0 {
		out = append(out, rec)
	}
	if n.storedMark = n.mark; n.mark == 0 {
		n.storedMark = -1
	}
	return out
}

// flushChunks appends the records of the chunks that have changed, or the deletions of those that need no record any
// more.
func (e *epoch) flushChunks(out []format.Record, most int, fence uint64, deletions bool) []format.Record {
	n := &e.journal
	rec := format.Record{Job: e.job.ID, Kind: format.ChunkRecord, Epoch: e.number}
	all := chunks(n.splits)
	for c := n.dirty.Next(0, all, true); c < all && len(out) < most; c = n.dirty.Next(c+1, all, true) {
		data := e.chunkData(c, fence)
		if (data == nil) != deletions {
			continue
		}
		n.dirty.Clear(c)
		rec.Chunk, rec.Data = uint32(c), data
		if data == nil {
			if n.stored.Get(c) {
				out = append(out, rec)
			}
			n.stored.Clear(c)
			continue
		}
		out = append(out, rec)
		n.stored.Set(c)
	}
	return out
}

// deletions returns records that delete all records of the epoch.
func (e *epoch) deletions() []format.Record {
	var out []format.Record
	if e.journal.storedMark >= 0 {
		out = append(out, format.Record{Job: e.job.ID, Kind: format.MarkRecord, Epoch: e.number})
	}
	n := chunks(e.splits)
	for c := e.journal.stored.Next(0, n, true); c < n; c = e.journal.stored.Next(c+1, n, true) {
		out = append(out, format.Record{Job: e.job.ID, Kind: format.ChunkRecord, Epoch: e.number, Chunk: uint32(c)})
	}
	return out
}

// Pending counts the records that differ from the flushed records. If it returns 0, Flush returns none.
func (l *Ledger) Pending() int {
	n := 0
	if l.broken != nil {
		n++
	}
	for _, j := range l.jobs {
		n += len(j.forgotten)
		if j.dirtyRanks {
			n++
		}
		for _, e := range j.epochs {
			if e.journal.dirtyMark {
				n++
			}
			for _, w := range e.journal.dirty {
				n += bits.OnesCount64(w)
			}
		}
	}
	return n
}

// Flush returns at most most records to be made durable, in the order to write them; call it again until it returns
// none. Flush returns each change once: a caller whose write failed writes the same records before any later
// records, or gives up its leadership. The order matters because a crash may separate two transactions: the ranks
// records go first, then deletions of epochs that are over, marks, chunks, and deletions of chunks that the mark has
// passed; a mark that goes back goes behind the chunks. The records of one call are those of one transaction, which
// must not delete and write the same record.
//
// When an invariant is broken, Flush returns nothing and Pending is never 0. The owner asks Broken before it answers
// calls, and gives up its leadership.
func (l *Ledger) Flush(most int) []format.Record {
	records := l.changed(most)
	for _, r := range records {
		l.checkRecord(r)
	}
	if l.broken != nil {
		return nil
	}
	return records
}

// changed returns at most most records that differ from the flushed records, in the order of Flush.
func (l *Ledger) changed(most int) (out []format.Record) {
	for _, j := range l.jobs {
		if len(out) >= most {
			break
		}
		if j.dirtyRanks {
			j.dirtyRanks = false
			out = append(out, j.ranksRecord(l.config.Fence))
		}
		n := min(len(j.forgotten), most-len(out))
		out = append(out, j.forgotten[:n]...)
		if j.forgotten = j.forgotten[n:]; len(j.forgotten) == 0 {
			j.forgotten = nil
		}
		if n > 0 { // An epoch that was forgotten may have begun again, and its records are written after the deletions.
			return out
		}
		for _, e := range j.epochs {
			out = e.flush(out, most, l.config.Fence)
		}
	}
	return out
}

func (j *job) ranksRecord(fence uint64) format.Record {
	ranks := make([]format.Rank, len(j.ranks))
	for i, r := range j.ranks {
		ranks[i] = format.Rank{Fence: r.session.Fence, Generation: r.session.Generation, Epoch: r.epoch}
	}
	return format.Record{Job: j.ID, Kind: format.RanksRecord, Data: format.EncodeRanks(fence, ranks)}
}

// Snapshot returns all records of a job as they would be stored now. It changes nothing.
func (l *Ledger) Snapshot(id string) ([]format.Record, error) {
	j, err := l.findJob(id)
	if err != nil || !j.begun {
		return nil, err
	}
	out := []format.Record{j.ranksRecord(l.config.Fence)}
	for _, e := range j.epochs {
		whole := *e
		whole.journal = newJournal(e.splits)
		whole.journal.dirty.Fill(0, chunks(e.splits))
		out = whole.flush(out, len(out)+1+chunks(e.splits), l.config.Fence)
	}
	return out, nil
}

// Restore applies a stored record. A job's ranks record is restored after AddJob; the marks and chunks of the job's
// Live epochs follow in any order when these epochs are begun. Flush deletes the records of epochs that no rank is
// in. Errors wrap format.ErrRecord or ErrUnknown.
func (l *Ledger) Restore(r format.Record) error {
	j, err := l.findJob(r.Job)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := l.restore(j, r); err != nil {
		return fmt.Errorf("job %s: restore %s: %w", r.Job, r.Key(), err)
	}
	return nil
}

func (l *Ledger) restore(j *job, r format.Record) error {
	if r.Kind == format.RanksRecord {
		ranks, err := format.DecodeRanks(r.Data)
		if err != nil {
			return err
		}
		if len(ranks) != len(j.ranks) || len(j.epochs) > 0 {
			return fmt.Errorf("%w: it is of %d ranks, the job has %d, and %d epochs begun", format.ErrRecord, len(ranks),
				len(j.ranks), len(j.epochs))
		}
		for i, e := range ranks {
			j.ranks[i].session = Session{uint32(i), e.Fence, e.Generation}
			j.ranks[i].epoch, j.ranks[i].wanted = e.Epoch, e.Epoch
		}
		j.begun = true
		return nil
	}
	if !j.begun {
		return fmt.Errorf("%w: the ranks record comes first", ErrUnknown)
	}
	lived := false
	for _, k := range j.ranks {
		lived = lived || k.epoch == r.Epoch
	}
	if !lived {
		j.forgotten = append(j.forgotten, format.Record{Job: r.Job, Kind: r.Kind, Epoch: r.Epoch, Chunk: r.Chunk})
		return nil
	}
	e := j.epoch(r.Epoch)
	if e == nil {
		return fmt.Errorf("%w: the epoch was not begun", ErrUnknown)
	}
	n := &e.journal
	if r.Kind == format.MarkRecord {
		mark, err := format.DecodeMark(r.Data, e.splits)
		if err != nil {
			return err
		}
		for p := range mark {
			e.restoreSplit(p)
		}
		clear(n.dirty[:mark/format.ChunkSplits/64])
		for c := mark / format.ChunkSplits / 64 * 64; c < mark/format.ChunkSplits; c++ {
			n.dirty.Clear(c)
		}
		for c := n.stored.Next(0, mark/format.ChunkSplits, true); c < mark/format.ChunkSplits; c = n.stored.Next(c+1,
			mark/format.ChunkSplits, true) {
			n.dirty.Set(c)
		}
		n.mark, n.storedMark, n.dirtyMark = mark, mark, false
		l.announceComplete(e)
		return nil
	}
	if err := l.restoreChunk(e, r); err != nil {
		return err
	}
	l.announceComplete(e)
	return nil
}

// restoreSplit makes a split delivered, in every share.
func (e *epoch) restoreSplit(place int) {
	s := e.split(place)
	sharesOfSplit := e.sharesOf(s)
	for i := range sharesOfSplit {
		e.restorePart(&sharesOfSplit[i], s)
	}
	e.settleSplit(place)
}
