package engine_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// unpackedRunner has a column c of pages with 100 rows each that feeds a number of keys with lengths, and executes a
// slice over its rows 0 to 50. Its cursor then stands inside the first page.
func unpackedRunner(t *testing.T, codec string, keys int) (b *sliceRunner, after program.TaskResult) {
	c := testColumn{name: "c", physical: format.Int64, codec: codec}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		c.rows = append(c.rows, rng.Int64N(1<<40))
	}
	data := writeFile(t, []testColumn{c}, layout{groupRows: 400, batchRows: 100, pageBytes: 800, version: 1})
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: uint32(keys)},
		Columns: []program.Column{{Name: "c", Kind: program.Int64}}}
	for i := range keys {
		p.Columns[0].Sinks = append(p.Columns[0].Sinks,
			program.Sink{To: program.ToSparse, Index: uint32(i),
				Ops: []program.Op{sigridhash.Op{Salt: int64(i), Max: 1 << 30}}})
	}
	b = newSliceRunner(t, engine.New(engine.Options{BlockRows: 16}), data, p, 50)
	state, r := b.execute()
	require.Equal(t, program.Done, state, r.Message)
	after = r.Tasks[0]
	require.EqualValues(t, 50, after.Cursor.Skip)
	require.NotZero(t, after.Page)
	b.slice.Tasks[0].Cursor = after.Cursor
	return b, after
}

// hideWindow takes the first n bytes of the chunk out of the window, and out of memory.
func (b *sliceRunner) hideWindow(n uint64) {
	task := &b.slice.Tasks[0]
	b.mem.Input = bytes.Clone(b.mem.Input)
	clear(b.mem.Input[task.Window.Off:][:n])
	task.Window = program.Span{Off: task.Window.Off + n, Len: task.Window.Len - n}
	task.WindowAt += n
}

// widenTask gives the mini-batch n rows and a number of keys.
func (b *sliceRunner) widenTask(n uint32, keys uint32) {
	out := program.Output{Keys: keys}
	b.slice.Rows, b.slice.Tasks[0].Count, b.slice.Layout = n, n, out.Layout(n)
	b.slice.ValueCap = uint64(n * keys)
	b.mem.Output = make([]byte, b.slice.Layout.Values+8*b.slice.ValueCap)
}

// limitWindow leaves n bytes of the window.
func (b *sliceRunner) limitWindow(n uint64) { b.slice.Tasks[0].Window.Len = n }

// TestUnpackedPageNeedsNoWindow checks that an unpacked page is read from scratch: neither its packed form nor its
// header need be in the window, which may be empty.
func TestUnpackedPageNeedsNoWindow(t *testing.T) {
	for _, keys := range []int{1, 3} {
		b, after := unpackedRunner(t, "snappy", keys)
		require.True(t, after.Cursor.Unpacked)
		state, _ := b.execute()
		require.Equal(t, program.Done, state)
		want := bytes.Clone(b.mem.Output)
		clear(b.mem.Output)
		b.hideWindow(uint64(after.Page))
		b.limitWindow(0)
		state, r := b.execute()
		require.Equal(t, program.Done, state, r.Message)
		require.Equal(t, want, b.mem.Output)
		require.Zero(t, r.BytesIn)
		require.EqualValues(t, after.Page, r.Tasks[0].Cursor.Page, "behind the page")
		require.False(t, r.Tasks[0].Cursor.Unpacked)
	}
}

// TestUnpackedPageAndTheNext checks that the window may begin with the page behind the unpacked one.
func TestUnpackedPageAndTheNext(t *testing.T) {
	b, after := unpackedRunner(t, "snappy", 1)
	b.widenTask(100, 1)
	scratch := bytes.Clone(b.mem.Scratch)
	state, r := b.execute()
	require.Equal(t, program.Done, state, r.Message)
	want := bytes.Clone(b.mem.Output)
	clear(b.mem.Output)
	b.hideWindow(uint64(after.Page))
	b.mem.Scratch = scratch
	full := b.slice.Tasks[0].Window.Len

	b.limitWindow(10)
	state, r = b.execute()
	require.Equal(t, program.MoreInput, state)
	require.EqualValues(t, 50, r.Tasks[0].RowsInWindow)
	require.Equal(t, after.Cursor, r.Tasks[0].Cursor)
	require.Greater(t, r.Tasks[0].Need, uint64(after.Page)+10)
	require.LessOrEqual(t, r.Tasks[0].Need, uint64(after.Page)+full)

	b.limitWindow(full)
	state, r = b.execute()
	require.Equal(t, program.Done, state, r.Message)
	require.Equal(t, want, b.mem.Output)
}

// TestUnpackedPageIsLost checks that the engine requests the window from the cursor's page on, and writes nothing,
// if the page is no longer in scratch.
func TestUnpackedPageIsLost(t *testing.T) {
	for name, damage := range map[string]func(b *sliceRunner, after *program.TaskResult){
		"all":        func(b *sliceRunner, _ *program.TaskResult) { clear(b.mem.Scratch) },
		"the tag":    func(b *sliceRunner, _ *program.TaskResult) { b.mem.Scratch[20] ^= 1 },
		"the page":   func(b *sliceRunner, _ *program.TaskResult) { b.mem.Scratch[chunk.TagBytes+3] ^= 1 },
		"the header": func(b *sliceRunner, _ *program.TaskResult) { b.mem.Scratch[chunk.TagBytes+800] ^= 1 },
		"the room": func(b *sliceRunner, _ *program.TaskResult) {
			b.slice.Tasks[0].Scratch.Len = chunk.TagBytes +
				799
		},
		"the room at all": func(b *sliceRunner, _ *program.TaskResult) { b.slice.Tasks[0].Scratch.Len = 5 },
		"another page": func(b *sliceRunner,
			after *program.TaskResult) {
			b.slice.Tasks[0].Cursor.Page += uint64(after.Page)
		},
		"another chunk": func(b *sliceRunner, _ *program.TaskResult) { b.slice.Tasks[0].ChunkLen++ },
		"another place": func(b *sliceRunner, _ *program.TaskResult) { b.slice.Tasks[0].Cursor.Seen = 100 },
	} {
		t.Run(name, func(t *testing.T) {
			b, after := unpackedRunner(t, "snappy", 1)
			b.hideWindow(uint64(after.Page) + 10)
			damage(b, &after)
			clear(b.mem.Output)
			b.limitWindow(0)
			state, r := b.execute()
			require.Contains(t, []program.State{program.MoreInput, program.MoreScratch}, state, r.Message)
			require.False(t, r.Tasks[0].Cursor.Unpacked)
			require.Positive(t, r.Tasks[0].Need)
			require.Zero(t, r.Tasks[0].RowsInWindow)
			require.Equal(t, make([]byte, len(b.mem.Output)), b.mem.Output)
		})
	}
}

// TestWindowBeatsScratch checks that the window counts if window and scratch differ.
func TestWindowBeatsScratch(t *testing.T) {
	b, after := unpackedRunner(t, "snappy", 1)
	task := &b.slice.Tasks[0]
	size := uint64(after.Page)
	b.mem.Input = bytes.Clone(b.mem.Input)
	first, second := b.mem.Input[task.Window.Off:][:size], b.mem.Input[task.Window.Off+size:][:size]
	require.NotEqual(t, first, second)
	copy(first, second) // another page of the same size
	state, r := b.execute()
	require.Equal(t, program.Done, state, r.Message)
	require.EqualValues(t, size, r.BytesIn, "the page in the window was unpacked")
}

// TestUnpackedPageOfTwoPasses reads a column of several keys, which takes one pass over its rows for each key. If
// the rows are on two pages, the first page must be in the window.
func TestUnpackedPageOfTwoPasses(t *testing.T) {
	b, after := unpackedRunner(t, "snappy", 2)
	b.widenTask(100, 2)
	state, r := b.execute()
	require.Equal(t, program.Done, state, r.Message)
	want := bytes.Clone(b.mem.Output)
	// Scratch holds the second page by now, so once more for the first.
	b, _ = unpackedRunner(t, "snappy", 2)
	b.widenTask(100, 2)
	whole := b.slice.Tasks[0]
	input := b.mem.Input
	clear(b.mem.Output)
	b.hideWindow(uint64(after.Page))
	state, r = b.execute()
	require.Equal(t, program.MoreInput, state, r.Message)
	require.False(t, r.Tasks[0].Cursor.Unpacked, "the page is wanted in the window")
	require.Zero(t, r.Tasks[0].RowsInWindow)
	require.Equal(t, make([]byte, len(b.mem.Output)), b.mem.Output)
	b.mem.Input, b.slice.Tasks[0] = input, whole
	b.slice.Tasks[0].Cursor = r.Tasks[0].Cursor
	b.limitWindow(r.Tasks[0].Need)
	state, r = b.execute()
	require.Equal(t, program.Done, state, r.Message)
	require.Equal(t, want, b.mem.Output)
}

// TestChecksumOnce checks that the checksum of a page is verified once as long as the host says that its bytes stay,
// and that this holds for no other page.
func TestChecksumOnce(t *testing.T) {
	b, after := unpackedRunner(t, "", 1)
	require.True(t, after.Cursor.Checked)
	require.False(t, after.Cursor.Unpacked)
	good := bytes.Clone(b.mem.Input)
	at := b.slice.Tasks[0].Window.Off
	b.mem.Input[at+uint64(after.Page)-1] ^= 1 // the page's last byte
	state, r := b.execute()
	assert.Equal(t, program.Done, state, "the host says that nothing was moved")
	assert.False(t, r.Tasks[0].Cursor.Checked, "the cursor went on to a page that nobody has looked at")
	b.slice.Tasks[0].Cursor.Checked = false
	state, r = b.execute()
	assert.Equal(t, program.BadData, state, "it was moved again")
	assert.False(t, r.Tasks[0].Cursor.Checked)

	b.mem.Input = good
	b.widenTask(100, 1)
	b.slice.Tasks[0].Cursor = after.Cursor
	b.mem.Input[at+uint64(after.Page)+200] ^= 1 // inside the next page
	state, r = b.execute()
	assert.Equal(t, program.BadData, state)
	assert.Contains(t, r.Message, "page 1")
}

// TestRowsInWindow checks that RowsInWindow rows are written if the host asks for them alone.
func TestRowsInWindow(t *testing.T) {
	b, after := unpackedRunner(t, "", 1)
	b.widenTask(200, 1)
	b.slice.Tasks[0].Cursor = program.Cursor{}
	for window, want := range map[uint64]uint32{0: 0, 5: 0, uint64(after.Page) - 1: 0, uint64(after.Page): 100,
		uint64(after.Page) + 700: 100} {
		b.slice.Tasks[0].Count = 200
		b.limitWindow(window)
		state, r := b.execute()
		require.Equal(t, program.MoreInput, state)
		require.Equal(t, want, r.Tasks[0].RowsInWindow, "%d bytes", window)
		if want > 0 {
			b.slice.Tasks[0].Count = want
			state, _ = b.execute()
			require.Equal(t, program.Done, state)
		}
	}
}
