package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// host plays the host of one partition: it keeps the columns' rooms in the drive's memory, moves windows and follows
// cursors. Its random numbers choose its habits: the sizes of windows, tasks and slices.
type host struct {
	engine          *engine.Engine
	program         *program.Program
	code            []byte
	digest          [32]byte
	file            *format.File // nil: text
	data            []byte       // the partition
	rng             *rand.Rand
	smallestWindows bool // windows begin with no bytes
	growByByte      bool // windows grow a byte at a time
	wholeChunks     bool // windows are whole chunks
	dict            []byte
	scratch         []byte
	rooms           []columnRooms
	roomBytes       uint64 // bytes of each column's rooms
	positions       []columnPosition
	firstCapacity   uint64 // the output's capacity at first, in elements
	stats           program.Result
	slices          int
	windowLimit     uint64                 // most input memory of a task; 0 means no limit
	ctx             context.Context        // of the executions; nil: it does not end
	editSlice       func(s *program.Slice) // changes slices before they are executed; may be nil
	tables          []byte                 // the tables range
	absent          program.AbsentKey      // of the last slice
}

// columnRooms are the sizes of a column's rooms. They grow as the engine asks.
type columnRooms struct{ dict, scratch uint64 }

// columnPosition is the place of a column's next row.
type columnPosition struct {
	group  int
	row    uint64 // in the group
	cursor program.Cursor
	page   uint64 // bytes of the cursor's page, if the engine named them
}

// pendingTask is some rows of a column that are still to be written.
type pendingTask struct {
	column, group int
	row, count    uint32
	nextRow       uint64 // row of the group behind the task
	cursor        program.Cursor
	page          uint64
	window        uint64       // bytes from the cursor's page on
	windowBytes   uint64       // of the last slice's window, from the cursor's page on
	allReady      bool         // the engine said that the window holds all rows
	lastRooms     columnRooms  // as they were in the last slice
	rest          *pendingTask // rows cut off because they did not fit; they come next
}

func newHost(e *engine.Engine, p *program.Program, f *format.File, data []byte, seed uint64) *host {
	h := &host{engine: e, program: p, file: f, data: data, code: wire.Marshal(p), rng: rand.New(rand.NewPCG(seed, 1))}
	h.tables = tablesRange(p)
	h.digest = sha256.Sum256(h.code)
	if f != nil {
		h.allocateRooms(1 << 18)
	}
	h.rooms = make([]columnRooms, len(p.Columns))
	h.positions = make([]columnPosition, len(p.Columns))
	h.firstCapacity = 1
	return h
}

// allocateRooms gives every column a number of bytes of dictionary room and of scratch.
func (h *host) allocateRooms(room uint64) {
	n := room * uint64(len(h.program.Columns))
	h.roomBytes, h.dict, h.scratch = room, make([]byte, n), make([]byte, n)
}

// sliceFailure is an error of a slice: its state and its message.
type sliceFailure struct {
	state   program.State
	message string
}

func (e *sliceFailure) Error() string { return fmt.Sprintf("%v: %s", e.state, e.message) }

var errStuck = errors.New("no progress")

// miniBatch runs slices until the mini-batch of the rows is complete.
func (h *host) miniBatch(first int64, rows int) (*reference.Tensors, error) {
	out := h.program.Output
	m := &batch{host: h, rows: uint32(rows), capacity: h.firstCapacity}
	if out.Fixed {
		m.capacity = uint64(rows) * uint64(out.Keys)
	}
	m.growOutput(m.capacity)
	jobs := h.planTasks(first, rows)
	// A window that grows a byte at a time takes one slice for each byte, and a row may begin again on a page that an
	// earlier row has read.
	limit := 20000 + 4*len(h.data)*rows
	for steps := 0; len(jobs) > 0; steps++ {
		if steps > limit {
			return nil, fmt.Errorf("%w: %d slices for %d rows of %d bytes", errStuck, steps, rows, len(h.data))
		}
		n := 1
		if h.file != nil {
			n = 1 + h.rng.IntN(min(len(jobs), 6))
			if h.wholeChunks {
				n = len(jobs)
			}
		}
		var err error
		if jobs, err = m.executeSlice(jobs, n); err != nil {
			return nil, err
		}
	}
	return m.tensors()
}

// planTasks cuts a mini-batch into tasks, column after column, row group after row group.
func (h *host) planTasks(first int64, rows int) []*pendingTask {
	if h.file == nil {
		c := h.positions[0]
		if uint64(first) != c.row || h.rng.IntN(4) == 0 {
			c = columnPosition{cursor: program.Cursor{Skip: uint64(first)}}
		}
		return []*pendingTask{{count: uint32(rows), nextRow: uint64(first) + uint64(rows), cursor: c.cursor}}
	}
	var jobs []*pendingTask
	for i := range h.program.Columns {
		if h.program.Columns[i].Part.Continues() {
			continue // with the keys
		}
		group, row, left := 0, first, rows
		for row >= h.file.RowGroups[group].Rows {
			row -= h.file.RowGroups[group].Rows
			group++
		}
		at := uint32(0)
		for left > 0 {
			n := int(min(int64(left), h.file.RowGroups[group].Rows-row))
			for c := i; n > 0 && c < i+h.program.Parts(i); c++ {
				task := &pendingTask{column: c, group: group, row: at, count: uint32(n),
					nextRow: uint64(row) + uint64(n),
					cursor:  program.Cursor{Skip: uint64(row)}}
				if p := &h.positions[c]; p.group == group && p.row == uint64(row) && h.rng.IntN(8) > 0 {
					task.cursor, task.page = p.cursor, p.page
				}
				jobs = append(jobs, task)
			}
			at, left, row = at+uint32(n), left-n, 0
			group++
		}
	}
	return jobs
}

// batch is a mini-batch that is being made.
type batch struct {
	*host
	rows     uint32
	output   []byte
	place    program.OutputLayout
	capacity uint64
	written  uint64
}

const guardByte = 0xa5

// growOutput makes an output range that holds n values. It fills the gaps between tensors with a byte pattern.
func (m *batch) growOutput(n uint64) {
	base := uint64(program.Align * m.rng.IntN(3))
	size := m.program.Output.Size(m.rows, n)
	p, room := m.program.Output.LayoutIn(m.rows, size)
	p = program.OutputLayout{Dense: p.Dense + base, Lengths: p.Lengths + base, Label: p.Label + base,
		Values: p.Values + base, Weights: p.Weights + base}
	output := bytes.Repeat([]byte{guardByte}, int(base+size)+33)
	if m.output != nil {
		end := m.place.Values + m.written*m.program.Output.IDs.Bytes()
		copy(output[base:], m.output[m.place.Dense:end])
		if m.program.Output.Weights {
			copy(output[p.Weights:], m.output[m.place.Weights:][:4*m.written])
		}
	}
	m.output, m.place, m.capacity = output, p, max(n, room)
}

// chunkOf returns the bytes and the type of a task's column chunk; for text, the partition.
func (h *host) chunkOf(task *pendingTask) ([]byte, program.ChunkType) {
	if h.file == nil {
		return h.data, program.ChunkType{}
	}
	l, ok := h.file.Leaf(h.program.Columns[task.column].Name)
	if !ok {
		return nil, program.ChunkType{Absent: true, Values: uint64(h.file.RowGroups[task.group].Rows)}
	}
	c := h.file.RowGroups[task.group].Columns[l.Index]
	chunk := program.ChunkType{
		Physical: uint8(l.Physical), Codec: uint8(c.Codec), MaxDef: l.MaxDef, MaxRep: l.MaxRep, ElementDef: l.RepDef,
		EntryDef:      l.EntryDef,
		RowsUncounted: l.RowsUncounted, AlwaysCompressed: l.AlwaysCompressed,
		Unsigned: l.Unsigned, BitWidth: uint8(l.BitWidth), TypeLength: uint32(l.TypeLength),
		Values: uint64(c.NumValues),
	}
	if a := parquetcolumn.TakesAnnotation(&h.program.Columns[task.column], l); a != program.NotAnnotated {
		chunk.Annotation, chunk.BitWidth = a, 0
	}
	return h.data[c.Offset : c.Offset+c.Compressed], chunk
}

// buildTask fills in a task and adds its window to the input range.
func (m *batch) buildTask(task *pendingTask, input *[]byte) program.Task {
	chunk, ct := m.chunkOf(task)
	wire := program.Task{Column: uint32(task.column), Row: task.row, Count: task.count, Chunk: ct,
		ChunkLen: uint64(len(chunk)),
		Cursor:   task.cursor}
	back := min(uint64(m.rng.IntN(20)), task.cursor.Page)
	length := task.window
	switch {
	case m.wholeChunks:
		length = wire.ChunkLen
	case length == 0 && !m.smallestWindows && !m.growByByte:
		length = uint64(m.rng.IntN(4096))
	}
	if m.windowLimit > 0 {
		length = min(length, m.windowLimit)
	}
	length = min(length, wire.ChunkLen-task.cursor.Page)
	task.windowBytes = length
	wire.WindowAt = task.cursor.Page - back
	if task.cursor.Unpacked && m.rng.IntN(2) == 0 {
		// The page lies in scratch, so a part of it or all of it need not be moved.
		wire.WindowAt = task.cursor.Page + m.rng.Uint64N(task.page+1)
		length = max(length, wire.WindowAt-task.cursor.Page)
	}
	*input = append(*input, make([]byte, m.rng.IntN(9))...)
	window := chunk[wire.WindowAt : task.cursor.Page+length]
	wire.Window = program.Span{Off: uint64(len(*input)), Len: uint64(len(window))}
	*input = append(*input, window...)
	r := m.rooms[task.column]
	task.lastRooms = r
	wire.Dict = program.Span{Off: uint64(task.column) * m.roomBytes, Len: r.dict}
	wire.Scratch = program.Span{Off: uint64(task.column) * m.roomBytes, Len: r.scratch}
	return wire
}

// executeSlice executes the first n tasks and returns the tasks that are left.
func (m *batch) executeSlice(jobs []*pendingTask, n int) ([]*pendingTask, error) {
	for i, task := range jobs[:n] {
		if task.rest != nil { // the rest must be written next
			n = i + 1
			break
		}
	}
	for n < len(jobs) && m.program.Columns[jobs[n].column].Part.Continues() {
		n++ // a map's tasks come together
	}
	s := program.Slice{Digest: m.digest, Program: uint64(len(m.code)), Rows: m.rows, Layout: m.place, Values: m.written,
		ValueCap: m.capacity}
	var input []byte
	for _, task := range jobs[:n] {
		s.Tasks = append(s.Tasks, m.buildTask(task, &input))
	}
	if m.editSlice != nil {
		m.editSlice(&s)
	}
	mem := engine.Memory{Program: m.code, Input: input, Dict: m.dict, Scratch: m.scratch, Output: m.output,
		Result: make([]byte, wire.ResultSize(n)), Tables: m.tables}
	s.TablesChecked = m.slices > 0 && len(m.tables) > 0
	ctx := m.host.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	state := m.engine.Execute(ctx, mem, wire.MarshalSlice(&s))
	r, err := wire.UnmarshalResult(mem.Result)
	if err != nil {
		return nil, err
	}
	m.slices++
	m.absent = r.AbsentKey
	m.stats.Values, m.stats.Dropped = r.Values, m.stats.Dropped+r.Dropped
	m.stats.BytesIn, m.stats.BytesOut = m.stats.BytesIn+r.BytesIn, m.stats.BytesOut+r.BytesOut
	if state != r.State {
		return nil, fmt.Errorf("returned %v, wrote %v", state, r.State)
	}
	if state >= program.BadSlice {
		return nil, &sliceFailure{state, r.Message}
	}
	if r.Message != "" {
		return nil, fmt.Errorf("%v with message %q", state, r.Message)
	}
	m.written = r.Values
	var left []*pendingTask
	progress := false
	for i, task := range jobs[:n] {
		result := &r.Tasks[i]
		if state == program.Done && result.State != program.Done {
			return nil, fmt.Errorf("slice is done, task %d is %v", i, result.State)
		}
		if result.Rows > task.count || result.State == program.Done && result.Rows != task.count {
			return nil, fmt.Errorf("%d of %d rows written, %v", result.Rows, task.count, result.State)
		}
		progress = progress || result.Rows > 0 || result.Cursor != task.cursor || result.State == program.Done
		if result.State == program.MoreInput && task.allReady {
			return nil, fmt.Errorf("%d rows were ready, now %d bytes more are wanted", task.count, result.Need)
		}
		if result.Cursor.Page != task.cursor.Page {
			task.page = 0
		}
		if result.Page > 0 {
			task.page = uint64(result.Page)
		}
		if m.file != nil && result.Cursor.Unpacked && task.page == 0 {
			return nil, fmt.Errorf("a page of column %d is unpacked, its length is not known", task.column)
		}
		task.cursor = result.Cursor
		task.row += result.Rows
		task.count -= result.Rows
		if task.count == 0 {
			if task.rest != nil {
				task.rest.cursor, task.rest.page = task.cursor, task.page
				left = append(left, task.rest)
			} else {
				m.positions[task.column] = columnPosition{task.group, task.nextRow, task.cursor, task.page}
				if err := m.checkEnd(task); err != nil {
					return nil, err
				}
			}
			continue
		}
		more, err := m.provide(task, result)
		if err != nil {
			return nil, err
		}
		progress = progress || more
		left = append(left, task)
	}
	if !progress {
		return nil, fmt.Errorf("%w: %v: %+v", errStuck, state, r.Tasks)
	}
	return append(left, jobs[n:]...), nil
}

// checkEnd checks, as package slicer does, that a chunk of lists ends with the last row of its row group.
func (m *batch) checkEnd(task *pendingTask) error {
	if m.file == nil || task.nextRow != uint64(m.file.RowGroups[task.group].Rows) {
		return nil
	}
	if _, ct := m.chunkOf(task); ct.MaxRep > 0 && task.cursor.Seen != ct.Values {
		return &sliceFailure{program.BadData, fmt.Sprintf("%d rows end after %d of %d values", task.nextRow,
			task.cursor.Seen, ct.Values)}
	}
	return nil
}

// cutTask leaves a task its first n rows. The other rows come next.
func (m *batch) cutTask(task *pendingTask, n uint32) {
	rest := *task
	rest.row, rest.count = task.row+n, task.count-n
	task.count, task.rest = n, &rest
}

// mayCutTask reports whether a task's rows may come in several tasks.
func (m *batch) mayCutTask(task *pendingTask) bool {
	if m.program.Columns[task.column].Part != program.NoPart {
		return false // all parts together, or none
	}
	keys := 0
	for _, s := range m.program.Columns[task.column].Sinks {
		if s.To == program.ToSparse {
			keys++
		}
	}
	return m.program.Output.Fixed || m.file != nil && keys < 2
}

// provide gives a task the memory or bytes that it lacks, and reports whether that is more than before.
func (m *batch) provide(task *pendingTask, result *program.TaskResult) (bool, error) {
	room := &m.rooms[task.column]
	if m.file == nil {
		room = &m.rooms[0]
	}
	switch result.State {
	case program.Done, program.Idle:
		return false, nil
	case program.MoreInput:
		if m.windowLimit > 0 && result.Need > m.windowLimit {
			if task.count == 1 {
				return false, fmt.Errorf("one row of column %d needs a window of %d bytes, there are %d", task.column,
					result.Need, m.windowLimit)
			}
			task.window = m.windowLimit
			m.cutTask(task, task.count/2)
			return true, nil
		}
		if result.RowsInWindow >= task.count {
			return false, fmt.Errorf("all of %d rows are ready, and %d bytes more are wanted", task.count, result.Need)
		}
		if result.RowsInWindow > 0 && task.rest == nil && m.mayCutTask(task) && m.rng.IntN(2) == 0 {
			m.cutTask(task, result.RowsInWindow)
			task.window, task.allReady = task.windowBytes, true
			return true, nil
		}
		more := result.Need > task.window
		if m.growByByte && more {
			task.window++
		} else {
			task.window = result.Need
		}
		return more, nil
	case program.MoreDict:
		if result.Need <= task.lastRooms.dict || result.Need > m.roomBytes {
			return false, fmt.Errorf("dictionary of %d bytes, has %d", result.Need, task.lastRooms.dict)
		}
		room.dict = max(room.dict, result.Need)
	case program.MoreScratch:
		if m.file == nil {
			m.scratch = make([]byte, result.Need)
			room.scratch = result.Need
			return true, nil
		}
		if result.Need <= task.lastRooms.scratch || result.Need > m.roomBytes {
			return false, fmt.Errorf("scratch of %d bytes, has %d", result.Need, task.lastRooms.scratch)
		}
		room.scratch = max(room.scratch, result.Need)
	case program.MoreOutput:
		if result.Need > m.capacity {
			m.growOutput(result.Need)
		}
	}
	return true, nil
}

// tensors reads the mini-batch out of the output range and checks that nothing else was written.
func (m *batch) tensors() (*reference.Tensors, error) {
	out := m.program.Output
	t := &reference.Tensors{Rows: int(m.rows)}
	used := make([]bool, len(m.output))
	word := func(at uint64) uint32 {
		for i := range uint64(4) {
			used[at+i] = true
		}
		return binary.LittleEndian.Uint32(m.output[at:])
	}
	t.Dense = make([]float32, uint64(m.rows)*uint64(out.Dense))
	for i := range t.Dense {
		if out.DenseType == program.DenseBFloat16 {
			at := m.place.Dense + 2*uint64(i)
			used[at], used[at+1] = true, true
			t.Dense[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(m.output[at:])) << 16)
			continue
		}
		t.Dense[i] = math.Float32frombits(word(m.place.Dense + 4*uint64(i)))
	}
	t.Lengths = make([]int32, uint64(m.rows)*uint64(out.Keys))
	for i := range t.Lengths {
		t.Lengths[i] = 1
		if !out.Fixed {
			t.Lengths[i] = int32(word(m.place.Lengths + 4*uint64(i)))
		}
	}
	if out.Label {
		t.Label = make([]float32, m.rows)
		for i := range t.Label {
			t.Label[i] = math.Float32frombits(word(m.place.Label + 4*uint64(i)))
		}
	}
	for i := range m.written {
		v := int64(int32(word(m.place.Values + i*out.IDs.Bytes())))
		if out.IDs == program.IDs64 {
			v = v&0xffffffff | int64(word(m.place.Values+i*8+4))<<32
		}
		t.Values = append(t.Values, v)
		if out.Weights {
			t.Weights = append(t.Weights, math.Float32frombits(word(m.place.Weights+4*i)))
		}
	}
	for i := range m.program.Columns {
		if m.program.Columns[i].Part != program.NoPart && out.Keys > 0 {
			// The engine puts the ids of maps in order in the free room behind them.
			for b := range m.capacity * out.IDs.Bytes() {
				used[m.place.Values+b] = true
			}
			for b := range m.capacity * 4 {
				used[m.place.Weights+b] = used[m.place.Weights+b] || out.Weights
			}
			break
		}
	}
	for i, b := range m.output {
		if !used[i] && b != guardByte {
			return nil, fmt.Errorf("output byte %d of %d was written", i, len(m.output))
		}
	}
	return t, nil
}
