package slicer

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/operator/cartesian"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// headerBytes is the size of a fake page's header.
const headerBytes = 32

// fakeColumn describes the chunks of one column. Every chunk has pages of the same size and number of rows.
type fakeColumn struct {
	name       string
	part       program.Part
	list       bool
	first      int64  // rows of lists are cut to this number of elements; 0: not cut
	dictPage   uint64 // bytes of the dictionary page; 0 means no dictionary
	dict       uint64 // bytes of the decoded dictionary
	page       uint64 // bytes of a page, header included
	pageRows   int64
	room       uint64 // bytes of an unpacked page; 0 means that pages are not packed
	values     uint64 // values a row of a list
	declared   uint64 // values a row according to the footer; 0 means values
	lastFactor uint64 // the last page of a chunk is this factor as large; 0 means 1
}

// fakeFile is a file of fake columns, and the program that reads them.
type fakeFile struct {
	columns   []fakeColumn
	groups    []int64 // rows of each row group
	indexed   bool    // has page indexes
	partition *partition.Partition
	program   *program.Program
	starts    [][]uint64 // by row group and column: file offset of the chunk
}

// pageBytes returns the bytes of page i of n.
func (c *fakeColumn) pageBytes(i, n int) uint64 {
	if i == n-1 && c.lastFactor > 1 {
		return c.page * c.lastFactor
	}
	return c.page
}

// pages returns how many data pages a chunk of the given rows has.
func (c *fakeColumn) pages(rows int64) int { return int((rows + c.pageRows - 1) / c.pageRows) }

// length returns the bytes of a chunk.
func (c *fakeColumn) length(rows int64) uint64 {
	n := c.dictPage
	for i := range c.pages(rows) {
		n += c.pageBytes(i, c.pages(rows))
	}
	return n
}

// build makes the partition and the program.
func (f *fakeFile) build() {
	file := &format.File{}
	out := program.Output{Fixed: true}
	prog := &program.Program{Source: program.Parquet}
	for i, c := range f.columns {
		leaf := format.Leaf{Path: c.name, Name: c.name, Index: i, Physical: format.Int64, List: c.list, MaxDef: 1}
		col := program.Column{Name: c.name, Kind: program.Int64, List: c.list, Part: c.part}
		if c.list {
			leaf.MaxRep, out.Fixed = 1, false
		}
		if c.part.OfMap() {
			leaf.Part, leaf.MaxRep, leaf.List, out.Fixed = parquetcolumn.LeafPart(c.part), 1, true, false
			if c.list {
				leaf.MaxRep = 2
			}
		}
		if c.part == program.NoPart || c.part == program.MapValues {
			var ops []program.Op
			if c.first > 0 {
				ops = append(ops, firstx.Op{N: c.first})
			}
			col.Sinks = []program.Sink{{To: program.ToSparse, Index: out.Keys, Ops: ops}}
			if c.part == program.MapValues {
				col.Picks = []program.Pick{{Key: 1}}
			}
			out.Keys++
		}
		file.Leaves, prog.Columns = append(file.Leaves, leaf), append(prog.Columns, col)
		if c.part == program.GraphFirst {
			out.Fixed = false
			sink := program.GraphSink{Sink: program.Sink{To: program.ToSparse, Index: out.Keys}}
			prog.Graphs = append(prog.Graphs, program.Graph{Sinks: []program.GraphSink{sink}})
			out.Keys++
		}
	}
	for g, i := 0, 0; i < len(prog.Columns); i += prog.Parts(i) {
		if prog.Columns[i].Part == program.GraphFirst {
			f.columns[i].crossColumns(&prog.Graphs[g], prog.Parts(i))
			g++
		}
	}
	prog.Output = out
	if out.Fixed {
		for i := range prog.Columns { // a null would have length 0
			prog.Columns[i].Sinks[0].Ops = append([]program.Op{fillnull.Op{}}, prog.Columns[i].Sinks[0].Ops...)
		}
	}
	at := uint64(4)
	for _, rows := range f.groups {
		g := format.RowGroup{Rows: rows}
		var starts []uint64
		for _, c := range f.columns {
			chunk := format.Chunk{
				NumValues: rows * int64(c.levels()), Offset: int64(at), Compressed: int64(c.length(rows)),
				Uncompressed: int64(max(c.room*uint64(c.pages(rows)), c.length(rows))),
				DataOffset:   int64(at + c.dictPage),
			}
			if c.dictPage > 0 {
				chunk.DictOffset = int64(at)
			}
			if c.room > 0 {
				chunk.Codec = format.Snappy
			}
			g.Columns, starts = append(g.Columns, chunk), append(starts, at)
			at += c.length(rows)
		}
		file.RowGroups, f.starts, file.Rows = append(file.RowGroups, g), append(f.starts, starts), file.Rows+rows
	}
	f.partition, f.program = partition.FromFooter("p", int64(at), file, nil), prog
}

// crossColumns crosses the columns of a graph. Its rows make as many values as those of c, the first column.
func (c *fakeColumn) crossColumns(g *program.Graph, columns int) {
	last := uint32(0)
	for k := 1; k < columns; k++ {
		g.Steps = append(g.Steps, program.Step{Inputs: []uint32{last, uint32(k)},
			Combine: cartesian.Op{MaxLength: int64(max(c.values, 1))}})
		last = uint32(columns + k - 1)
	}
	g.Sinks[0].Value = last
}

// index returns the page index of a chunk.
func (f *fakeFile) index(group, column int) (x partition.PageIndex) {
	if !f.indexed {
		return nil
	}
	c, rows := &f.columns[column], f.groups[group]
	at := f.starts[group][column] + c.dictPage
	for i := range c.pages(rows) {
		n := c.pageBytes(i, c.pages(rows))
		x = append(x, format.PageLocation{Offset: int64(at), Size: int32(n), FirstRow: int64(i) * c.pageRows})
		at += n
	}
	return x
}

// fakeEngine executes slices over a fake file: it decodes nothing, and checks that a slice's statements about memory
// are true.
type fakeEngine struct {
	file     *fakeFile
	direct   bool
	fromHost bool
	moved    []target.Move  // what lies in memory, as it came there; none overlaps another
	held     map[uint64]any // by address: the chunk whose dictionary, or the page that unpacked, begins there
	groups   []int          // of the slice's tasks
}

// heldDict and heldPage are what a fake engine left in memory.
type (
	heldDict struct {
		group, column int
		end           uint64
	}
	heldPage struct {
		group, column int
		page          uint64
		end           uint64
	}
)

func newFakeEngine(f *fakeFile) *fakeEngine { return &fakeEngine{file: f, held: map[uint64]any{}} }

// move performs a slice's moves.
func (e *fakeEngine) move(x *Execute) error {
	in := x.Ranges[target.RangeInput]
	for _, m := range slices.Concat(x.Moves, x.Ahead) {
		if m.To < in.Addr || m.To+m.Len > in.End() {
			return fmt.Errorf("move %+v leaves the input range %+v", m, in)
		}
		if (m.Source == target.FromHost) != e.fromHost {
			return fmt.Errorf("move %+v is from %v", m, m.Source)
		}
		e.record(m)
	}
	for _, m := range x.Ahead {
		for i := range x.Slice.Tasks {
			w := &x.Slice.Tasks[i].Window
			if at := in.Addr + w.Off; m.To < at+w.Len && at < m.To+m.Len {
				return fmt.Errorf("move %+v for a later slice writes the window of task %d", m, i)
			}
		}
	}
	return e.forget(x.Ranges)
}

// record notes a move, in place of the earlier content.
func (e *fakeEngine) record(m target.Move) {
	var kept []target.Move
	for _, old := range e.moved {
		if head := min(old.To+old.Len, m.To); head > old.To {
			kept = append(kept, target.Move{From: old.From, Len: head - old.To, To: old.To})
		}
		if tail := max(old.To, m.To+m.Len); tail < old.To+old.Len {
			kept = append(kept, target.Move{From: old.From + tail - old.To, Len: old.To + old.Len - tail, To: tail})
		}
	}
	e.moved = append(kept, m)
}

// holds reports whether n bytes of the file from from on lie at an address.
func (e *fakeEngine) holds(at, from, n uint64) bool {
	for n > 0 {
		i := slices.IndexFunc(e.moved, func(m target.Move) bool { return m.To <= at && at < m.To+m.Len })
		if i < 0 || e.moved[i].From+at-e.moved[i].To != from {
			return false
		}
		step := min(n, e.moved[i].To+e.moved[i].Len-at)
		at, from, n = at+step, from+step, n-step
	}
	return true
}

// forget drops content that lies outside its range, since the ranges were divided again.
func (e *fakeEngine) forget(r [target.Ranges]target.Span) error {
	for i, a := range r {
		for _, b := range r[:i] {
			if a.Len > 0 && b.Len > 0 && a.Addr < b.End() && b.Addr < a.End() {
				return fmt.Errorf("ranges %+v and %+v overlap", a, b)
			}
		}
	}
	for at, h := range e.held {
		var span target.Span
		var end uint64
		switch h := h.(type) {
		case heldDict:
			span, end = r[target.RangeDict], h.end
		case heldPage:
			span, end = r[target.RangeScratch], h.end
		}
		if at < span.Addr || end > span.End() {
			delete(e.held, at)
		}
	}
	return nil
}

// put records what was written from address at on, in place of the earlier content.
func (e *fakeEngine) put(at, end uint64, h any) {
	for other, old := range e.held {
		var oldEnd uint64
		switch old := old.(type) {
		case heldDict:
			oldEnd = old.end
		case heldPage:
			oldEnd = old.end
		}
		if other < end && at < oldEnd {
			delete(e.held, other)
		}
	}
	e.held[at] = h
}

// execute performs the moves and answers the slice. It returns an error if the slice breaks a rule that an engine
// may rely on.
func (e *fakeEngine) execute(x *Execute) (*program.Result, error) {
	if err := e.move(x); err != nil {
		return nil, err
	}
	s := x.Slice
	res := &program.Result{Values: s.Values}
	values := s.Values
	for i := range s.Tasks {
		t, need, err := e.check(x, &s.Tasks[i], e.groups[i], values)
		if err != nil {
			return nil, fmt.Errorf("task %d of %s: %w", i, e.file.columns[s.Tasks[i].Column].name, err)
		}
		if values += need; t.State != program.Idle && res.State == program.Done {
			res.State = t.State
		}
		res.Tasks = append(res.Tasks, t)
	}
	if res.State != program.Done {
		return res, nil
	}
	for i := range res.Tasks {
		res.Tasks[i] = e.do(x, &s.Tasks[i], e.groups[i])
	}
	res.Values = values
	return res, nil
}

// check walks a task's pages. It returns what the task lacks, or Idle for nothing, and how many values it writes.
func (e *fakeEngine) check(
	x *Execute, t *program.Task, group int, values uint64,
) (r program.TaskResult, adds uint64, err error) {
	c, rows := &e.file.columns[t.Column], e.file.groups[group]
	at, from := x.Ranges[target.RangeInput].Addr+t.Window.Off, e.file.starts[group][t.Column]+t.WindowAt
	if !e.direct && !e.holds(at, from, t.Window.Len) {
		return r, 0, fmt.Errorf("its window at %d does not hold bytes %d+%d of the file", at, from, t.Window.Len)
	}
	r.Cursor = t.Cursor
	windowEnd := t.WindowAt + t.Window.Len
	lacks := func(s program.State, need uint64) (program.TaskResult, uint64, error) {
		r.State, r.Need = s, need
		return r, 0, nil
	}
	if c.dictPage > 0 && !r.Cursor.Dict {
		if r.Cursor.Page != 0 {
			return r, 0, fmt.Errorf("goes on at byte %d without its dictionary", r.Cursor.Page)
		}
		if windowEnd < c.dictPage || t.Window.Len == 0 {
			return lacks(program.MoreInput, c.dictPage)
		}
		if t.Dict.Len < c.dict {
			return lacks(program.MoreDict, c.dict)
		}
		dict := x.Ranges[target.RangeDict].Addr + t.Dict.Off
		e.put(dict, dict+c.dict, heldDict{group, int(t.Column), dict + c.dict})
		r.Cursor.Dict, r.Cursor.Page, r.Cursor.Ordinal, r.Cursor.Unpacked = true, c.dictPage, 1, false
	}
	if c.dictPage > 0 {
		dict := x.Ranges[target.RangeDict].Addr + t.Dict.Off
		if h, ok := e.held[dict].(heldDict); !ok || h.column != int(t.Column) || h.group != group {
			return r, 0, fmt.Errorf("its dictionary is said to lie at %d, where there is %v", dict, e.held[dict])
		}
	}
	r.State = program.Idle
	for {
		i := c.pageAt(r.Cursor.Page)
		if i >= c.pages(rows) || r.Cursor.Skip < uint64(c.rowsOf(i, rows)) {
			break
		}
		if r.Cursor.Page < t.WindowAt || windowEnd < r.Cursor.Page+headerBytes {
			return lacks(program.MoreInput, headerBytes)
		}
		r.Cursor = c.behind(r.Cursor, i, rows)
	}
	left := uint64(t.Count)
	for cur := r.Cursor; left > 0; {
		i := c.pageAt(cur.Page)
		if i >= c.pages(rows) {
			return r, 0, fmt.Errorf("%d rows behind the chunk's end are asked for", left)
		}
		end := cur.Page + c.pageBytes(i, c.pages(rows))
		if cur.Unpacked {
			room := x.Ranges[target.RangeScratch].Addr + t.Scratch.Off
			h, ok := e.held[room].(heldPage)
			if !ok || h.column != int(t.Column) || h.group != group || h.page != cur.Page {
				return r, 0, fmt.Errorf("no page %d lies unpacked at %d, but %v", cur.Page, room, e.held[room])
			}
		} else {
			if cur.Page < t.WindowAt || windowEnd < end {
				r.RowsInWindow = t.Count - uint32(left)
				return lacks(program.MoreInput, end-r.Cursor.Page)
			}
			if t.Scratch.Len < c.room {
				return lacks(program.MoreScratch, c.room)
			}
		}
		n := min(left, uint64(c.rowsOf(i, rows))-cur.Skip)
		left -= n
		cur.Skip, cur.Unpacked = cur.Skip+n, false
		if cur.Skip == uint64(c.rowsOf(i, rows)) {
			cur = c.behind(cur, i, rows)
		}
	}
	adds = uint64(t.Count) * c.made()
	if !e.file.program.Output.Fixed && values+adds > x.Slice.ValueCap {
		return lacks(program.MoreOutput, values+adds)
	}
	return r, adds, nil
}

// do executes the rows of a task that lacks nothing.
func (e *fakeEngine) do(x *Execute, t *program.Task, group int) program.TaskResult {
	c, rows := &e.file.columns[t.Column], e.file.groups[group]
	cur := t.Cursor
	if c.dictPage > 0 && !cur.Dict {
		cur.Dict, cur.Page, cur.Ordinal = true, c.dictPage, 1
	}
	for left := uint64(t.Count); ; {
		i := c.pageAt(cur.Page)
		if i >= c.pages(rows) {
			break
		}
		n := min(left, uint64(c.rowsOf(i, rows))-min(cur.Skip, uint64(c.rowsOf(i, rows))))
		if cur.Skip >= uint64(c.rowsOf(i, rows)) {
			cur = c.behind(cur, i, rows)
			continue
		}
		if left == 0 {
			break
		}
		left -= n
		if cur.Skip += n; c.room > 0 {
			room := x.Ranges[target.RangeScratch].Addr + t.Scratch.Off
			e.put(room, room+c.room, heldPage{group, int(t.Column), cur.Page, room + c.room})
			cur.Unpacked = true
		}
	}
	r := program.TaskResult{State: program.Done, Rows: t.Count, Values: uint64(t.Count) * c.made(), Cursor: cur}
	if i := c.pageAt(cur.Page); cur.Skip > 0 && i < c.pages(rows) {
		r.Page = uint32(c.pageBytes(i, c.pages(rows)))
	}
	return r
}

// made returns how many values a row makes.
func (c *fakeColumn) made() uint64 {
	switch {
	case c.part == program.MapKeys || c.part == program.MapScores || c.part == program.GraphNext:
		return 0
	case c.list && c.first > 0:
		return min(c.values, uint64(c.first))
	case c.list:
		return c.values
	}
	return 1
}

// pageAt returns the number of the data page at a chunk offset.
func (c *fakeColumn) pageAt(offset uint64) int {
	return int((offset - min(offset, c.dictPage) + c.page - 1) / c.page)
}

// rowsOf returns the rows of page i.
func (c *fakeColumn) rowsOf(i int, rows int64) int64 {
	return min(c.pageRows, rows-int64(i)*c.pageRows)
}

// levels returns the number of values of a row, as the footer and the pages count them.
func (c *fakeColumn) levels() uint64 {
	if c.declared > 0 {
		return c.declared
	}
	return max(c.values, 1)
}

// behind returns the cursor behind page i.
func (c *fakeColumn) behind(cur program.Cursor, i int, rows int64) program.Cursor {
	if cur.Page < c.dictPage {
		cur.Page, cur.Ordinal = c.dictPage, 1
	}
	n := uint64(c.rowsOf(i, rows))
	cur.Page += c.pageBytes(i, c.pages(rows))
	cur.Skip -= n
	cur.Seen += n * c.levels()
	cur.Ordinal++
	cur.Unpacked = false
	return cur
}

// fakeRun is a slicer with a fake engine under it.
type fakeRun struct {
	slicer    *Slicer
	engine    *fakeEngine
	workspace *Workspace

	slices, rows    int
	needed          uint64
	sizes           []int // rows of each mini-batch
	traffic         Traffic
	stalled, tries  int // most slices without progress, most attempts at building a slice
	portions        int // most portions of a mini-batch
	batchRows       int // most rows of a mini-batch
	relocations     int
	lastSliceNumber uint64
}

// begin makes the slicer of a run over a fake file.
func (f *fakeFile) begin(memory uint64, c Config, rows Rows) (*fakeRun, error) {
	p, err := Prepare(f.program, c.Limits)
	if err != nil {
		return nil, err
	}
	head := p.ImageSpan().Len
	c.Program, c.Memory = p, NewWorkspace(target.Span{Addr: head, Len: memory}, p.MaxTasks)
	s, err := New(c, f.partition, rows)
	if err != nil {
		return nil, err
	}
	e := newFakeEngine(f)
	e.direct, e.fromHost = c.Options.Direct, c.Options.FromHost
	return &fakeRun{slicer: s, engine: e, workspace: c.Memory}, nil
}

// step carries out the next step. It returns the engine's answer to a slice.
func (r *fakeRun) step() (Step, *program.Result, error) {
	step, err := r.slicer.Next()
	if err != nil {
		return nil, nil, err
	}
	switch x := step.(type) {
	case *ReadIndex:
		r.slicer.Index(r.engine.file.index(x.RowGroup, x.Leaf.Index))
	case *Relocate:
		r.relocations++
	case *Execute:
		res, err := r.execute(x)
		return step, res, err
	case *Done:
		r.rows += int(x.Rows)
		r.needed += x.Needed
		r.sizes = append(r.sizes, int(x.Rows))
		r.workspace.Release(x.Buffer)
	}
	return step, nil, nil
}

func (r *fakeRun) execute(x *Execute) (*program.Result, error) {
	b := &r.slicer.builder
	r.slices++
	r.tries, r.lastSliceNumber = max(r.tries, int(b.sliceNumber-r.lastSliceNumber)), b.sliceNumber
	r.portions = max(r.portions, len(r.slicer.batch.portions))
	r.batchRows = max(r.batchRows, int(r.slicer.BatchRows()))
	r.traffic.Planned += x.Traffic.Planned
	r.traffic.Ahead += x.Traffic.Ahead
	r.traffic.Reread += x.Traffic.Reread
	r.engine.groups = r.engine.groups[:0]
	for _, k := range b.placed {
		r.engine.groups = append(r.engine.groups, r.slicer.batch.portions[k].chunk.group)
	}
	res, err := r.engine.execute(x)
	if err != nil {
		return nil, fmt.Errorf("the slicer broke its contract: %w", err)
	}
	err = r.slicer.Result(res)
	r.stalled = max(r.stalled, r.slicer.results.stalledSlices)
	return res, err
}
