package ledger

import (
	"fmt"
	"math/bits"
)

// journal notes which of an epoch's records differ from the stored records.
type journal struct {
	splits     int
	mark       int    // as stored, or about to be stored: every split before it is delivered
	dirtyMark  bool   // differs from what is stored
	markStored bool   // there is a record
	dirty      bitset // by chunk
	stored     bitset // by chunk: there is a record
}

func newJournal(splits int) journal {
	n := chunks(splits)
	return journal{splits: splits, dirty: newBitset(n), stored: newBitset(n)}
}

func chunks(splits int) int { return (splits + ChunkSplits - 1) / ChunkSplits }

// splitChanged notes that a split became delivered, or is not delivered any more.
func (n *journal) splitChanged(place int) {
	n.dirty.set(place / ChunkSplits)
	if place < n.mark { // the records of the chunks before the mark were deleted: write them again
		n.dirty.fill(place/ChunkSplits, chunks(n.mark))
		n.mark, n.dirtyMark = place, true
	}
}

// settled notes that the state in which the epoch begins needs no record, because the state follows from the job.
func (n *journal) settled() { clear(n.dirty) }

// advanceMark moves the mark past delivered splits.
func (e *epoch) advanceMark() {
	n := &e.journal
	if n.dirty.next(0, chunks(n.splits), true) == chunks(n.splits) && !n.dirtyMark {
		return
	}
	if m := e.done.next(n.mark, n.splits, false); m > n.mark {
		n.dirty.fill(n.mark/ChunkSplits, m/ChunkSplits) // to be deleted
		n.mark, n.dirtyMark = m, true
	}
}

// flush appends the epoch's records, at most most in all.
func (e *epoch) flush(out []Record, most int, fence uint64) []Record {
	e.advanceMark()
	n := &e.journal
	rec := Record{Job: e.job.ID, Epoch: e.number}
	if n.dirtyMark && len(out) < most {
		n.dirtyMark = false
		rec.Kind, rec.Data = MarkRecord, nil
		if n.mark > 0 {
			rec.Data = encodeMark(fence, n.mark, n.splits)
		}
		if n.mark > 0 || n.markStored {
			out = append(out, rec)
		}
		n.markStored = n.mark > 0
	}
	rec.Kind = ChunkRecord
	for _, deletions := range []bool{false, true} {
		for c := n.dirty.next(0, chunks(n.splits), true); c < chunks(n.splits) && len(out) < most; c = n.dirty.next(c+1,
			chunks(n.splits), true) {
			from, to := c*ChunkSplits, min((c+1)*ChunkSplits, n.splits)
			empty := to <= n.mark || e.done.next(from, to, true) == to
			if empty != deletions {
				continue
			}
			n.dirty.clear(c)
			rec.Chunk, rec.Data = uint32(c), nil
			if !empty {
				rec.Data = encodeChunk(fence, e.done, c, to-from)
			}
			if !empty || n.stored.get(c) {
				out = append(out, rec)
			}
			if empty {
				n.stored.clear(c)
			} else {
				n.stored.set(c)
			}
		}
	}
	return out
}

// deletions returns records that delete all records of the epoch.
func (e *epoch) deletions() []Record {
	var out []Record
	if e.journal.markStored {
		out = append(out, Record{Job: e.job.ID, Kind: MarkRecord, Epoch: e.number})
	}
	n := chunks(e.splits)
	for c := e.journal.stored.next(0, n, true); c < n; c = e.journal.stored.next(c+1, n, true) {
		out = append(out, Record{Job: e.job.ID, Kind: ChunkRecord, Epoch: e.number, Chunk: uint32(c)})
	}
	return out
}

// Pending counts the records that differ from the flushed records. If it returns 0, Flush returns none.
func (l *Ledger) Pending() int {
	n := 0
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
// records go first, then deletions of epochs that are over, marks, bitmaps, and deletions of bitmaps that the mark
// has passed. The records of one call are those of one transaction, which must not delete and write the same record.
func (l *Ledger) Flush(most int) []Record {
	var out []Record
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

func (j *job) ranksRecord(fence uint64) Record {
	ranks := make([]rankEntry, len(j.ranks))
	for i, r := range j.ranks {
		ranks[i] = rankEntry{r.session.Fence, r.session.Generation, r.epoch, r.edges}
		if e := j.epoch(r.epoch); e != nil {
			ranks[i].edges = e.shares[i].edges()
		}
	}
	return Record{Job: j.ID, Kind: RanksRecord, Data: encodeRanks(fence, ranks)}
}

// Snapshot returns all records of a job as they would be stored now. It changes nothing.
func (l *Ledger) Snapshot(id string) ([]Record, error) {
	j, err := l.findJob(id)
	if err != nil || !j.begun {
		return nil, err
	}
	out := []Record{j.ranksRecord(l.config.Fence)}
	for _, e := range j.epochs {
		whole := *e
		whole.journal = newJournal(e.splits)
		whole.journal.dirty.fill(0, chunks(e.splits))
		out = whole.flush(out, len(out)+1+chunks(e.splits), l.config.Fence)
	}
	return out, nil
}

// Restore applies a stored record. A job's ranks record is restored after AddJob; the marks and bitmaps of the job's
// Live epochs follow in any order when these epochs are begun. Flush deletes the records of epochs that no rank is
// in. Errors wrap ErrRecord or ErrUnknown.
func (l *Ledger) Restore(r Record) error {
	j, err := l.findJob(r.Job)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := l.restore(j, r); err != nil {
		return fmt.Errorf("job %s: restore %s: %w", r.Job, r.Key(), err)
	}
	return nil
}

func (l *Ledger) restore(j *job, r Record) error {
	if r.Kind == RanksRecord {
		ranks, err := decodeRanks(r.Data)
		if err != nil {
			return err
		}
		if len(ranks) != len(j.ranks) || len(j.epochs) > 0 {
			return fmt.Errorf("%w: it is of %d ranks, the job has %d, and %d epochs begun", ErrRecord, len(ranks),
				len(j.ranks), len(j.epochs))
		}
		for i, e := range ranks {
			j.ranks[i].session = Session{uint32(i), e.fence, e.seq}
			j.ranks[i].epoch, j.ranks[i].wanted, j.ranks[i].edges = e.epoch, e.epoch, e.edges
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
		j.forgotten = append(j.forgotten, Record{Job: r.Job, Kind: r.Kind, Epoch: r.Epoch, Chunk: r.Chunk})
		return nil
	}
	e := j.epoch(r.Epoch)
	if e == nil {
		return fmt.Errorf("%w: the epoch was not begun", ErrUnknown)
	}
	n := &e.journal
	if r.Kind == MarkRecord {
		mark, err := decodeMark(r.Data, e.splits)
		if err != nil {
			return err
		}
		for p := range mark {
			e.restoreSplit(p)
		}
		clear(n.dirty[:mark/ChunkSplits/64])
		for c := mark / ChunkSplits / 64 * 64; c < mark/ChunkSplits; c++ {
			n.dirty.clear(c)
		}
		for c := n.stored.next(0, mark/ChunkSplits, true); c < mark/ChunkSplits; c = n.stored.next(c+1,
			mark/ChunkSplits, true) {
			n.dirty.set(c)
		}
		n.mark, n.markStored, n.dirtyMark = mark, true, false
		l.announceComplete(e)
		return nil
	}
	if int64(r.Chunk) >= int64(chunks(e.splits)) {
		return fmt.Errorf("%w: the plan has %d splits", ErrRecord, e.splits)
	}
	first := int(r.Chunk) * ChunkSplits
	size := min(ChunkSplits, e.splits-first)
	done, err := decodeChunk(r.Data, size)
	if err != nil {
		return err
	}
	for i := done.next(0, size, true); i < size; i = done.next(i+1, size, true) {
		e.restoreSplit(first + i)
	}
	n.stored.set(int(r.Chunk))
	n.dirty.clear(int(r.Chunk))
	if first+size <= n.mark {
		n.dirty.set(int(r.Chunk)) // to be deleted
	}
	for i := range size {
		if e.done.get(first+i) != done.get(i) {
			n.dirty.set(int(r.Chunk))
			break
		}
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
