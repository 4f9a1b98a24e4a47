package ledger

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/millrace/millrace/sdk/dataset"
)

// chunkData returns a chunk's record. It returns nil if the chunk needs none, because the mark has passed it or nothing
// of it is delivered.
func (e *epoch) chunkData(chunk int, fence uint64) []byte {
	from, to := chunk*ChunkSplits, min((chunk+1)*ChunkSplits, e.splits)
	if to <= e.journal.mark {
		return nil
	}
	parts := e.partsOf(chunk)
	if len(parts) == 0 && e.done.next(from, to, true) == to {
		return nil
	}
	return encodeChunk(fence, e.done, chunk, to-from, parts)
}

// owedRuns returns delivered numbers of a split as a chunk's record has them.
func (e *epoch) owedRuns(s dataset.Split, delivered set) set {
	resumed, at, skipped := e.base[e.base.indexAfter(s.FirstFragment):], s.FirstFragment, uint64(0)
	index := func(n uint64) uint64 { // n is at or above at
		for len(resumed) > 0 && resumed[0].From < n {
			end := min(resumed[0].To, n)
			skipped += end - max(resumed[0].From, at)
			if at = end; end < resumed[0].To {
				break
			}
			resumed = resumed[1:]
		}
		return n - s.FirstFragment - skipped
	}
	var out set
	for _, r := range delivered {
		from := index(r.From)
		out = out.appendRun(from, index(r.To))
	}
	return out
}

// partsOf returns the unfinished splits of a chunk, of which some numbers are delivered, ascending.
func (e *epoch) partsOf(chunk int) (parts []part) {
	first, end := chunk*ChunkSplits, min((chunk+1)*ChunkSplits, e.splits)
	var places []int
	shares := e.sharesBetween(e.split(first).FirstFragment, e.split(end-1).End())
	for i := range shares {
		sh := &shares[i]
		if sh.lo == sh.hi {
			continue
		}
		last := min(end, sh.last) - sh.first
		for at := sh.taken.next(max(first, sh.first)-sh.first, last, true); at < last; at = sh.taken.next(at+1, last, true) {
			if p := sh.first + at; !e.done.get(p) {
				places = append(places, p)
			}
		}
	}
	slices.Sort(places)
	for _, p := range slices.Compact(places) {
		s, runs := e.split(p), set(nil)
		owners := e.sharesOf(s)
		for i := range owners {
			if owners[i].lo == owners[i].hi {
				continue
			}
			for _, r := range e.owedRuns(s, owners[i].deliveredOf(e, s)) {
				runs = runs.appendRun(r.From, r.To)
			}
		}
		if len(runs) > 0 {
			parts = append(parts, part{p - first, runs})
		}
	}
	return parts
}

// restoreChunk applies the record of a chunk. The record is written again if the chunk's state then differs.
func (l *Ledger) restoreChunk(e *epoch, r Record) error {
	if int64(r.Chunk) >= int64(chunks(e.splits)) {
		return fmt.Errorf("%w: the plan has %d splits", ErrRecord, e.splits)
	}
	first := int(r.Chunk) * ChunkSplits
	size := min(ChunkSplits, e.splits-first)
	done, parts, err := decodeChunk(r.Data, size)
	if err != nil {
		return err
	}
	if err := e.checkParts(first, parts); err != nil {
		return err
	}
	for i := done.next(0, size, true); i < size; i = done.next(i+1, size, true) {
		e.restoreSplit(first + i)
	}
	for _, p := range parts {
		e.restoreRuns(first+p.split, p.runs)
	}
	n := &e.journal
	n.stored.set(int(r.Chunk))
	n.dirty.clear(int(r.Chunk))
	if now := e.chunkData(int(r.Chunk), 0); now == nil || !bytes.Equal(now[headerBytes:], r.Data[headerBytes:]) {
		n.dirty.set(int(r.Chunk))
	}
	return l.checkRead(e, int(r.Chunk), done, parts)
}

// checkParts checks that the parts of a chunk, whose first split is given, have numbers that the splits owe, and not
// all of them.
func (e *epoch) checkParts(first int, parts []part) error {
	for _, p := range parts {
		owed, end := e.countOwed(e.split(first+p.split)), p.runs[len(p.runs)-1].To
		if end > owed || p.runs.covers(0, owed) {
			return fmt.Errorf("%w: the record has numbers [%d, %d) of split %d, which is unfinished and owes %d", ErrRecord,
				p.runs[0].From, end, first+p.split, owed)
		}
	}
	return nil
}

// countOwed counts the numbers of a split that the ranks own.
func (e *epoch) countOwed(s dataset.Split) (owed uint64) {
	owners := e.sharesOf(s)
	for i := range owners {
		from, to := owners[i].portion(s)
		owed += to - from - e.base.count(from, to)
	}
	return owed
}

// restoreRuns makes numbers of a split delivered, in every share. The runs are those of a chunk's record.
func (e *epoch) restoreRuns(place int, runs set) {
	s := e.split(place)
	numbers, at, index := set(nil), s.FirstFragment, uint64(0)
	for _, r := range runs {
		from := e.base.endOfOwed(at, r.From-index)
		at, index = e.base.endOfOwed(from, r.To-r.From), r.To
		numbers = numbers.appendRun(from, at)
	}
	sharesOfSplit := e.sharesOf(s)
	for i := range sharesOfSplit {
		sh := &sharesOfSplit[i]
		from, to := sh.portion(s)
		if from == to {
			continue
		}
		before := sh.deliveredOf(e, s)
		have := set(dataset.UnionRanges(before, numbers.within(from, to)))
		switch {
		case have.count(from, to) == before.count(from, to):
		case have.covers(from, to):
			e.restorePart(sh, s)
		default:
			sh.delivered.gain(s, before, have)
			sh.taken.set(place - sh.first)
			e.keepPartial(sh, s, have)
			sh.updateReturned(e, s)
			e.uncounted = true
		}
	}
	e.settleSplit(place)
}
