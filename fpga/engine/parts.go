package engine

import (
	"errors"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// How many elements a block of a map should hold at most: what its blocks and what is made of them fit the second-level cache.
// Numbers, of which a row has one a feature, want more rows.
const (
	mapValues  = 8192
	mapNumbers = 16384
)

// mapPlaces is how many places a block should have: rows times different keys.
const mapPlaces = 1 << 18

// parts reads the leaves of a map. Each has a decoder, a block and a dictionary of its own, in a worker that does nothing
// else; cursors move when a block of all of them was written, so that they always stand before the same row.
type parts struct {
	readers []*worker
	scans   []scan
	ends    []rowEnd
	crossed []bool // the block at hand is the page's last row, and ends at its rowEnd
	joined
}

// release forgets what a slice lent.
func (p *parts) release() {
	for _, r := range p.readers {
		r.ctx, r.mem = nil, Memory{}
		r.program, r.page.bytes, r.dict.open = nil, nil, false
		r.block.Reset(r.block.Kind)
	}
	clear(p.scans[:cap(p.scans)])
	clear(p.ends[:cap(p.ends)])
}

func (p *parts) bytes() int {
	n := p.joined.bytes()
	for _, r := range p.readers {
		n += r.bytes()
	}
	return n
}

// begin sets the readers to a map's tasks.
func (p *parts) begin(w *worker, plan *mapPlan, first int) {
	for len(p.readers) < plan.parts {
		p.readers = append(p.readers, newWorker(w.engine))
	}
	p.scans, p.ends, p.crossed = p.scans[:0], p.ends[:0], p.crossed[:0]
	for i := range plan.parts {
		r := p.readers[i]
		r.ctx, r.mem, r.program, r.dict.open = w.ctx, w.mem, w.program, false
		r.result.BytesIn, r.result.Decode = 0, 0
		p.scans = append(p.scans, scan{walk: &w.walks[first+i]})
		p.ends = append(p.ends, rowEnd{})
		p.crossed = append(p.crossed, false)
	}
}

// runMap executes the tasks of a map, and tells whether something lacks.
func (w *worker) runMap(plan *mapPlan, first int) (lacks bool, err error) {
	p := &w.parts
	p.begin(w, plan, first)
	written, output := w.out.written, w.out.bytes
	done, at, err := w.scanMap(plan)
	if w.out.fixed {
		// Values of keys with fixed lengths have their places; what was written is counted all the same.
		w.out.written += uint64(plan.keys) * uint64(done)
	}
	w.result.Values = w.out.written
	w.result.BytesOut += w.out.bytes - output
	for i := range p.scans {
		s, r := &p.scans[i], &w.result.Tasks[first+i]
		w.result.BytesIn += p.readers[i].result.BytesIn
		r.Cursor, r.Page, r.Rows = s.cur, uint32(s.inside), done
		switch {
		case err != nil:
			if i == at {
				r.State = stateOf(err)
			}
		case s.lack != program.Done:
			if r.State, r.Need = s.lack, s.need; !lacks {
				w.result.State, lacks = s.lack, true
			}
		case done == s.task.Count:
			r.State = program.Done
		}
	}
	if err == nil {
		w.result.Tasks[first+1].Values = w.out.written - written
	}
	return lacks, err
}

// scanMap runs over the rows until they are written or something lacks. at is the part that an error is of.
func (w *worker) scanMap(plan *mapPlan) (done uint32, at int, err error) {
	p := &w.parts
	task := p.scans[0].task
	base, err := w.staged(plan, task)
	if err != nil {
		return 0, 0, err
	}
	values := mapNumbers
	if p.scans[1].col.list {
		values = mapValues
	}
	most := max(1, min(w.engine.blockRows, mapPlaces/max(1, plan.slots)))
	rows := min(64, most)
	for done < task.Count {
		start := w.now()
		n, at, err := p.read(w.engine, min(rows, int(task.Count-done)))
		now := w.lap(program.UnitParquet, start, p.decoded())
		w.result.Decode += now - start
		if err != nil || n == 0 {
			p.stay()
			return done, at, err
		}
		ok, at, err := w.join(plan, uint64(task.Row)+uint64(done), n, base)
		w.result.Transform += w.now() - now
		if err != nil || !ok {
			p.stay()
			return done, at, err
		}
		done += uint32(n)
		p.goOn(n)
		rows = min(max(1, n*values/max(1, p.values())), most)
	}
	for i := range p.scans {
		s, r := &p.scans[i], p.readers[i]
		if s.open && r.decoder.Rows() == 0 {
			s.leave(r)
		}
		s.settle(s.open, &r.page)
	}
	if !w.out.fixed && task.Row+task.Count == w.slice.Rows {
		start := w.now()
		err = w.unstage(plan, base)
		w.result.Transform += w.lap(program.UnitMap, start, int(w.out.written-base)) - start
	}
	return done, 1, err
}

// decoded is how many values the block at hand has, all leaves together.
func (p *parts) decoded() (n int) {
	for i := range p.scans {
		n += p.readers[i].block.Values()
	}
	return n
}

// values is the size of the block at hand.
func (p *parts) values() int {
	most := 0
	for i := range p.scans {
		b := &p.readers[i].block
		most = max(most, b.Values(), len(b.Inner))
	}
	return most
}

// read decodes the next rows of all leaves, at most n, and returns how many; 0 if something lacks. The cursors stay.
func (p *parts) read(e *Engine, n int) (rows, at int, err error) {
	clear(p.crossed)
	for i := range p.scans {
		have, err := p.ready(i)
		if err != nil || p.scans[i].lack != program.Done {
			clear(p.crossed)
			return 0, i, err
		}
		// 0: the page has a row left, which may go on in the next one.
		p.crossed[i] = have == 0
		n = min(n, max(1, have))
	}
	cross := slices.Contains(p.crossed, true)
	for {
		if cross {
			n = 1
		}
		again := false
		for i := range p.scans {
			s, r := &p.scans[i], p.readers[i]
			if p.crossed[i] {
				if p.ends[i], err = r.readLastRow(s); err != nil || s.lack != program.Done {
					clear(p.crossed[i+1:])
					return 0, i, err
				}
				continue
			}
			r.block.Reset(s.ct.Kind())
			r.block.Lend = true
			got, err := r.decoder.Next(&r.block, n)
			if errors.Is(err, format.ErrLimit) && n > 1 {
				again = true
				break
			}
			if err == nil && got != n {
				err = badPage("%d of %d rows are missing", n-got, n)
			}
			if err != nil {
				clear(p.crossed)
				return 0, i, s.at(&s.cur, err)
			}
		}
		if !again {
			return n, 0, nil
		}
		// The rows are longer than those before them: fewer at a time.
		n = max(1, n/16)
		for i := range p.scans {
			if err := p.readers[i].reopen(&p.scans[i]); err != nil {
				return 0, i, err
			}
		}
	}
}

// ready opens the page of a leaf's next row, and returns how many rows of it can be read without another; 0 if only its
// last row is left and may go on in the next page.
func (p *parts) ready(i int) (rows int, err error) {
	s, r := &p.scans[i], p.readers[i]
	for {
		if !s.open {
			if err := r.enter(s); err != nil || s.lack != program.Done {
				return 0, err
			}
		}
		n := r.decoder.Rows()
		if n == 0 {
			s.leave(r)
			continue
		}
		if s.mayContinue(r) {
			n--
		}
		return n, nil
	}
}

// goOn moves the cursors behind the block.
func (p *parts) goOn(n int) {
	for i := range p.scans {
		s := &p.scans[i]
		if s.done += uint32(n); p.crossed[i] {
			p.ends[i].goOn(s)
		} else {
			s.cur.Skip += uint64(n)
		}
	}
}

// stay leaves the cursors before the block, and notes which pages lie where the next slice will look for them.
func (p *parts) stay() {
	for i := range p.scans {
		s, r := &p.scans[i], p.readers[i]
		switch {
		case p.crossed[i] && p.ends[i].scratch.size > 0:
			p.ends[i].stay(s)
		case s.open:
			s.settle(true, &r.page)
		}
	}
}
