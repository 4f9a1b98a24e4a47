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
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// host plays the host of one partition: it keeps rooms in the drive's memory, moves windows, follows cursors. Its
// habits are chosen by its random numbers: sizes of windows, tasks and slices.
type host struct {
	engine  *engine.Engine
	prog    *program.Program
	code    []byte
	digest  [32]byte
	file    *format.File // nil: text
	data    []byte       // the partition
	rng     *rand.Rand
	tiny    bool // windows begin as small as can be
	creep   bool // and grow a byte at a time
	big     bool // windows are whole chunks
	dict    []byte
	scratch []byte
	rooms   []rooms
	room    uint64 // bytes of each column's rooms
	cols    []place
	values  uint64 // capacity to begin with
	stats   program.Result
	slices  int
	window  uint64 // a host with so much input memory, and no more, a task; 0: unbounded
}

// rooms are a column's rooms; their lengths grow as the engine asks.
type rooms struct{ dict, scratch uint64 }

// place is where a column's next row is.
type place struct {
	group  int
	row    uint64 // in the group
	cursor program.Cursor
	page   uint64 // bytes of the cursor's page, if the engine said
}

// job is some rows of a column that are still to be written.
type job struct {
	column, group int
	row, count    uint32
	next          uint64 // row of the group behind the job
	cursor        program.Cursor
	page          uint64
	window        uint64 // bytes from the cursor's page on
	length        uint64 // those of the last slice
	promised      bool   // that they hold all rows
	had           rooms  // when its last slice ran
	rest          *job   // rows cut off because they did not fit; they come next
}

func newHost(e *engine.Engine, p *program.Program, f *format.File, data []byte, seed uint64) *host {
	h := &host{engine: e, prog: p, file: f, data: data, code: p.Marshal(), rng: rand.New(rand.NewPCG(seed, 1))}
	h.digest = sha256.Sum256(h.code)
	if f != nil {
		h.furnish(1 << 18)
	}
	h.rooms = make([]rooms, len(p.Columns))
	h.cols = make([]place, len(p.Columns))
	h.values = 1
	return h
}

// furnish gives every column so many bytes of dictionary room and scratch.
func (h *host) furnish(room uint64) {
	n := room * uint64(len(h.prog.Columns))
	h.room, h.dict, h.scratch = room, make([]byte, n), make([]byte, n)
}

// stateError is a slice that ended badly.
type stateError struct {
	state   program.State
	message string
}

func (e *stateError) Error() string { return fmt.Sprintf("%v: %s", e.state, e.message) }

var errStuck = errors.New("no progress")

// miniBatch runs slices until the rows' mini-batch is whole.
func (h *host) miniBatch(first int64, rows int) (*reference.Tensors, error) {
	out := h.prog.Output
	m := &batch{host: h, rows: uint32(rows), capacity: h.values}
	if out.Fixed {
		m.capacity = uint64(rows) * uint64(out.Keys)
	}
	m.grow(m.capacity)
	jobs := h.jobs(first, rows)
	// A window that grows a byte at a time takes a slice a byte, and a row may begin anew on a page that another has seen.
	limit := 20000 + 4*len(h.data)*rows
	for steps := 0; len(jobs) > 0; steps++ {
		if steps > limit {
			return nil, fmt.Errorf("%w: %d slices for %d rows of %d bytes", errStuck, steps, rows, len(h.data))
		}
		n := 1
		if h.file != nil {
			n = 1 + h.rng.IntN(min(len(jobs), 6))
			if h.big {
				n = len(jobs)
			}
		}
		var err error
		if jobs, err = m.slice(jobs, n); err != nil {
			return nil, err
		}
	}
	return m.tensors()
}

// jobs cuts a mini-batch into tasks, a column after another, a row group after another.
func (h *host) jobs(first int64, rows int) []*job {
	if h.file == nil {
		c := h.cols[0]
		if uint64(first) != c.row || h.rng.IntN(4) == 0 {
			c = place{cursor: program.Cursor{Skip: uint64(first)}}
		}
		return []*job{{count: uint32(rows), next: uint64(first) + uint64(rows), cursor: c.cursor}}
	}
	var jobs []*job
	for i := range h.prog.Columns {
		if h.prog.Columns[i].Part > program.MapKeys {
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
			for c := i; n > 0 && c < i+h.prog.Parts(i); c++ {
				j := &job{column: c, group: group, row: at, count: uint32(n), next: uint64(row) + uint64(n),
					cursor: program.Cursor{Skip: uint64(row)}}
				if p := &h.cols[c]; p.group == group && p.row == uint64(row) && h.rng.IntN(8) > 0 {
					j.cursor, j.page = p.cursor, p.page
				}
				jobs = append(jobs, j)
			}
			at, left, row = at+uint32(n), left-n, 0
			group++
		}
	}
	return jobs
}

// batch is a mini-batch in the making.
type batch struct {
	*host
	rows     uint32
	output   []byte
	place    program.Placement
	capacity uint64
	written  uint64
}

const guard = 0xa5

// grow makes an output range that holds n values, with a byte pattern in what no tensor covers.
func (m *batch) grow(n uint64) {
	base := uint64(program.Align * m.rng.IntN(3))
	size := m.prog.Output.Size(m.rows, n)
	p, room := m.prog.Output.PlaceIn(m.rows, size)
	p = program.Placement{Dense: p.Dense + base, Lengths: p.Lengths + base, Label: p.Label + base, Values: p.Values + base, Weights: p.Weights + base}
	output := bytes.Repeat([]byte{guard}, int(base+size)+33)
	if m.output != nil {
		copy(output[base:], m.output[m.place.Dense:][:m.place.Values-m.place.Dense+m.written*m.prog.Output.IDs.Bytes()])
		if m.prog.Output.Weights {
			copy(output[p.Weights:], m.output[m.place.Weights:][:4*m.written])
		}
	}
	m.output, m.place, m.capacity = output, p, max(n, room)
}

// chunk is a column's chunk: its bytes and type. Of text it is the partition.
func (h *host) chunk(j *job) ([]byte, program.ChunkType) {
	if h.file == nil {
		return h.data, program.ChunkType{}
	}
	l, ok := h.file.Leaf(h.prog.Columns[j.column].Name)
	if !ok {
		panic("no such leaf")
	}
	c := h.file.RowGroups[j.group].Columns[l.Index]
	return h.data[c.Offset : c.Offset+c.Compressed], program.ChunkType{
		Physical: uint8(l.Physical), Codec: uint8(c.Codec), MaxDef: l.MaxDef, MaxRep: l.MaxRep, ElementDef: l.RepDef, EntryDef: l.EntryDef,
		RowsUncounted: l.RowsUncounted, AlwaysCompressed: l.AlwaysCompressed,
		Unsigned: l.Unsigned, BitWidth: uint8(l.BitWidth), TypeLength: uint32(l.TypeLength), Values: uint64(c.NumValues),
	}
}

// task fills in a task and adds its window to the input range.
func (m *batch) task(j *job, input *[]byte) program.Task {
	chunk, ct := m.chunk(j)
	t := program.Task{Column: uint32(j.column), Row: j.row, Count: j.count, Chunk: ct, ChunkLen: uint64(len(chunk)), Cursor: j.cursor}
	back := min(uint64(m.rng.IntN(20)), j.cursor.Page)
	length := j.window
	switch {
	case m.big:
		length = t.ChunkLen
	case length == 0 && !m.tiny && !m.creep:
		length = uint64(m.rng.IntN(4096))
	}
	if m.window > 0 {
		length = min(length, m.window)
	}
	length = min(length, t.ChunkLen-j.cursor.Page)
	j.length = length
	t.WindowAt = j.cursor.Page - back
	if j.cursor.Unpacked && m.rng.IntN(2) == 0 {
		// The page lies in scratch: some of it or all of it need not be moved.
		t.WindowAt = j.cursor.Page + m.rng.Uint64N(j.page+1)
		length = max(length, t.WindowAt-j.cursor.Page)
	}
	*input = append(*input, make([]byte, m.rng.IntN(9))...)
	window := chunk[t.WindowAt : j.cursor.Page+length]
	t.Window = program.Span{Off: uint64(len(*input)), Len: uint64(len(window))}
	*input = append(*input, window...)
	r := m.rooms[j.column]
	j.had = r
	t.Dict = program.Span{Off: uint64(j.column) * m.room, Len: r.dict}
	t.Scratch = program.Span{Off: uint64(j.column) * m.room, Len: r.scratch}
	return t
}

// slice executes the first n jobs and returns what is left of all.
func (m *batch) slice(jobs []*job, n int) ([]*job, error) {
	for i, j := range jobs[:n] {
		if j.rest != nil { // which must be the next to write
			n = i + 1
			break
		}
	}
	for n < len(jobs) && m.prog.Columns[jobs[n].column].Part > program.MapKeys {
		n++ // a map's tasks come together
	}
	s := program.Slice{Digest: m.digest, Program: uint64(len(m.code)), Rows: m.rows, Place: m.place, Values: m.written, ValueCap: m.capacity}
	var input []byte
	for _, j := range jobs[:n] {
		s.Tasks = append(s.Tasks, m.task(j, &input))
	}
	mem := engine.Memory{Program: m.code, Input: input, Dict: m.dict, Scratch: m.scratch, Output: m.output,
		Result: make([]byte, program.ResultSize(n))}
	state := m.engine.Execute(context.Background(), mem, s.Marshal())
	r, err := program.UnmarshalResult(mem.Result)
	if err != nil {
		return nil, err
	}
	m.slices++
	m.stats.Values, m.stats.Dropped = r.Values, m.stats.Dropped+r.Dropped
	m.stats.BytesIn, m.stats.BytesOut = m.stats.BytesIn+r.BytesIn, m.stats.BytesOut+r.BytesOut
	if state != r.State {
		return nil, fmt.Errorf("returned %v, wrote %v", state, r.State)
	}
	if state >= program.BadSlice {
		return nil, &stateError{state, r.Message}
	}
	if r.Message != "" {
		return nil, fmt.Errorf("%v with message %q", state, r.Message)
	}
	m.written = r.Values
	var left []*job
	progress := false
	for i, j := range jobs[:n] {
		tr := &r.Tasks[i]
		if state == program.Done && tr.State != program.Done {
			return nil, fmt.Errorf("slice is done, task %d is %v", i, tr.State)
		}
		if tr.Rows > j.count || tr.State == program.Done && tr.Rows != j.count {
			return nil, fmt.Errorf("%d of %d rows written, %v", tr.Rows, j.count, tr.State)
		}
		progress = progress || tr.Rows > 0 || tr.Cursor != j.cursor || tr.State == program.Done
		if tr.State == program.MoreInput && j.promised {
			return nil, fmt.Errorf("%d rows were ready, now %d bytes more are wanted", j.count, tr.Need)
		}
		if tr.Cursor.Page != j.cursor.Page {
			j.page = 0
		}
		if tr.Page > 0 {
			j.page = uint64(tr.Page)
		}
		if m.file != nil && tr.Cursor.Unpacked && j.page == 0 {
			return nil, fmt.Errorf("a page of column %d is unpacked, its length is not known", j.column)
		}
		j.cursor = tr.Cursor
		j.row += tr.Rows
		j.count -= tr.Rows
		if j.count == 0 {
			if j.rest != nil {
				j.rest.cursor, j.rest.page = j.cursor, j.page
				left = append(left, j.rest)
			} else {
				m.cols[j.column] = place{j.group, j.next, j.cursor, j.page}
			}
			continue
		}
		more, err := m.give(j, tr)
		if err != nil {
			return nil, err
		}
		progress = progress || more
		left = append(left, j)
	}
	if !progress {
		return nil, fmt.Errorf("%w: %v: %+v", errStuck, state, r.Tasks)
	}
	return append(left, jobs[n:]...), nil
}

// cut leaves a job its first n rows; the rest comes next.
func (m *batch) cut(j *job, n uint32) {
	rest := *j
	rest.row, rest.count = j.row+n, j.count-n
	j.count, j.rest = n, &rest
}

// mayCut tells whether a job's rows may come in several tasks.
func (m *batch) mayCut(j *job) bool {
	if m.prog.Columns[j.column].Part != program.NoPart {
		return false // all parts together, or none
	}
	keys := 0
	for _, s := range m.prog.Columns[j.column].Sinks {
		if s.To == program.ToSparse {
			keys++
		}
	}
	return m.prog.Output.Fixed || m.file != nil && keys < 2
}

// give provides what a task lacks and tells whether that is more than before.
func (m *batch) give(j *job, r *program.TaskResult) (bool, error) {
	room := &m.rooms[j.column]
	if m.file == nil {
		room = &m.rooms[0]
	}
	switch r.State {
	case program.Done, program.Idle:
		return false, nil
	case program.MoreInput:
		if m.window > 0 && r.Need > m.window {
			if j.count == 1 {
				return false, fmt.Errorf("one row of column %d needs a window of %d bytes, there are %d", j.column, r.Need, m.window)
			}
			j.window = m.window
			m.cut(j, j.count/2)
			return true, nil
		}
		if r.Ready >= j.count {
			return false, fmt.Errorf("all of %d rows are ready, and %d bytes more are wanted", j.count, r.Need)
		}
		if r.Ready > 0 && j.rest == nil && m.mayCut(j) && m.rng.IntN(2) == 0 {
			m.cut(j, r.Ready)
			j.window, j.promised = j.length, true
			return true, nil
		}
		more := r.Need > j.window
		if m.creep && more {
			j.window++
		} else {
			j.window = r.Need
		}
		return more, nil
	case program.MoreDict:
		if r.Need <= j.had.dict || r.Need > m.room {
			return false, fmt.Errorf("dictionary of %d bytes, has %d", r.Need, j.had.dict)
		}
		room.dict = max(room.dict, r.Need)
	case program.MoreRoom:
		if m.file == nil {
			m.scratch = make([]byte, r.Need)
			room.scratch = r.Need
			return true, nil
		}
		if r.Need <= j.had.scratch || r.Need > m.room {
			return false, fmt.Errorf("scratch of %d bytes, has %d", r.Need, j.had.scratch)
		}
		room.scratch = max(room.scratch, r.Need)
	case program.MoreOutput:
		if r.Need > m.capacity {
			m.grow(r.Need)
		}
	}
	return true, nil
}

// tensors reads the mini-batch out of the output range and checks that nothing else was touched.
func (m *batch) tensors() (*reference.Tensors, error) {
	out := m.prog.Output
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
	for i := range m.prog.Columns {
		if m.prog.Columns[i].Part != program.NoPart && out.Keys > 0 {
			// Maps are put in order in what room there is behind.
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
		if !used[i] && b != guard {
			return nil, fmt.Errorf("output byte %d of %d was written", i, len(m.output))
		}
	}
	return t, nil
}
