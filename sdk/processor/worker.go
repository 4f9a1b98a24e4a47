package processor

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// worker makes the mini-batches of one stream. It has one owner at a time: the stream's goroutine, or Next.
type worker struct {
	r      *runner
	lane   *lane
	part   *partition.Partition
	geo    partition.Geometry
	direct bool

	row, end int64 // rows of the partition still to be made
	batch    int

	leaves  []*format.Leaf // by program column; text: one nil
	live    [][]*chunk     // by program column: chunks begun and not ended
	learned []learned      // by program column
	serial  uint64         // of the slice being placed
	attempt uint64         // of the jobs being placed in it
	snug    bool           // memory is short: one output slot, as small as can be
	stretch float64        // room for a window over what it wants, for what comes behind it

	kept   struct{ dict, scratch uint64 } // most that was kept resident where memory does not hold everything
	barren int                            // slices since rows were written or a page was reached

	// alone places the mini-batch's jobs one by one. What a chunk wants is forgotten when its memory goes to others, so that
	// arranging it for several may go round in circles; one job grows to what it needs, or the error says how much that is.
	alone bool

	trimmed uint64 // slice that windows were trimmed for
	evicted int    // chunks that made way so far

	planned, unneeded, reread uint64 // bytes of the slice's moves

	// The mini-batch in the making.
	jobs   []job
	next0  int // jobs before it are done
	rows   uint32
	place  program.Placement
	slot   *slot
	values uint64 // written so far
	most   uint64 // values that the engine asked room for; 0 if it did not
	dirty  bool   // something was written to slot

	// Memory that is used again.
	seated []int // jobs of the slice
	slice  program.Slice
	result program.Result
	exec   target.Execution
	block  []byte
	runs   []partition.Run
}

// job is what is left to do of one chunk for a mini-batch.
type job struct {
	c     *chunk
	row   uint32 // of the mini-batch
	count uint32
	take  uint32 // rows of the next task: count, or less where memory is short
	most  uint32 // bound on take; 0 is none
}

func newWorker(r *runner, l *lane, run Run) (*worker, error) {
	p := run.Partition
	w := &worker{
		r: r, lane: l, part: p, direct: r.target.Direct(p),
		row: run.First, end: run.First + run.Rows, batch: run.Batch,
		learned: make([]learned, len(r.learned)),
	}
	var err error
	if !w.direct {
		if w.geo, err = p.Geometry(r.lim.Block, r.lim.Device); err != nil {
			return nil, err
		}
	}
	if err := w.bind(); err != nil {
		return nil, err
	}
	w.live = make([][]*chunk, len(w.leaves))
	w.exec.Partition = p
	w.exec.Ranges[target.RangeProgram] = target.Span{Len: up(r.length)}
	w.exec.Ranges[target.RangeResult] = l.result
	w.slice.Digest, w.slice.Program = r.digest, r.length
	l.arrange(0, 0, 0)
	return w, nil
}

// bind finds the partition's column for every column of the program, and checks that it is what the program takes.
func (w *worker) bind() error {
	prog := w.r.prog
	if prog.Source != program.Parquet {
		w.leaves = []*format.Leaf{nil}
		return w.bindText()
	}
	for i := range prog.Columns {
		col := &prog.Columns[i]
		fail := func(kind error, format string, args ...any) error {
			return &partition.DataError{Partition: w.part.Name, RowGroup: -1, Column: col.Name, Page: -1, Row: w.row, Message: fmt.Sprintf(format, args...), Err: kind}
		}
		leaf, ok := w.part.File.Leaf(col.Name)
		if !ok {
			return fail(partition.ErrSchema, "the partition has no such column")
		}
		if leaf.Unsupported != nil {
			return fail(partition.ErrUnsupported, "%v", leaf.Unsupported)
		}
		if k := kindOf(leaf.Physical); k != col.Kind || listed(leaf) != col.List || leaf.Part != partOf(col.Part) {
			return fail(partition.ErrSchema, "the partition has %v (list %t), the pipeline reads %v (list %t)", k, listed(leaf), col.Kind, col.List)
		}
		for g := w.part.RowGroupOf(w.row); g < len(w.part.RowGroups()) && w.part.RowGroups()[g].First < w.end; g++ {
			if err := w.part.File.RowGroups[g].Columns[leaf.Index].Unsupported; err != nil {
				return &partition.DataError{Partition: w.part.Name, RowGroup: g, Column: col.Name, Page: -1, Row: w.part.RowGroups()[g].First, Message: err.Error(), Err: partition.ErrUnsupported}
			}
		}
		w.leaves = append(w.leaves, leaf)
	}
	return nil
}

// bindText checks that a text was indexed as the program reads it.
func (w *worker) bindText() error {
	prog, t := w.r.prog, w.part.Text()
	if w.part.Source != program.CriteoTSV {
		return nil
	}
	if t.LabelAbsent == prog.Label || int(t.Policy) != int(prog.Malformed) {
		return fmt.Errorf("%s: %w: it was indexed with label %t and malformed rows: %v, the pipeline reads label %t and %v",
			w.part.Name, partition.ErrSchema, !t.LabelAbsent, program.Malformed(t.Policy), prog.Label, prog.Malformed)
	}
	return nil
}

// kindOf is the kind that a physical type decodes to.
func kindOf(t format.Type) program.Kind {
	switch t.Kind() {
	case format.KindInt64:
		return program.Int64
	case format.KindFloat32:
		return program.Float32
	case format.KindFloat64:
		return program.Float64
	}
	return program.Bytes
}

// next makes one mini-batch; io.EOF behind the last.
func (w *worker) next(ctx context.Context) (*tensor.MiniBatch, error) {
	if w.row >= w.end {
		w.remember()
		return nil, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	w.rows = uint32(min(int64(w.batch), w.end-w.row))
	w.plan()
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	for w.next0 < len(w.jobs) {
		if err := w.seatAll(ctx); err != nil {
			return nil, w.giveUp(err)
		}
		if err := w.execute(ctx); err != nil {
			return nil, w.giveUp(err)
		}
	}
	w.row += int64(w.rows)
	return w.finish(ctx)
}

// remember notes in the partition where the stream ended.
func (w *worker) remember() {
	for column, live := range w.live {
		for _, c := range live {
			if leaf := w.leaves[column]; leaf != nil {
				c.noteResume(w.part, leaf.Index)
			}
		}
	}
}

// giveUp frees the output slot on the way out.
func (w *worker) giveUp(err error) error {
	if w.slot != nil {
		w.lane.giveBack(w.slot)
		w.slot = nil
	}
	return err
}

// plan lists the mini-batch's jobs, in the program's order.
func (w *worker) plan() {
	w.jobs, w.next0 = w.jobs[:0], 0
	w.values, w.most, w.dirty, w.alone = 0, 0, false, false
	w.place = w.r.prog.Output.Place(w.rows)
	end := w.row + int64(w.rows)
	first := w.part.RowGroupOf(w.row)
	for column := 0; column < len(w.leaves); column += w.r.prog.Parts(column) {
		for g, at := first, w.row; at < end; g++ {
			until := min(end, w.part.RowGroups()[g].First+w.part.RowGroups()[g].Rows)
			if until <= at {
				continue
			}
			n := uint32(until - at)
			for c := column; c < column+w.r.prog.Parts(column); c++ {
				w.jobs = append(w.jobs, job{c: w.chunk(c, g, at), row: uint32(at - w.row), count: n, take: n})
			}
			at = until
		}
	}
}

// chunk returns the chunk of a column in a row group, with its cursor before a row of the partition.
func (w *worker) chunk(column, g int, row int64) *chunk {
	for _, c := range w.live[column] {
		if c.group == g {
			return c
		}
	}
	c := chunkOf(w.part, column, w.leaves[column], g)
	c.small = min(small, (w.lane.end-w.lane.base)/uint64(8*len(w.leaves)))
	c.fresh(row-c.first, w.part)
	w.readPages(c, w.leaves[column])
	c.jump()
	if leaf := w.leaves[column]; leaf != nil && c.row > 0 {
		c.findResume(w.part, leaf.Index)
	}
	w.live[column] = append(w.live[column], c)
	return c
}

// prepare gets a slot for the mini-batch.
func (w *worker) prepare(ctx context.Context) error {
	l := w.lane
	// A short last mini-batch does not shrink the ring, hence the batch.
	size := w.sizeFor(uint32(w.batch), w.guess(uint32(w.batch)))
	switch {
	case w.snug:
		return w.resize(ctx, 1, w.least())
	case up(size) > l.slotSize && !w.ring(size):
		w.snug = true
		return w.resize(ctx, 1, w.least())
	}
	if w.slot = l.acquire(); w.slot == nil {
		return fmt.Errorf("%s: %w: no output slot is free", w.part.Name, target.ErrEngine)
	}
	return nil
}

// ring makes output slots of size bytes each: as many as lending takes, where half the memory holds them, else one.
func (w *worker) ring(size uint64) bool {
	l := w.lane
	w.flush()
	if !w.r.opts.Copy && size <= (l.end-l.base)/2/ringSlots && l.slots(ringSlots, size) {
		return true
	}
	return l.slots(1, size)
}

// sizeFor is the size of a mini-batch's output.
func (w *worker) sizeFor(rows uint32, values uint64) uint64 {
	return max(w.r.prog.Output.Size(rows, values), grain)
}

// guess bounds or guesses the values of a mini-batch.
func (w *worker) guess(rows uint32) uint64 {
	out := w.r.prog.Output
	n := uint64(out.Keys) * uint64(rows)
	if out.Fixed || w.part.File == nil {
		return n
	}
	g := min(w.part.RowGroupOf(w.row), len(w.part.RowGroups())-1)
	for i, leaf := range w.leaves {
		if leaf == nil || !leaf.List {
			continue
		}
		if w.r.prog.Columns[i].Part != program.NoPart {
			n += w.guessMap(i, g, rows)
			continue
		}
		values, held := uint64(w.part.File.RowGroups[g].Columns[leaf.Index].NumValues), uint64(max(w.part.RowGroups()[g].Rows, 1))
		mean := values/held + 1
		mean += mean/4 + 1
		if most, ok := firstX(&w.r.prog.Columns[i]); ok {
			mean = min(mean, most)
		}
		n += uint64(rows) * (mean - min(mean, 1))
	}
	return n
}

// firstX tells whether the column's lists are cut, and at how many elements.
func firstX(col *program.Column) (most uint64, ok bool) {
	for _, s := range col.Sinks {
		for _, op := range s.Ops {
			if f, is := op.(program.FirstX); is {
				return uint64(max(f.N, 0)), true
			}
		}
	}
	return 0, false
}

// least is the smallest slot that can hold the mini-batch as far as is known.
func (w *worker) least() uint64 { return w.sizeFor(w.rows, max(w.made(), w.most)) }

// made is how many values lie in the slot, behind one another. With fixed lengths every value has its place from the
// beginning.
func (w *worker) made() uint64 {
	if out := w.r.prog.Output; out.Fixed {
		return uint64(out.Keys) * uint64(w.rows)
	}
	return w.values
}

// valueCap is how many values the slot holds.
func (w *worker) valueCap() uint64 {
	_, values := w.r.prog.Output.PlaceIn(w.rows, w.slot.size)
	return values
}

// execute runs the slice that was placed and takes in its result.
func (w *worker) execute(ctx context.Context) error {
	w.compose()
	r := w.r
	outcome, err := r.target.Execute(ctx, &w.exec)
	r.stats.slices.Add(1)
	w.moved()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s%s: rows %d+%d: %w", w.part.Name, w.unreadPlace(err), w.row, w.rows, err)
	}
	start := time.Now()
	if err := w.readResult(ctx, len(w.seated), outcome.State); err != nil {
		return err
	}
	r.stats.fetch.Add(int64(time.Since(start)))
	w.count(outcome)
	return w.absorb(ctx)
}

// compose writes the slice.
func (w *worker) compose() {
	l, s := w.lane, &w.slice
	w.place, s.ValueCap = w.r.prog.Output.PlaceIn(w.rows, w.slot.size)
	s.Rows, s.Place, s.Values = w.rows, w.place, w.values
	s.Tasks = s.Tasks[:0]
	for _, i := range w.seated {
		j := &w.jobs[i]
		c := j.c
		c.cursor.Checked = c.cursor.Checked && c.checked == c.window
		t := program.Task{
			Column: uint32(c.column), Row: j.row, Count: j.take, Chunk: c.kind, ChunkLen: c.length, Cursor: c.cursor,
			Dict: program.Span{Off: c.dict.off, Len: c.dict.size}, Scratch: program.Span{Off: c.scratch.off, Len: c.scratch.size},
		}
		t.Window, t.WindowAt = w.span(c)
		s.Tasks = append(s.Tasks, t)
	}
	w.exec.Args = s.AppendTo(w.exec.Args[:0])
	w.exec.Ranges[target.RangeInput] = target.Span{Addr: l.inBase, Len: l.in.size}
	w.exec.Ranges[target.RangeDict] = target.Span{Addr: l.dictBase, Len: l.dict.size}
	w.exec.Ranges[target.RangeScratch] = target.Span{Addr: l.scratchBase, Len: l.scratch.size}
	w.exec.Ranges[target.RangeOutput] = target.Span{Addr: w.slot.addr, Len: w.slot.size}
	w.dirty = true
}

// span is where in the input range the chunk's bytes lie from chunk offset from on, which is the cursor's page or, if that lies
// unpacked in scratch and not in the window, what is behind it.
func (w *worker) span(c *chunk) (s program.Span, from uint64) {
	from = c.cursor.Page
	if w.direct {
		return program.Span{Off: c.at + from, Len: c.length - from}, from
	}
	v := c.window
	holds := func(off uint64) bool {
		at := c.at + off + w.geo.Align(0)
		return v != nil && v.from <= at && at < v.to
	}
	if !holds(from) {
		if from = c.begin(); !holds(from) {
			return program.Span{}, from
		}
	}
	at := c.at + from + w.geo.Align(0)
	end := min(v.to, c.at+c.length+w.geo.Align(0))
	return program.Span{Off: v.seg.off + at - v.from, Len: end - min(at, end)}, from
}

// readResult reads the result block, of which there is one even for a slice that failed.
func (w *worker) readResult(ctx context.Context, tasks int, state program.State) error {
	size := uint64(program.ResultSize(tasks))
	at := w.lane.result
	b, ok := w.r.target.View(target.Span{Addr: at.Addr, Len: size})
	if !ok {
		if uint64(cap(w.block)) < at.Len {
			w.block = make([]byte, at.Len)
		}
		b = w.block[:size]
		if err := w.r.target.Load(ctx, at.Addr, b); err != nil {
			return fmt.Errorf("%s: read a result: %w", w.part.Name, err)
		}
	}
	if err := w.result.DecodeFrom(b); err != nil {
		return &target.EngineError{Partition: w.part.Name, State: state, Message: err.Error()}
	}
	if w.result.State != state || len(w.result.Tasks) != tasks && state < program.BadSlice {
		return &target.EngineError{Partition: w.part.Name, State: state, Message: fmt.Sprintf("the result says %v and has %d tasks, want %d", w.result.State, len(w.result.Tasks), tasks)}
	}
	return nil
}

// count adds a slice to the statistics.
func (w *worker) count(o target.Outcome) {
	s, res := &w.r.stats, &w.result
	ns := func(n uint64) int64 { return int64(min(n, math.MaxInt64/2)) }
	s.wait.Add(int64(o.Wait) + ns(res.Wait))
	s.move.Add(int64(o.Move) + ns(res.Move))
	s.decode.Add(ns(res.Decode))
	s.transform.Add(ns(res.Transform))
	s.in.Add(int64(res.BytesIn))
	s.out.Add(int64(res.BytesOut))
	s.dropped.Add(int64(res.Dropped))
	if res.State != program.Done {
		s.reissued.Add(1)
	}
}

// finish turns the slot into a mini-batch: lent where the memory is mapped and slots stay free, else copied.
func (w *worker) finish(ctx context.Context) (*tensor.MiniBatch, error) {
	slot, l := w.slot, w.lane
	w.slot = nil
	values := w.made()
	bytes := w.sizeFor(w.rows, values)
	view, mapped := w.r.target.View(target.Span{Addr: slot.addr, Len: w.extent(values)})
	if mapped && !w.r.opts.Copy && l.spare() >= freeSlots {
		m := tensor.New(w.r.schema, int(w.rows), func() { l.giveBack(slot) })
		lay(m, w.place, values, view)
		w.r.stats.lent.Add(m.Bytes())
		return m, nil
	}
	defer l.giveBack(slot)
	start := time.Now()
	own := aligned(bytes)
	at, _ := w.r.prog.Output.PlaceIn(w.rows, bytes)
	for _, p := range w.pieces(at, values, bytes) {
		if mapped {
			copy(own[p.to:][:p.n], view[p.from:])
		} else if err := w.r.target.Load(ctx, slot.addr+p.from, own[p.to:][:p.n]); err != nil {
			return nil, fmt.Errorf("%s: rows %d+%d: fetch: %w", w.part.Name, w.row, w.rows, err)
		}
	}
	m := tensor.New(w.r.schema, int(w.rows), nil)
	lay(m, at, values, own)
	w.r.stats.fetched.Add(int64(bytes))
	w.r.stats.fetch.Add(int64(time.Since(start)))
	return m, nil
}

// handedOn counts a mini-batch that the consumer took.
func (w *worker) handOn(m *tensor.MiniBatch) {
	w.r.stats.rows.Add(int64(m.Rows))
	w.r.stats.miniBatches.Add(1)
}
