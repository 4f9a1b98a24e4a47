package ledger

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// chunkData returns a chunk's record. It returns nil if the chunk needs none, because the mark has passed it or nothing
// of it is delivered.
func (e *epoch) chunkData(chunk int, fence uint64) []byte {
	from, to := chunk*format.ChunkSplits, min((chunk+1)*format.ChunkSplits, e.splits)
	if to <= e.journal.mark {
		return nil
	}
	parts := e.partsOf(chunk)
	if len(parts) == 0 && e.done.Next(from, to, true) == to {
		return nil
	}
	return format.EncodeChunk(fence, e.done, chunk, to-from, parts)
}

// owedRuns returns delivered numbers of a split as a chunk's record has them.
func (e *epoch) owedRuns(s dataset.Split, delivered numberset.Runs) numberset.Runs {
	resumed, at, skipped := e.base[e.base.IndexAfter(s.FirstFragment):], s.FirstFragment, uint64(0)
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
	var out numberset.Runs
	for _, r := range delivered {
		from := index(r.From)
		out = out.Append(from, index(r.To))
	}
	return out
}

// partsOf returns the unfinished splits of a chunk, of which some numbers are delivered, ascending.
func (e *epoch) partsOf(chunk int) (parts []format.Part) {
	first, end := chunk*format.ChunkSplits, min((chunk+1)*format.ChunkSplits, e.splits)
	var places []int
	shares := e.sharesBetween(e.split(first).FirstFragment, e.split(end-1).End())
	for i := range shares {
		sh := &shares[i]
		if sh.lo == sh.hi {
			continue
		}
		last := min(end, sh.last) - sh.first
		for at := sh.taken.Next(max(first, sh.first)-sh.first, last, true); at < last; at = sh.taken.Next(at+1, last, true) {
			if p := sh.first + at; !e.done.Get(p) {
				places = append(places, p)
			}
		}
	}
	slices.Sort(places)
	for _, p := range slices.Compact(places) {
		s, runs := e.split(p), numberset.Runs(nil)
		owners := e.sharesOf(s)
		for i := range owners {
			if owners[i].lo == owners[i].hi {
				continue
			}
			for _, r := range e.owedRuns(s, owners[i].deliveredOf(e, s)) {
				runs = runs.Append(r.From, r.To)
			}
		}
		if len(runs) > 0 {
			parts = append(parts, format.Part{Split: p - first, Runs: runs})
		}
	}
	return parts
}

// restoreChunk applies the record of a chunk. The record is written again if the chunk's state then differs.
func (l *Ledger) restoreChunk(e *epoch, r format.Record) error {
	if int64(r.Chunk) >= int64(chunks(e.splits)) {
		return fmt.Errorf("%w: the plan has %d splits", format.ErrRecord, e.splits)
	}
	first := int(r.Chunk) * format.ChunkSplits
	size := min(format.ChunkSplits, e.splits-first)
	done, parts, err := format.DecodeChunk(r.Data, size)
	if err != nil {
		return err
	}
	if err := e.checkParts(first, parts); err != nil {
		return err
	}
	for i := done.Next(0, size, true); i < size; i = done.Next(i+1, size, true) {
		e.restoreSplit(first + i)
	}
	for _, p := range parts {
		e.restoreRuns(first+p.Split, p.Runs)
	}
	n := &e.journal
	n.stored.Set(int(r.Chunk))
	n.dirty.Clear(int(r.Chunk))
	now := e.chunkData(int(r.Chunk), 0)
	if now == nil || !bytes.Equal(now[format.HeaderBytes:], r.Data[format.HeaderBytes:]) {
		n.dirty.Set(int(r.Chunk))
	}
	return l.checkRead(e, int(r.Chunk), done, parts)
}

// checkParts checks that the parts of a chunk, whose first split is given, have numbers that the splits owe, and not
// all of them.
func (e *epoch) checkParts(first int, parts []format.Part) error {
	for _, p := range parts {
		owed, end := e.countOwed(e.split(first+p.Split)), p.Runs[len(p.Runs)-1].To
		if end > owed || p.Runs.Covers(0, owed) {
			return fmt.Errorf("%w: the record has numbers [%d, %d) of split %d, which is unfinished and owes %d",
				format.ErrRecord, p.Runs[0].From, end, first+p.Split, owed)
		}
	}
	return nil
}

// countOwed counts the numbers of a split that the ranks own.
func (e *epoch) countOwed(s dataset.Split) (owed uint64) {
	owners := e.sharesOf(s)
	for i := range owners {
		from, to := owners[i].portion(s)
		owed += to - from - e.base.Count(from, to)
	}
	return owed
}

// restoreRuns makes numbers of a split delivered, in every share. The runs are those of a chunk's record.
func (e *epoch) restoreRuns(place int, runs numberset.Runs) {
	s := e.split(place)
	numbers, at, index := numberset.Runs(nil), s.FirstFragment, uint64(0)
	for _, r := range runs {
		from := e.base.EndOfMissing(at, r.From-index)
		at, index = e.base.EndOfMissing(from, r.To-r.From), r.To
		numbers = numbers.Append(from, at)
	}
	sharesOfSplit := e.sharesOf(s)
	for i := range sharesOfSplit {
		sh := &sharesOfSplit[i]
		from, to := sh.portion(s)
		if from == to {
			continue
		}
		before := sh.deliveredOf(e, s)
		have := numberset.Runs(dataset.UnionRanges(before, numbers.Within(from, to)))
		switch {
		case have.Count(from, to) == before.Count(from, to):
		case have.Covers(from, to):
			e.restorePart(sh, s)
		default:
			sh.delivered.gain(s, before, have)
			sh.taken.Set(place - sh.first)
			e.keepPartial(sh, s, have)
			sh.updateReturned(e, s)
			e.uncounted = true
		}
	}
	e.settleSplit(place)
}
