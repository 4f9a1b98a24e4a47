package engine

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// listValues is how many elements of lists a block should hold: as flat blocks, what stays in the first-level cache.
const listValues = 4096

// Values that one operator takes from the page straight to their place need no cache between, so that fewer, longer blocks of
// them save work.
const (
	straightRows   = 4 // times a flat block's rows
	straightValues = 8 // times a list block's elements
)

// scan is one pass over a task's rows.
type scan struct {
	*walk
	sinks []sink
	done  uint32 // rows written
	open  bool   // the page at the cursor is in the decoder, Skip rows of it taken
	rows  int    // rows of a block
	clock uint64 // when the stage that is running began
}

// runTask executes one task: every pass over its rows. k.cur is where to go on, k.lack why it stopped.
func (w *worker) runTask(k *walk, r *program.TaskResult) error {
	w.dict.open = false
	start, written, output := k.cur, w.out.written, w.out.bytes
	defer func() {
		r.Values += w.out.written - written
		w.result.Values = w.out.written
		w.result.BytesOut += w.out.bytes - output
	}()
	// Lists before this task have taken what they took.
	if need := written + uint64(k.col.keys)*uint64(k.task.Count); !k.ct.List && !w.out.fixed && need > w.out.capacity {
		k.want(program.MoreOutput, need)
		return nil
	}
	for i, sinks := range k.col.passes {
		k.cur = start
		read := w.result.BytesIn
		s := scan{walk: k, sinks: sinks, rows: w.engine.blockRows, clock: w.now()}
		if k.ct.List {
			s.rows = max(1, s.rows/32)
		}
		k.late = true
		err := w.scan(&s)
		k.late = false
		if wrong := w.late.end(); wrong != nil {
			err = wrong
		}
		if err != nil {
			k.cur.Checked = false
		}
		if i > 0 {
			w.result.BytesIn = read
		}
		r.Rows = s.done
		if err != nil || k.lack != program.Done {
			return err
		}
	}
	if w.out.fixed {
		// Values of keys with fixed lengths have their places; what was written is counted all the same.
		w.out.written += uint64(k.col.keys) * uint64(k.task.Count)
	}
	return nil
}

// scan runs a pass until its rows are written or something lacks.
func (w *worker) scan(s *scan) error {
	count := s.task.Count
	for s.done < count {
		if !s.open {
			if err := w.enter(s); err != nil || s.lack != program.Done {
				return err
			}
		}
		n := w.decoder.Rows()
		if n == 0 {
			s.leave(w)
			continue
		}
		if s.mayContinue(w) {
			if n--; n == 0 {
				if err := w.lastRow(s); err != nil || s.lack != program.Done {
					return err
				}
				continue
			}
		}
		if err := w.rows(s, min(n, int(count-s.done))); err != nil || s.lack != program.Done {
			return err
		}
	}
	if s.open && w.decoder.Rows() == 0 {
		s.leave(w)
	}
	s.settle(s.open, &w.page)
	return nil
}

// settle notes whether the page at the cursor, p if at is true, lies unpacked where the next slice will look for it.
func (s *scan) settle(at bool, p *page) {
	s.cur.Unpacked, s.inside = at && p.packed(&s.ct), 0
	if at && p.size <= math.MaxUint32 {
		s.inside = p.size
	}
}

// leave goes on behind the open page.
func (s *scan) leave(w *worker) {
	pass(&s.cur, &w.page)
	s.cur.Skip = 0
	s.open = false
}

// mayContinue reports whether the page's last row may go on in the page behind it: pages of lists need not end where a
// row does.
func (s *scan) mayContinue(w *worker) bool {
	if !w.page.header.MayContinue(&s.ct) {
		return false
	}
	c := s.cur
	pass(&c, &w.page)
	return !s.ended(&c)
}

// enter finds the page of the cursor's row, opens it and passes the rows before that one.
func (w *worker) enter(s *scan) error {
	for {
		if w.ctx.Err() != nil {
			s.want(program.Idle, 0)
			return nil
		}
		if s.ended(&s.cur) {
			return s.short(&s.cur, uint64(s.task.Count-s.done))
		}
		ok, err := s.header(&s.cur, &w.page)
		if err != nil {
			return err
		}
		if !ok {
			s.want(program.MoreInput, min(max(headerGuess, 2*s.have(s.cur.Page)), s.task.ChunkLen-s.cur.Page))
			return nil
		}
		if w.page.header.Type == format.DictionaryPage {
			if err := w.enterDictionary(s); err != nil || s.lack != program.Done {
				return err
			}
			continue
		}
		if !w.page.data() {
			pass(&s.cur, &w.page)
			continue
		}
		if n, known := w.page.rows(&s.ct); known && s.cur.Skip >= n {
			s.cur.Skip -= n
			pass(&s.cur, &w.page)
			continue
		}
		if ok, err := w.openPage(s, &s.cur); err != nil || !ok {
			return err
		}
		if w.decoder.Continues() && s.cur.Seen == 0 {
			return s.at(&s.cur, badPage("the chunk begins inside a row"))
		}
		n := uint64(w.decoder.Rows())
		if s.cur.Skip >= n && (s.ct.List || n > 0) {
			s.cur.Skip -= n
			pass(&s.cur, &w.page)
			continue
		}
		if err := w.decoder.Skip(int(s.cur.Skip)); err != nil {
			return s.at(&s.cur, err)
		}
		s.open = true
		return nil
	}
}

func (w *worker) enterDictionary(s *scan) error {
	size, err := s.dictionary(&s.cur, &w.page)
	switch {
	case err != nil:
		return err
	case size > uint64(len(s.dict)):
		s.want(program.MoreDict, size)
	case w.page.room(&s.ct) > uint64(len(s.scratch)):
		s.want(program.MoreRoom, w.page.room(&s.ct))
	case s.payload(&w.page) == nil:
		s.want(program.MoreInput, w.page.size)
	default:
		if err := w.loadDictionary(s.walk, &s.cur, &w.page); err != nil {
			return err
		}
		s.clock = w.now()
		pass(&s.cur, &w.page)
	}
	return nil
}

// openPage puts the page that w.page describes into the decoder. It is not ok when something lacks; need of input counts
// from s.cur's page, which c's may lie behind.
func (w *worker) openPage(s *scan, c *program.Cursor) (ok bool, err error) {
	p := &w.page
	payload := s.payload(p)
	if payload == nil && p.bytes == nil {
		s.want(program.MoreInput, p.end()-s.cur.Page)
		return false, nil
	}
	if err := w.late.end(); err != nil { // of the page before
		return false, err
	}
	if ok, err := w.unpack(s.walk, c, p, payload); err != nil {
		return false, s.at(c, err)
	} else if !ok {
		s.want(program.MoreRoom, p.room(&s.ct))
		return false, nil
	}
	dict, err := w.resident(s.walk, c)
	if err != nil {
		return false, err
	}
	if err := w.decoder.Reset(&s.ct, &p.header, p.bytes, dict); err != nil {
		return false, s.at(c, err)
	}
	return true, nil
}

// rows decodes up to n rows of the open page in blocks and writes them.
func (w *worker) rows(s *scan, n int) error {
	for n > 0 {
		ask := min(n, s.rows)
		w.block.Reset(s.ct.Kind())
		w.block.Lend = true // the page stays where it is until the block is written
		got, err := w.decoder.Next(&w.block, ask)
		if errors.Is(err, format.ErrLimit) && ask > 1 {
			// The rows are longer than those before them: fewer at a time. An error ends the decoder's page.
			s.rows = max(1, ask/16)
			if err := w.reopen(s); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return s.at(&s.cur, err)
		}
		if got <= 0 {
			return s.at(&s.cur, badPage("%d rows are missing", n))
		}
		written, err := w.flush(s)
		if err != nil {
			return err
		}
		s.cur.Skip += uint64(written)
		s.done += uint32(written)
		if s.lack != program.Done {
			s.settle(true, &w.page)
			return nil
		}
		s.grow(w, got)
		n -= got
	}
	return nil
}

// grow sets the rows of the next block from those of the block that is done.
func (s *scan) grow(w *worker, got int) {
	straight := w.block.Lent && straight(s.sinks)
	switch {
	case s.ct.List:
		values := listValues
		if straight {
			values *= straightValues
		}
		s.rows = min(max(1, got*values/max(1, w.block.Values())), w.engine.blockRows)
	case straight:
		s.rows = min(straightRows*w.engine.blockRows, w.block.MaxValues)
	}
}

// straight tells whether every sink's values have one operator between the block and their place, or none.
func straight(sinks []sink) bool {
	for i := range sinks {
		work := 0
		for k := range sinks[i].steps {
			if t := &sinks[i].steps[k]; !t.joined && !t.zero {
				work++
			}
		}
		if work > 1 {
			return false
		}
	}
	return true
}

// reopen puts the decoder back to the cursor's row in the open page.
func (w *worker) reopen(s *scan) error {
	dict, err := w.resident(s.walk, &s.cur)
	if err != nil {
		return err
	}
	err = w.decoder.Reset(&s.ct, &w.page.header, w.page.bytes, dict)
	if err == nil {
		err = w.decoder.Skip(int(s.cur.Skip))
	}
	if err != nil {
		return s.at(&s.cur, err)
	}
	return nil
}

// lastRow writes the last row of a page of lists that may end inside a row, which is whole only when the next page
// begins with another.
func (w *worker) lastRow(s *scan) error {
	last, err := w.readLastRow(s)
	if err != nil || s.lack != program.Done {
		return err
	}
	written, err := w.flush(s)
	if err != nil {
		return err
	}
	if written == 0 { // no room in the output
		last.stay(s)
		return nil
	}
	s.done++
	last.goOn(s)
	return nil
}

// rowEnd is where a row ends that was the last of its page.
type rowEnd struct {
	c       program.Cursor // behind the row
	scratch page           // whose page lies unpacked in scratch
	opened  bool           // the page at c is in the decoder
}

// goOn moves the cursor behind the row.
func (e *rowEnd) goOn(s *scan) { s.cur, s.open = e.c, e.opened }

// stay leaves the cursor before the row.
func (e *rowEnd) stay(s *scan) { s.settle(s.holds(&e.scratch), &e.scratch) }

// readLastRow decodes the last row of a page of lists that may end inside a row into the block, and what the pages
// behind have of it. The cursor stays at the row's beginning.
func (w *worker) readLastRow(s *scan) (end rowEnd, err error) {
	w.block.Reset(s.ct.Kind())
	w.block.Lend = false // the row may go on in a page that takes this one's place
	if n, err := w.decoder.Next(&w.block, 1); err != nil {
		return end, s.at(&s.cur, err)
	} else if n != 1 {
		return end, s.at(&s.cur, badPage("a row is missing"))
	}
	c := s.cur
	end.scratch = w.page
	for {
		pass(&c, &w.page)
		c.Skip = 0
		if s.ended(&c) {
			if c.Seen < s.task.Chunk.Values {
				return end, s.short(&c, 0)
			}
			break
		}
		ok, err := s.header(&c, &w.page)
		if err != nil {
			return end, err
		}
		if !ok {
			s.want(program.MoreInput, min(c.Page+max(headerGuess, 2*s.have(c.Page)), s.task.ChunkLen)-s.cur.Page)
			end.stay(s)
			return end, nil
		}
		if w.page.header.Type == format.DictionaryPage {
			return end, s.at(&c, badPage("a dictionary page behind the chunk's first page"))
		}
		if !w.page.data() {
			continue
		}
		if !w.page.header.MayContinue(&s.ct) {
			break // begins with a row
		}
		ok, err = w.openPage(s, &c)
		if err != nil {
			return end, err
		}
		if !ok {
			end.stay(s)
			return end, nil
		}
		if w.page.packed(&s.ct) {
			end.scratch = w.page
		}
		if w.decoder.Continues() {
			if err := w.decoder.Continue(&w.block); err != nil {
				return end, s.at(&c, err)
			}
		}
		if end.opened = w.decoder.Rows() > 0; end.opened {
			break
		}
	}
	end.c = c
	return end, nil
}

// holds tells whether the page that was unpacked last is the cursor's.
func (s *scan) holds(scratch *page) bool { return scratch.off == s.cur.Page && scratch.packed(&s.ct) }

// flush runs the block through the sinks and writes it. It returns how many of its rows were written: fewer than all only
// when the output lacks room for a list, which it notes.
func (w *worker) flush(s *scan) (int, error) {
	now := w.lap(program.UnitParquet, s.clock, w.block.Values())
	w.result.Decode += now - s.clock
	defer func() {
		s.clock = w.now()
		w.result.Transform += s.clock - now
	}()
	row := uint64(s.task.Row) + uint64(s.done)
	b := &w.block
	v := vec{kind: s.col.kind, n: b.Values(), i64: b.I64, f32: b.F32, f64: b.F64, offs: b.Offsets, data: b.Data, list: s.ct.List}
	if b.Nulls > 0 {
		v.valid = b.Valid
	}
	from, to := w.late.span(b)
	w.late.upTo(from)
	defer w.late.upTo(to)
	if v.list {
		v.lengths, v.mine, v.myLengths = b.Lengths, v.kind != program.Bytes && !b.Lent, true
		w.buffers.end = w.out.idRoom(w.out.written, v.n)
		if from < to && w.late.at == from && len(s.sinks[0].steps) == 1 {
			w.buffers.late = &w.late
		}
		err := w.chain(s.sinks[0].steps, &v)
		w.buffers.late = nil
		if err != nil {
			return 0, s.at(&s.cur, fmt.Errorf("rows %d to %d of the mini-batch: %w", row, row+uint64(b.Rows)-1, err))
		}
		rows, want, err := w.out.lists(uint64(s.sinks[0].index), row, &v)
		if err != nil {
			return 0, s.at(&s.cur, err)
		}
		if rows < b.Rows {
			s.want(program.MoreOutput, want)
		}
		return rows, nil
	}
	if err := w.sinks(s.sinks, row, v, !b.Lent); err != nil {
		return 0, s.at(&s.cur, err)
	}
	return b.Rows, nil
}

// sinks runs scalars through every sink's chain and writes them. spent tells that nobody reads v's values afterwards.
func (w *worker) sinks(sinks []sink, row uint64, v vec, spent bool) error {
	for i := range sinks {
		s := &sinks[i]
		v := v
		v.mine = spent && i == len(sinks)-1
		w.buffers.end = place{}
		switch s.to {
		case program.ToSparse:
			w.buffers.end = w.out.idRoom(w.out.at(uint64(s.index), row), v.n)
		case program.ToDense:
			w.buffers.end.dense = w.out.denseRoom(uint64(s.index), row, v.n)
		}
		if err := w.chain(s.steps, &v); err != nil {
			return fmt.Errorf("rows %d to %d of the mini-batch: %w", row, row+uint64(v.n)-1, err)
		}
		if s.to == program.ToSparse && v.valid != nil {
			w.buffers.own(&v) // nulls are taken out in place
		}
		if err := w.out.store(s, row, &v); err != nil {
			return err
		}
	}
	return nil
}
