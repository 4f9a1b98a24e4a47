package processor

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
)

// Placing a slice. Jobs are seated in order, each with room for its dictionary, its unpacked page and its window, until
// the memory is full; what columns further off left in memory makes way, furthest first. Where everything fits, nothing
// ever makes way and windows only grow at their ends; where little fits, a mini-batch takes several slices, and a
// column whose pages do not fit together takes several tasks.

// mostTries bounds the attempts at placing a slice; halving the rows of a task takes at most 32.
const mostTries = 256

// seatAll places as many of the next jobs as one slice takes, at least one.
func (w *worker) seatAll(ctx context.Context) error {
	for try := range mostTries {
		w.alone = w.alone || try >= mostTries/2
		again := w.seatSome()
		if len(w.seated) > 0 && !again {
			return nil
		}
		if !again {
			if err := w.makeRoom(ctx); err != nil {
				return err
			}
		}
	}
	return &target.EngineError{Partition: w.part.Name, Message: "the planner found no place for a slice"}
}

// seatSome places jobs until one finds no room. again is true when the areas were arranged anew, because they were too
// small although the memory is not.
func (w *worker) seatSome() (again bool) {
	w.serial++
	w.seated, w.exec.Moves = w.seated[:0], w.exec.Moves[:0]
	w.planned, w.unneeded, w.reread = 0, 0, 0
	evicted, looked, bytes := w.evicted, false, uint64(0)
	for i, n := w.next0, 0; i < len(w.jobs) && len(w.seated) < w.r.tasks; i += n {
		j := &w.jobs[i]
		if n = w.together(i); j.count == 0 {
			continue
		}
		if len(w.seated) > 0 && (w.alone || len(w.seated)+n > w.r.tasks || bytes > sliceBytes || w.r.lim.Moves > 0 && len(w.exec.Moves) > w.r.lim.Moves/2) {
			break
		}
		ok := w.seatTogether(i, n)
		if !looked && (!ok || w.evicted != evicted) {
			if looked = true; w.cramped() {
				return true
			}
		}
		if !ok {
			break
		}
		for k := i; k < i+n; k++ {
			w.seated = append(w.seated, k)
			c := w.jobs[k].c
			bytes += c.wants(int64(j.take), &w.learned[c.column])
		}
		if j.take < j.count && !w.r.prog.Output.Fixed {
			break // the rest of its values comes before the next column's
		}
	}
	return false
}

// seat finds room for a job; false if there is none.
func (w *worker) seat(i int) bool {
	j := &w.jobs[i]
	c, k := j.c, &w.learned[j.c.column]
	c.serial = w.serial
	if j.take = j.count; j.most > 0 {
		j.take = min(j.take, j.most)
	}
	return w.seatDict(c, k) && w.seatScratch(c, k) && w.seatWindow(i, k)
}

func (w *worker) seatDict(c *chunk, k *learned) bool {
	want := c.wantsDict(k)
	if c.dict.size < c.dictMin || c.dict.size == 0 && want > 0 {
		w.dropDict(c)
		var ok bool
		if c.dict, ok = w.take(&w.lane.dict, want, c.dictMin); !ok {
			return false
		}
	}
	if c.had && !c.cursor.Dict && c.cursor.Page > 0 && c.resume == nil {
		// The dictionary made way. Its page is the chunk's first: begin there, and come back.
		at := c.cursor
		at.Unpacked, at.Checked = false, false
		c.resume = &at
		c.cursor = program.Cursor{Skip: uint64(c.row)}
		c.need = 0
	}
	return true
}

func (w *worker) seatScratch(c *chunk, k *learned) bool {
	want := c.wantsRoom(k)
	if c.scratch.size >= c.roomMin && (c.scratch.size > 0 || want == 0) {
		return true
	}
	w.dropScratch(c)
	var ok bool
	c.scratch, ok = w.take(&w.lane.scratch, want, c.roomMin)
	return ok
}

// seatWindow plans the moves that bring the bytes that the job wants into its window.
func (w *worker) seatWindow(i int, k *learned) bool {
	if w.direct {
		return true
	}
	j := &w.jobs[i]
	c, g := j.c, &w.geo
	n := c.wants(int64(j.take), k)
	page, from := c.at+c.cursor.Page, c.at+c.begin()
	if page+n <= from || c.cursor.Unpacked && c.need == 0 && c.left(k) >= int64(j.take) {
		return true // all of it lies unpacked in scratch
	}
	lo, hi := g.Cover(from, page+n)
	at, first, end := from+g.Align(0), page+g.Align(0), page+n+g.Align(0)
	if v := c.window; v != nil {
		switch {
		case v.from <= at && end <= v.to:
			return true
		case v.from <= at && at < v.to && v.users == 1 && hi-v.from <= v.seg.size:
			w.load(v, v.to, hi, c)
			return true
		case v.from <= at && c.need == 0 && first+c.hopes(int64(j.take)) <= v.to:
			return true // what is there may do; the engine says if it does not
		case v.from <= at && c.need == 0 && w.cutAtPage(j, k, first, v.to):
			return true
		case c.ready > 0 && c.ready < j.take && w.mayCut():
			j.take = c.ready // first what is there, as the engine said, so that it is not moved again
			return true
		}
		w.dropWindow(c)
	}
	if c.cursor.Page+n == c.length && w.gather(i, lo, hi) {
		return true
	}
	_, last := g.Cover(c.at, c.at+c.length)
	room := min(max(hi-lo, uint64(float64(hi-lo)*w.stretch)), last-lo)
	seg, ok := w.lane.in.take(room)
	if !ok {
		if seg, ok = w.take(&w.lane.in, hi-lo, hi-lo); !ok {
			return false
		}
	}
	c.window = &window{seg: seg, from: lo, to: lo, users: 1}
	w.load(c.window, lo, hi, c)
	return true
}

// cutAtPage ends a job's next task at the end of the cursor's page, when that is known, lies inside the job, and may do with
// what a window has from shifted offset first to last. What is left begins with a page, and nothing that was moved before is
// moved again. A job that is not cut here is left as it is: makeRoom goes by what it wanted.
func (w *worker) cutAtPage(j *job, k *learned, first, last uint64) bool {
	left := j.c.left(k)
	if left == 0 || left >= int64(j.take) || !w.mayCut() || first+j.c.hopes(left) > last {
		return false
	}
	j.take = uint32(left)
	return true
}

// gather joins the window of job i, shifted offsets [lo, hi), with those of jobs behind it whose chunks follow in the
// file, as far as one read goes. It is false when there are none, or no room.
func (w *worker) gather(i int, lo, hi uint64) bool {
	g, last := &w.geo, i
	start := lo
	for k := i + 1; k < len(w.jobs); k++ {
		j := &w.jobs[k]
		c := j.c
		n := c.wants(int64(j.take), &w.learned[c.column])
		a, b := g.Cover(c.at+c.begin(), c.at+max(c.cursor.Page+n, c.begin()))
		if c.window != nil || c.cursor.Page+n != c.length || a < start || a > hi+w.r.opts.Gap || max(b, hi)-lo > w.r.opts.Coalesce {
			break
		}
		start, hi, last = a, max(b, hi), k
	}
	if last == i {
		return false
	}
	seg, ok := w.lane.in.take(hi - lo)
	if !ok {
		return false
	}
	v := &window{seg: seg, from: lo, to: lo, users: last - i + 1}
	chunks := make([]*chunk, 0, v.users)
	for k := i; k <= last; k++ {
		w.jobs[k].c.window = v
		chunks = append(chunks, w.jobs[k].c)
	}
	w.load(v, lo, hi, chunks...)
	return true
}

// load plans the move of shifted offsets [lo, hi) to the window's end and counts which of the bytes the chunks want.
func (w *worker) load(v *window, lo, hi uint64, chunks ...*chunk) {
	w.runs = w.geo.AppendRuns(w.runs[:0], lo, hi)
	w.exec.Moves = appendMoves(w.exec.Moves, w.runs, w.lane.inBase+v.seg.off+lo-v.from)
	v.to, v.attempt = hi, w.attempt
	wanted := uint64(0)
	for _, c := range chunks {
		begin := c.at + w.geo.Align(0)
		from, to := max(lo, begin), min(hi, begin+c.length)
		if from >= to {
			continue
		}
		wanted += to - from
		if reached := begin + c.high; reached > from {
			w.reread += min(reached, to) - from
		}
		c.high = max(c.high, to-begin)
	}
	w.planned += hi - lo
	w.unneeded += hi - lo - min(wanted, hi-lo)
}

// moved counts the moves of a slice that was sent.
func (w *worker) moved() {
	s := &w.r.stats
	s.planned.Add(int64(w.planned))
	s.unneeded.Add(int64(w.unneeded))
	s.reread.Add(int64(w.reread))
}

// take takes want bytes of an area, or at least least; others make way.
func (w *worker) take(a *area, want, least uint64) (segment, bool) {
	for {
		if s, ok := a.take(want); ok {
			return s, true
		}
		if up(want) <= a.size && (w.trim() || w.evict(a)) {
			continue
		}
		if want == least {
			return segment{}, false
		}
		want = least
	}
}

// trim takes what windows have before their cursors and behind their bytes, once a slice, and tells whether that was
// anything.
func (w *worker) trim() (some bool) {
	if w.trimmed == w.serial {
		return false
	}
	w.trimmed = w.serial
	for i := range w.jobs {
		c := w.jobs[i].c
		v := c.window
		if v == nil || v.users > 1 || c.serial == w.serial {
			continue
		}
		if at := min(c.at+c.begin()+w.geo.Align(0), v.to); v.from < at {
			n := down(at-v.from) &^ (w.geo.Block() - 1)
			w.lane.in.give(segment{v.seg.off, n})
			v.seg.off, v.seg.size, v.from = v.seg.off+n, v.seg.size-n, v.from+n
			some = some || n > 0
		}
		if used := up(v.to - v.from); used < v.seg.size {
			w.lane.in.give(segment{v.seg.off + used, v.seg.size - used})
			v.seg.size = used
			some = true
		}
		if v.seg.size == 0 {
			c.window = nil
		}
	}
	return some
}

// evict takes what the chunk whose next use is furthest off, and that is not part of the slice, has of an area. Chunks are
// used in the jobs' order, over and over.
func (w *worker) evict(a *area) bool {
	for k := range w.jobs {
		i := (w.next0 - 1 - k + len(w.jobs)) % len(w.jobs)
		c := w.jobs[i].c
		if c.serial == w.serial {
			continue
		}
		switch {
		case a == &w.lane.in && c.window != nil:
			w.dropWindow(c)
		case a == &w.lane.dict && c.dict.size > 0:
			w.dropDict(c)
		case a == &w.lane.scratch && c.scratch.size > 0:
			w.dropScratch(c)
		default:
			continue
		}
		w.evicted++
		return true
	}
	return false
}

// drop takes all memory of a chunk.
func (w *worker) drop(c *chunk) {
	w.dropWindow(c)
	w.dropDict(c)
	w.dropScratch(c)
}

func (w *worker) dropWindow(c *chunk) {
	v := c.window
	if v == nil {
		return
	}
	c.window, c.ready = nil, 0
	if v.users--; v.users == 0 {
		w.lane.in.give(v.seg)
	}
}

func (w *worker) dropDict(c *chunk) {
	w.lane.dict.give(c.dict)
	c.dict, c.cursor.Dict, c.ready = segment{}, false, 0
	if c.resume != nil {
		c.resume.Dict = false
	}
}

func (w *worker) dropScratch(c *chunk) {
	w.lane.scratch.give(c.scratch)
	c.scratch, c.cursor.Unpacked, c.ready = segment{}, false, 0
}

// flush takes the memory of all chunks; the areas are empty until makeRoom arranges them.
func (w *worker) flush() {
	for _, live := range w.live {
		for _, c := range live {
			w.drop(c)
		}
	}
	w.lane.arrange(0, 0, 0)
}

// foot is what a job wants of the three areas when they are arranged anew. That loses the dictionary, so a chunk that has
// one begins with it again, and one that does goes back to where it was: without room for both, arranging would be undone
// and done for ever.
func (w *worker) foot(j *job) (in, dict, scratch uint64) {
	c, k := j.c, &w.learned[j.c.column]
	if !w.direct {
		in = w.windowOf(c, c.wants(int64(j.take), k))
		in = max(in, w.again(j))
		if c.resume != nil {
			later := *c
			later.resume, later.need, later.cursor = nil, 0, *c.resume
			in = max(in, w.windowOf(&later, later.wants(int64(j.take), k)))
		}
	}
	return in, up(c.wantsDict(k)), up(c.wantsRoom(k))
}

// again is the window in which a chunk's dictionary is decoded once more; 0 if it has none.
func (w *worker) again(j *job) uint64 {
	c := j.c
	if !c.had || c.resume != nil || c.cursor.Page == 0 {
		return 0
	}
	first := *c
	first.resume, first.need, first.cursor = &c.cursor, 0, program.Cursor{Skip: uint64(c.row)}
	return w.windowOf(&first, max(first.wants(int64(j.take), &w.learned[c.column]), c.data, c.opening))
}

// windowOf is the size of a window for n bytes of a chunk from the cursor's page on.
func (w *worker) windowOf(c *chunk, n uint64) uint64 {
	from := c.at + c.cursor.Page
	lo, hi := w.geo.Cover(from, from+n)
	return up(hi - lo)
}

// total is what the jobs from the next one on want, around to those that are done, as far as budget goes; n is how
// many that are.
func (w *worker) total(budget uint64) (in, dict, scratch uint64, n int) {
	for k, m := 0, 0; k < len(w.jobs); k += m {
		i := (w.next0 + k) % len(w.jobs)
		if m = w.together(i); w.jobs[i].c.row >= w.jobs[i].c.rows {
			n += m // ended: its memory is free
			continue
		}
		a, b, c := w.footOf(i, m)
		if a > budget || b > budget || c > budget || in+dict+scratch+a+b+c > budget {
			break
		}
		in, dict, scratch = in+a, dict+b, scratch+c
		n += m
	}
	return in, dict, scratch, n
}

// resident is how to share the memory when it does not hold all that the jobs want, but their dictionaries and unpacked
// pages: windows come and go then, a page is moved once. It is not ok when no window finds room beside those.
func (w *worker) resident() (in, dict, scratch uint64, ok bool) {
	for k, m := 0, 0; k < len(w.jobs); k += m {
		if m = w.together(k); w.jobs[k].c.row >= w.jobs[k].c.rows {
			continue
		}
		a, b, c := w.footOf(k, m)
		if a > mostNeed || b > mostNeed || c > mostNeed {
			return 0, 0, 0, false
		}
		in, dict, scratch = max(in, a), dict+b, scratch+c
		if in+dict+scratch > w.lane.room() {
			return 0, 0, 0, false
		}
	}
	return in, dict, scratch, scratch > 0
}

// cramped arranges the areas anew if one of them is too small for what the memory could hold: of all jobs, or at least their
// dictionaries and unpacked pages.
func (w *worker) cramped() bool {
	if w.alone {
		return false
	}
	in, dict, scratch, n := w.total(w.lane.room())
	l := w.lane
	all := n == len(w.jobs)
	if !all {
		var ok bool
		if in, dict, scratch, ok = w.resident(); !ok {
			if w.stopGuessing() {
				w.share()
				return true
			}
			return false
		}
		// What is arranged anew is lost, so only for more than ever before.
		if dict <= w.kept.dict && scratch <= w.kept.scratch {
			return false
		}
		w.kept.dict, w.kept.scratch = max(dict, w.kept.dict), max(scratch, w.kept.scratch)
		in = min(in, l.in.size)
	}
	if in <= l.in.size && dict <= l.dict.size && scratch <= l.scratch.size {
		return false
	}
	w.share()
	return true
}

// stopGuessing ends the guesses at what unpacked pages take, which keep memory from those that are known. It is false when
// there was none.
func (w *worker) stopGuessing() (some bool) {
	for i := range w.jobs {
		k := &w.learned[w.jobs[i].c.column]
		some = some || !k.ask && w.jobs[i].c.wantsRoom(k) > 0
		k.ask = true
	}
	return some
}

// share arranges the areas for as many jobs as the memory holds, or for the next one alone.
func (w *worker) share() {
	if w.alone {
		in, dict, scratch := w.footOf(w.next0, w.together(w.next0))
		if max(in, dict, scratch) <= w.lane.room() && in+dict+scratch <= w.lane.room() {
			w.arrange(in, dict, scratch, false)
			return
		}
	}
	in, dict, scratch, n := w.total(w.lane.room())
	if n < len(w.jobs) {
		if a, b, c, ok := w.resident(); ok {
			in, dict, scratch = a, b, c
		}
	}
	w.arrange(in, dict, scratch, n == len(w.jobs))
}

// arrange gives the areas these sizes and what is left: to all of them if everything fits, else to the input.
func (w *worker) arrange(in, dict, scratch uint64, all bool) {
	w.flush()
	rest := w.lane.room() - in - dict - scratch
	w.stretch = 1
	if all {
		// Dictionaries and pages vary; windows take the rest.
		d, s := down(min(rest/4, dict/2)), down(min(rest/4, scratch/2))
		rest -= d + s
		dict, scratch = dict+d, scratch+s
		if in > 0 {
			w.stretch = 1 + float64(rest)/float64(in)*0.75
		}
	}
	if w.direct {
		rest = 0
	}
	w.lane.arrange(in+down(rest), dict, scratch)
}

// makeRoom is called when the next job found no room though everything else had made way: it arranges the areas around
// that job, makes do with a single output slot, asks for no more than the engine did, cuts the job; and if all that
// does not help the error is a *slicer.MemoryError.
func (w *worker) makeRoom(ctx context.Context) error {
	n := w.together(w.next0)
	group := w.jobs[w.next0:][:n]
	j := &group[0]
	room := w.lane.room()
	if _, _, _, n := w.total(room); n < len(w.jobs) {
		if _, _, _, ok := w.resident(); !ok && w.stopGuessing() {
			w.share()
			return nil
		}
	}
	in, dict, scratch := w.footOf(w.next0, n)
	if in <= room && dict <= room && scratch <= room && in+dict+scratch <= room {
		l := w.lane
		if l.in.size >= in && l.dict.size >= dict && l.scratch.size >= scratch && w.held() == 0 {
			return &target.EngineError{Partition: w.part.Name, Message: "the planner found no room where there is enough"}
		}
		w.share()
		return nil
	}
	switch {
	case lean(group, noGuess):
		return nil
	case !w.snug:
		w.snug = true
		return w.resize(ctx, 1, w.least())
	case lean(group, noForesight):
		return nil
	case !w.direct && w.againOf(group)+dict+scratch > room:
		// Fewer rows make no smaller dictionary.
	case j.take > 1 && w.mayCut():
		have := room - min(room, dict+scratch)
		cut := uint64(j.take) / 2
		if in > 0 && have < in {
			cut = uint64(float64(j.take) * float64(have) / float64(in))
		}
		most := uint32(min(max(cut, 1), uint64(j.take)-1))
		for k := range group {
			group[k].most, group[k].take = most, most
			group[k].c.fit, group[k].c.need = most, 0
		}
		return nil
	}
	return w.tooSmall(widest(group), in+dict+scratch)
}

// mayCut tells whether a job may be done in several tasks. Text has all keys in one task, so that a cut would put the
// values of one key in several places.
func (w *worker) mayCut() bool { return w.part.File != nil || w.r.prog.Output.Fixed }

// held is the number of bytes that chunks hold.
func (w *worker) held() uint64 {
	l := w.lane
	return l.in.size - l.in.unused() + l.dict.size - l.dict.unused() + l.scratch.size - l.scratch.unused()
}

// tooSmall says how much memory would do for a chunk that wants so many bytes.
func (w *worker) tooSmall(c *chunk, want uint64) error {
	r, l := w.r, w.lane
	each := l.result.Len + up(w.least()) + want
	e := &slicer.MemoryError{Partition: w.part.Name, RowGroup: -1, Need: up(r.length) + uint64(r.shares)*each, Have: r.memory, Streams: r.shares}
	if c != nil {
		e.Page = int64(c.cursor.Ordinal)
		if w.part.File != nil {
			e.RowGroup, e.Column = c.group, r.prog.Columns[c.column].Name
		}
	}
	return e
}

// resize makes the ring n slots of size bytes each and moves the mini-batch in the making to one of them.
func (w *worker) resize(ctx context.Context, n int, size uint64) error {
	l := w.lane
	if len(l.ring) == n && l.slotSize == up(size) && w.slot != nil {
		return nil
	}
	var kept, weights []byte
	if w.slot != nil {
		if w.dirty {
			at, _ := w.r.prog.Output.PlaceIn(w.rows, w.slot.size)
			kept = aligned(min(at.Values+w.made()*w.r.prog.Output.IDs.Bytes(), w.slot.size))
			err := w.r.target.Load(ctx, w.slot.addr, kept)
			if w.r.prog.Output.Weights && err == nil {
				weights = aligned(4 * w.made())
				err = w.r.target.Load(ctx, w.slot.addr+at.Weights, weights)
			}
			if err != nil {
				return fmt.Errorf("%s: move a mini-batch to a larger place: %w", w.part.Name, err)
			}
		}
		l.giveBack(w.slot)
		w.slot = nil
	}
	same := len(l.ring) == n && l.slotSize == up(size)
	if !same {
		w.flush()
		if !l.slots(n, size) {
			return w.tooSmall(nil, 0)
		}
	}
	if w.slot = l.acquire(); w.slot == nil {
		return fmt.Errorf("%s: %w: no output slot is free", w.part.Name, target.ErrEngine)
	}
	if kept != nil {
		err := w.r.target.Store(ctx, w.slot.addr, kept)
		if len(weights) > 0 && err == nil {
			at, _ := w.r.prog.Output.PlaceIn(w.rows, w.slot.size)
			err = w.r.target.Store(ctx, w.slot.addr+at.Weights, weights)
		}
		if err != nil {
			return fmt.Errorf("%s: move a mini-batch to a larger place: %w", w.part.Name, err)
		}
	}
	return nil
}

// growOutput makes the slot hold what the engine asked for.
func (w *worker) growOutput(ctx context.Context) error {
	if !w.snug {
		size := max(w.least(), w.slot.size+w.slot.size/2)
		l := w.lane
		if !w.r.opts.Copy && size <= (l.end-l.base)/2/ringSlots {
			if err := w.resize(ctx, ringSlots, size); err == nil {
				return nil
			}
		} else if size <= (l.end-l.base)/2 {
			return w.resize(ctx, 1, size)
		}
		w.snug = true
	}
	return w.resize(ctx, 1, w.least())
}
