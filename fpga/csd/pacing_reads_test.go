package csd

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/program"
)

// reading is a task of rows of a chunk of 1000 values and 8000 bytes, whose window holds [from, to).
func reading(column uint32, from, to uint64, at program.Cursor) program.Task {
	return program.Task{Column: column, Chunk: program.ChunkType{Values: 1000}, ChunkLen: 8000, WindowAt: from,
		Window: program.Span{Len: to - from}, Cursor: at}
}

// TestWhatATaskReads: figures by hand, 8 bytes a value.
func TestWhatATaskReads(t *testing.T) {
	list := reading(0, 0, 4000, program.Cursor{})
	list.Chunk.MaxRep = 1
	absent := reading(0, 0, 0, program.Cursor{})
	absent.Chunk.Absent = true
	for name, c := range map[string]struct {
		task          program.Task
		result        program.TaskResult
		decoded, left float64
	}{
		"up to a page's end": {reading(0, 0, 4000, program.Cursor{}),
			program.TaskResult{Rows: 250, Cursor: program.Cursor{Page: 2000}}, 2000, 2000},
		"into a page": {reading(0, 0, 4000, program.Cursor{}),
			program.TaskResult{Rows: 100, Cursor: program.Cursor{Skip: 100}, Page: 2000}, 800, 3200},
		"on in the page": {reading(0, 0, 4000, program.Cursor{Skip: 100}),
			program.TaskResult{Rows: 50, Cursor: program.Cursor{Skip: 150}, Page: 2000}, 400, 2800},
		"past the page": {reading(0, 0, 4000, program.Cursor{Skip: 150}),
			program.TaskResult{Rows: 150, Cursor: program.Cursor{Page: 2000, Skip: 50}, Page: 2000}, 1200, 1600},
		"to the chunk's end": {reading(0, 6000, 8000, program.Cursor{Page: 6000, Skip: 200}),
			program.TaskResult{Rows: 50, Cursor: program.Cursor{Page: 8000}}, 400, 0},
		"no further than the page": {reading(0, 0, 4000, program.Cursor{}),
			program.TaskResult{Rows: 300, Cursor: program.Cursor{Skip: 300}, Page: 2000}, 2000, 2000},
		"lists of 4 values": {list,
			program.TaskResult{Rows: 50, Values: 200, Cursor: program.Cursor{Skip: 50}, Page: 4000}, 1600, 2400},
		"unpacked, and in the window": {reading(0, 0, 4000, program.Cursor{}), program.TaskResult{Rows: 100,
			Cursor: program.Cursor{Skip: 100, Unpacked: true}, Page: 2000}, 800, 3200},
		"unpacked, and behind the window's start": {reading(0, 2000, 4000, program.Cursor{Skip: 100, Unpacked: true}),
			program.TaskResult{Rows: 50, Cursor: program.Cursor{Skip: 150, Unpacked: true}, Page: 2000}, 400, 2800},
		"not executed": {reading(0, 2000, 4000, program.Cursor{Page: 2000}), program.TaskResult{}, 0, 2000},
		"absent":       {absent, program.TaskResult{Rows: 1, Cursor: program.Cursor{Skip: 1}}, 0, 0},
	} {
		decoded, left := taskReads(&c.task, &c.result)
		assert.InDelta(t, c.decoded, decoded, 1e-9, name)
		assert.InDelta(t, c.left, left, 1e-9, name)
	}
}

// execution counts a slice of one task of 100 rows, 800 bytes, from a row on.
func execution(f *flashReads, stream uint64, moved float64, from, to, row uint64) float64 {
	s := program.Slice{Tasks: []program.Task{reading(0, from, to, program.Cursor{Skip: row})}}
	r := program.Result{Tasks: []program.TaskResult{{Rows: 100, Cursor: program.Cursor{Skip: row + 100}, Page: 8000}}}
	return f.bytesOfExecution(moved, stream, &s, &r)
}

// TestAWindowOfManySlices: two streams whose windows hold five slices each; each slice counts its own bytes.
func TestAWindowOfManySlices(t *testing.T) {
	var f flashReads
	for slice := range uint64(10) {
		for stream := range uint64(2) {
			moved, window := 0.0, 4000*(slice/5)
			if slice%5 == 0 {
				moved = 4000
			}
			assert.InDelta(t, 800, execution(&f, stream, moved, window, window+4000, 100*slice), 1e-9)
		}
	}
	assert.InDelta(t, f.moved, f.counted, 1e-9)
}

// TestBytesMovedInVain: each window begins with 1000 bytes that the one before had, too, and these count a bit later.
func TestBytesMovedInVain(t *testing.T) {
	var f flashReads
	var counted, most float64
	for slice := range uint64(10) {
		from := 800 * slice
		moved := 1800.0
		n := execution(&f, 1, moved, from-min(from, 1000), from+800, 100*slice)
		most = max(most, n)
		counted += n
	}
	assert.InDelta(t, f.counted, counted, 1e-9)
	assert.Greater(t, most, 1700.0, "in the end as many as are moved")
	assert.LessOrEqual(t, most, 1800.0)
	assert.InDelta(t, 10*1800, counted, 4*1000)
}

// TestMovesOfAnotherStream: Memory Copy commands of an execution that has not ended count for the one that ends, and
// later executions count that many fewer.
func TestMovesOfAnotherStream(t *testing.T) {
	var f flashReads
	assert.InDelta(t, 800+0.25*4000, execution(&f, 1, 800+4000, 0, 800, 0), 1e-9)
	assert.InDelta(t, 0, execution(&f, 2, 0, 0, 4000, 0), 1e-9, "200 bytes too many have been counted")
	assert.InDelta(t, 800-200, execution(&f, 2, 0, 0, 4000, 100), 1e-9)
	assert.InDelta(t, 800, execution(&f, 2, 0, 0, 4000, 200), 1e-9)
}

// TestStreamsAreBounded: the bytes that forgotten streams have not decoded count for others.
func TestStreamsAreBounded(t *testing.T) {
	var f flashReads
	for stream := range uint64(3 * maxStreams) {
		execution(&f, stream, 4000, 0, 4000, 0)
		assert.LessOrEqual(t, len(f.streams), maxStreams)
	}
	assert.Greater(t, f.counted, 2*maxStreams*4000.0)
}
