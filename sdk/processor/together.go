package processor

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/target"
)

// The leaves of a map are columns of the program like others, with chunks, cursors and windows of their own, but the engine
// reads them side by side: their jobs, which follow each other, are in one slice or in none, and for the same rows.

// together is how many jobs from job i on are one: those of a map's leaves, or 1.
func (w *worker) together(i int) int { return w.r.prog.Parts(w.jobs[i].c.column) }

// seatTogether finds room for n jobs that are one; false if there is none.
func (w *worker) seatTogether(i, n int) bool {
	w.attempt++
	group := w.jobs[i:][:n]
	if n == 1 {
		return w.seat(i)
	}
	before, stretch := w.loads(), w.stretch
	ok := w.seatEach(i, n)
	if !ok {
		// What one had beyond its window may be what the next one lacked.
		w.unload(before)
		w.stretch = 1
		w.attempt++
		if ok = w.seatEach(i, n); !ok {
			w.unload(before)
		}
		w.stretch = stretch
	}
	if !ok {
		return false
	}
	take := group[0].take
	for k := range group {
		take = min(take, group[k].take)
	}
	for k := range group {
		group[k].take = take
	}
	return true
}

func (w *worker) seatEach(i, n int) bool {
	for k := i; k < i+n; k++ {
		if !w.seat(k) {
			return false
		}
	}
	return true
}

// loads is what a slice was to move before some jobs were placed.
type loads struct {
	moves                     int
	last                      target.Move // which others may have been joined with
	planned, unneeded, reread uint64
}

func (w *worker) loads() loads {
	l := loads{moves: len(w.exec.Moves), planned: w.planned, unneeded: w.unneeded, reread: w.reread}
	if l.moves > 0 {
		l.last = w.exec.Moves[l.moves-1]
	}
	return l
}

// unload undoes the moves of the attempt at hand, and takes the windows that they were for.
func (w *worker) unload(to loads) {
	for i := range w.jobs {
		if c := w.jobs[i].c; c.window != nil && c.window.attempt == w.attempt {
			w.dropWindow(c)
		}
	}
	if w.exec.Moves = w.exec.Moves[:to.moves]; to.moves > 0 {
		w.exec.Moves[to.moves-1] = to.last
	}
	w.planned, w.unneeded, w.reread = to.planned, to.unneeded, to.reread
}

// footOf is foot of n jobs that are one.
func (w *worker) footOf(i, n int) (in, dict, scratch uint64) {
	for k := i; k < i+n; k++ {
		a, b, c := w.foot(&w.jobs[k])
		in, dict, scratch = min(in+a, mostNeed), min(dict+b, mostNeed), min(scratch+c, mostNeed)
	}
	return in, dict, scratch
}

// againOf is again of jobs that are one: the windows that all of them want when one decodes its dictionary once more.
func (w *worker) againOf(group []job) (in uint64) {
	for i := range group {
		in = min(in+w.again(&group[i]), mostNeed)
	}
	return in
}

// lean makes the chunks of jobs do with less, and tells whether that is news.
func lean(group []job, to thrift) (news bool) {
	for i := range group {
		if c := group[i].c; c.lean < to {
			c.lean, news = to, true
		}
	}
	return news
}

// widest is the job's chunk that wants most.
func widest(group []job) *chunk {
	c := group[0].c
	for i := range group {
		if o := group[i].c; o.need+o.dictMin+o.roomMin > c.need+c.dictMin+c.roomMin {
			c = o
		}
	}
	return c
}

// partOf is a program's part of a map in a file's numbering.
func partOf(p program.Part) format.Part {
	switch p {
	case program.MapKeys:
		return format.MapKeys
	case program.MapValues:
		return format.MapValues
	case program.MapScores:
		return format.MapScores
	}
	return format.NoPart
}

// listed tells whether a leaf holds lists where a program's column says so: in a map, where each has a list a row, lists of
// lists.
func listed(l *format.Leaf) bool {
	if l.Part != format.NoPart {
		return l.MaxRep == 2
	}
	return l.List
}

// guessMap guesses the values, beyond one a key, that the map whose values are column i makes of a mini-batch, and the room
// that it takes to put them in order. Which of a map's lists are long, only its rows tell: the engine asks for more.
func (w *worker) guessMap(i, g int, rows uint32) uint64 {
	col := &w.r.prog.Columns[i]
	keys := uint64(0)
	for _, s := range col.Sinks {
		if s.To == program.ToSparse {
			keys++
		}
	}
	if col.Part != program.MapValues || keys == 0 {
		return 0
	}
	mean := uint64(1)
	if col.List {
		columns := w.part.File.RowGroups[g].Columns
		entries := uint64(columns[w.leaves[i-1].Index].NumValues)
		mean += uint64(columns[w.leaves[i].Index].NumValues) / max(entries, 1)
		if most, ok := firstX(col); ok {
			mean = min(mean, max(most, 1))
		}
	}
	if keys > 1 {
		mean *= 2
	}
	return uint64(rows) * keys * (mean - 1)
}

// piece is a run of bytes of a slot, and where it goes.
type piece struct{ from, to, n uint64 }

// pieces are what of the slot is copied to a mini-batch's own memory of size bytes, whose tensors lie at at.
func (w *worker) pieces(at program.Placement, values, size uint64) []piece {
	out := w.r.prog.Output
	if !out.Weights {
		return []piece{{0, 0, size}}
	}
	return []piece{{0, 0, at.Values + values*out.IDs.Bytes()}, {w.place.Weights, at.Weights, 4 * values}}
}

// extent is how far a mini-batch's tensors reach in its slot.
func (w *worker) extent(values uint64) uint64 {
	if w.r.prog.Output.Weights {
		return w.place.Weights + 4*values
	}
	return w.sizeFor(w.rows, values)
}
