package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// execute runs the slice as it is and returns the result.
func (b *sliceRunner) execute() (program.State, *program.Result) {
	args := wire.MarshalSlice(&b.slice)
	state := b.e.Execute(context.Background(), b.mem, args)
	r, err := wire.UnmarshalResult(b.mem.Result)
	require.NoError(b.t, err)
	require.Equal(b.t, state, r.State)
	return state, r
}

// smallRunner returns a runner over a file of one mini-batch of ten rows: a label, two dense columns, a key, lists.
func smallRunner(t testing.TB, codec, encoding string) *sliceRunner {
	data, p := benchmarkProgram(t, 10, 2, 1, 0, 4, true, codec, encoding)
	return newSliceRunner(t, engine.New(engine.Options{}), data, p, 10)
}

func TestSliceRefused(t *testing.T) {
	const huge = math.MaxUint64
	for name, change := range map[string]func(b *sliceRunner){
		"no rows":                func(b *sliceRunner) { b.slice.Rows = 0 },
		"rows too few":           func(b *sliceRunner) { b.slice.Rows = 9 },
		"rows beyond the output": func(b *sliceRunner) { b.slice.Rows = 1 << 20 },
		"most rows":              func(b *sliceRunner) { b.slice.Rows = math.MaxUint32 },
		"no count":               func(b *sliceRunner) { b.slice.Tasks[0].Count = 0 },
		"count beyond":           func(b *sliceRunner) { b.slice.Tasks[0].Count = 11 },
		"row and count wrap": func(b *sliceRunner) {
			b.slice.Tasks[0].Row, b.slice.Tasks[0].Count = 10,
				math.MaxUint32-9
		},
		"column":                   func(b *sliceRunner) { b.slice.Tasks[0].Column = 4 },
		"dense place":              func(b *sliceRunner) { b.slice.Layout.Dense = uint64(len(b.mem.Output)) },
		"dense place wraps":        func(b *sliceRunner) { b.slice.Layout.Dense = huge - 63 },
		"dense not aligned":        func(b *sliceRunner) { b.slice.Layout.Dense = 4 },
		"lengths place":            func(b *sliceRunner) { b.slice.Layout.Lengths = uint64(len(b.mem.Output)) &^ 63 },
		"label place":              func(b *sliceRunner) { b.slice.Layout.Label = huge &^ 63 },
		"values place":             func(b *sliceRunner) { b.slice.Layout.Values += 64 },
		"value cap":                func(b *sliceRunner) { b.slice.ValueCap++ },
		"value cap wraps":          func(b *sliceRunner) { b.slice.ValueCap = 1 << 61 },
		"values above cap":         func(b *sliceRunner) { b.slice.Values = b.slice.ValueCap + 1 },
		"window":                   func(b *sliceRunner) { b.slice.Tasks[1].Window.Len = uint64(len(b.mem.Input)) },
		"window wraps":             func(b *sliceRunner) { b.slice.Tasks[1].Window.Off = huge },
		"window behind the cursor": func(b *sliceRunner) { b.slice.Tasks[1].WindowAt = 1 },
		"window behind the chunk":  func(b *sliceRunner) { b.slice.Tasks[1].WindowAt = b.slice.Tasks[1].ChunkLen + 1 },
		"cursor behind the chunk": func(b *sliceRunner) {
			b.slice.Tasks[1].Cursor.Page = b.slice.Tasks[1].ChunkLen +
				1
		},
		"skip":         func(b *sliceRunner) { b.slice.Tasks[1].Cursor.Skip = huge },
		"seen":         func(b *sliceRunner) { b.slice.Tasks[1].Cursor.Seen = huge },
		"chunk values": func(b *sliceRunner) { b.slice.Tasks[1].Chunk.Values = huge },
		"chunk length": func(b *sliceRunner) { b.slice.Tasks[1].ChunkLen = huge },
		"scratch":      func(b *sliceRunner) { b.slice.Tasks[1].Scratch.Off = uint64(len(b.mem.Scratch)) - 1 },
		"dictionary":   func(b *sliceRunner) { b.slice.Tasks[1].Dict.Len = huge },
		"dictionary not aligned": func(b *sliceRunner) {
			b.slice.Tasks[1].Dict.Off, b.slice.Tasks[1].Dict.Len = 4,
				100
		},
		"no dictionary, but claimed": func(b *sliceRunner) { b.slice.Tasks[1].Cursor.Dict = true },
		"type of another kind":       func(b *sliceRunner) { b.slice.Tasks[1].Chunk.Physical = uint8(format.Double) },
		"list as scalar": func(b *sliceRunner) {
			b.slice.Tasks[0].Chunk.MaxRep, b.slice.Tasks[0].Chunk.ElementDef = 0, 0
		},
		"levels":      func(b *sliceRunner) { b.slice.Tasks[0].Chunk.ElementDef = 9 },
		"type length": func(b *sliceRunner) { b.slice.Tasks[0].Chunk.TypeLength = 1 << 31 },
		"program range": func(b *sliceRunner) {
			b.e, b.slice.Program = engine.New(engine.Options{}), uint64(len(b.mem.Program))+1
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := smallRunner(t, "snappy", "dictionary")
			change(b)
			clear(b.mem.Output)
			state, r := b.execute()
			if name == "no dictionary, but claimed" {
				assert.Equal(t, program.BadData, state, "the dictionary page is met a second time")
			} else {
				assert.Equal(t, program.BadSlice, state)
			}
			assert.NotEmpty(t, r.Message)
			for _, tr := range r.Tasks {
				assert.Zero(t, tr.Rows)
			}
			assert.Equal(t, make([]byte, len(b.mem.Output)), b.mem.Output, "nothing was written")
		})
	}
}

func TestArgumentsRefused(t *testing.T) {
	b := smallRunner(t, "", "")
	for _, args := range [][]byte{nil, {1}, wire.MarshalSlice(&b.slice)[:200], append(wire.MarshalSlice(&b.slice), 0)} {
		clear(b.mem.Result)
		require.Equal(t, program.BadSlice, b.e.Execute(context.Background(), b.mem, args))
		r, err := wire.UnmarshalResult(b.mem.Result)
		require.NoError(t, err)
		require.NotEmpty(t, r.Message)
	}
	// The result range is one byte too small: nothing is executed.
	clear(b.mem.Output)
	b.mem.Result = b.mem.Result[:wire.ResultSize(len(b.slice.Tasks))-1]
	require.Equal(t, program.BadSlice, b.e.Execute(context.Background(), b.mem, wire.MarshalSlice(&b.slice)))
	require.Equal(t, make([]byte, len(b.mem.Output)), b.mem.Output)
	b.mem.Result = nil
	require.Equal(t, program.BadSlice, b.e.Execute(context.Background(), b.mem, nil))
}

func TestProgramRefused(t *testing.T) {
	b := smallRunner(t, "", "")
	good := b.mem.Program
	store := func(code []byte) {
		b.mem.Program, b.slice.Program, b.slice.Digest = code, uint64(len(code)), sha256.Sum256(code)
	}
	for name, code := range map[string][]byte{"empty": {}, "truncated": good[:len(good)-1],
		"altered": append([]byte{9}, good[1:]...)} {
		store(code)
		state, r := b.execute()
		assert.Equal(t, program.BadProgram, state, name)
		assert.NotEmpty(t, r.Message)
	}
	store(good)
	b.slice.Digest[3]++
	state, r := b.execute()
	assert.Equal(t, program.BadProgram, state)
	assert.Contains(t, r.Message, "store the program first")
	b.slice.Digest[3]--
	b.mem.Program, b.slice.Program = make([]byte, program.MaxSize+1), program.MaxSize+1
	state, r = b.execute()
	assert.Equal(t, program.BadProgram, state)
	assert.Contains(t, r.Message, "want at most", "it is neither copied nor hashed")
	store(good)
	state, _ = b.execute()
	assert.Equal(t, program.Done, state)

	// The engine has kept the program that the digest names. The content of the range does not matter now.
	b.mem.Program = nil
	state, _ = b.execute()
	assert.Equal(t, program.Done, state)

	var units []program.UnitRef
	for _, u := range engine.Units() {
		if u.Unit != sigridhash.Unit {
			units = append(units, u)
		}
	}
	b.mem.Program = good
	b.e = engine.New(engine.Options{Units: units})
	state, r = b.execute()
	assert.Equal(t, program.BadProgram, state)
	assert.Contains(t, r.Message, "sigrid_hash")
}

func TestProgramsAreKeptByUse(t *testing.T) {
	var all []*sliceRunner
	e := engine.New(engine.Options{Programs: 2})
	for i := range 3 {
		data, p := benchmarkProgram(t, 10, 2, 1, 0, 4+i, true, "", "")
		p.Columns[0].Name = string(rune('a' + i))
		b := newSliceRunner(t, e, data, withName(p, "cat_00"), 10)
		all = append(all, b)
	}
	run := func(i int) program.State {
		s := wire.MarshalSlice(&all[i].slice)
		return e.Execute(context.Background(), all[i].mem, s)
	}
	for i := range 3 {
		all[i].slice.Digest = sha256.Sum256(all[i].mem.Program)
	}
	require.Equal(t, program.Done, run(0))
	require.Equal(t, program.Done, run(1))
	require.Equal(t, program.Done, run(0))
	require.Equal(t, program.Done, run(2)) // drops 1
	for i := range 3 {
		all[i].mem.Program = nil
	}
	require.Equal(t, program.Done, run(0))
	require.Equal(t, program.BadSlice, run(1), "the range holds no program of that length")
	require.Equal(t, program.Done, run(2))
}

// withName gives a column its earlier name; equal programs have the same digest.
func withName(p *program.Program, name string) *program.Program {
	add := float32(p.Columns[0].Name[0])
	p.Columns[0].Name = name
	for i := range p.Columns {
		for j := range p.Columns[i].Sinks {
			for k, op := range p.Columns[i].Sinks[j].Ops {
				if _, ok := op.(log.Op); ok {
					p.Columns[i].Sinks[j].Ops[k] = log.Op{Add: add}
				}
			}
		}
	}
	return p
}

func TestDataRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *sliceRunner)
		state  program.State
		want   string
	}{
		"crc": {func(b *sliceRunner) { flipBit(b, 0, -1) }, program.BadData,
			`column "cat_00": page 1 at byte`},
		"header": {func(b *sliceRunner) { flipBit(b, 0, 0) }, program.BadData,
			`column "cat_00": page 0 at byte 0`},
		"codec": {func(b *sliceRunner) { b.slice.Tasks[2].Chunk.Codec = uint8(format.LZO) },
			program.NoSupport, "LZO"},
		"type": {func(b *sliceRunner) { b.slice.Tasks[2].Chunk.Physical = 8 }, program.NoSupport, "type 8"},
		"length of INT96": {func(b *sliceRunner) { b.slice.Tasks[2].Chunk.Physical = uint8(format.Int96) },
			program.BadSlice, "INT96"},
		"fewer values": {func(b *sliceRunner) { b.slice.Tasks[2].Chunk.Values = 9 }, program.BadData,
			"10 values, the chunk has 9"},
		"more values": {func(b *sliceRunner) {
			b.slice.Tasks[2].Chunk.Values, b.slice.Tasks[2].Cursor.Skip = 11,
				1
		}, program.BadData, "ends after 10 of 11"},
		"rows behind the last": {func(b *sliceRunner) { b.slice.Tasks[2].Cursor.Skip = 1 }, program.BadData,
			"1 rows are wanted"},
		"chunk cut": {func(b *sliceRunner) {
			b.slice.Tasks[2].ChunkLen--
		}, program.BadData, "the chunk has"},
	} {
		t.Run(name, func(t *testing.T) {
			b := smallRunner(t, "snappy", "dictionary")
			c.change(b)
			state, r := b.execute()
			assert.Equal(t, c.state, state)
			assert.Contains(t, r.Message, c.want)
		})
	}
}

// flipBit changes a byte of a task's window. A negative place counts from the window's end.
func flipBit(b *sliceRunner, task, at int) {
	w := b.slice.Tasks[task].Window
	b.mem.Input = bytes.Clone(b.mem.Input)
	if at < 0 {
		at += int(w.Len)
	}
	b.mem.Input[int(w.Off)+at] ^= 0x40
}

// TestNeedsAreExact checks that Need is exact: Need bytes are enough, and one byte less is not.
func TestNeedsAreExact(t *testing.T) {
	b := smallRunner(t, "snappy", "dictionary")
	task := &b.slice.Tasks[0]
	for _, c := range []struct {
		state program.State
		field *uint64
	}{{program.MoreDict, &task.Dict.Len}, {program.MoreScratch, &task.Scratch.Len}, {program.MoreInput,
		&task.Window.Len}, {program.MoreOutput, &b.slice.ValueCap}} {
		t.Run(c.state.String(), func(t *testing.T) {
			full := *c.field
			defer func() { *c.field = full }()
			*c.field = 0
			if c.state == program.MoreOutput {
				*c.field = 1
			}
			for range 100 {
				b.slice.Tasks[0].Cursor = program.Cursor{}
				state, r := b.execute()
				if state == program.Done {
					return
				}
				require.Equal(t, c.state, state, r.Message)
				need := r.Tasks[0].Need
				require.Positive(t, need)
				if c.state == program.MoreDict || c.state == program.MoreScratch {
					*c.field = need - 1
					state, _ = b.execute()
					require.Equal(t, c.state, state)
				}
				if c.state == program.MoreInput {
					need += r.Tasks[0].Cursor.Page // counts from there
				}
				*c.field = need
			}
			require.Fail(t, "never enough")
		})
	}
}

// TestUnpackedPageStays checks that the engine uses a page that the last slice left unpacked, and only if it is the
// page at the cursor.
func TestUnpackedPageStays(t *testing.T) {
	data, p := benchmarkProgram(t, 40, 1, 1, 0, 4, true, "snappy", "")
	b := newSliceRunner(t, engine.New(engine.Options{}), data, p, 10)
	state, r := b.execute()
	require.Equal(t, program.Done, state)
	require.NotZero(t, r.BytesIn)
	for i := range r.Tasks {
		require.True(t, r.Tasks[i].Cursor.Unpacked)
		require.EqualValues(t, 10, r.Tasks[i].Cursor.Skip)
		b.slice.Tasks[i].Cursor = r.Tasks[i].Cursor
	}
	want := func() []byte {
		state, r := b.execute()
		require.Equal(t, program.Done, state)
		require.Zero(t, r.BytesIn, "pages were unpacked again")
		return bytes.Clone(b.mem.Output)
	}()
	// A flag without the page behind it.
	clear(b.mem.Scratch)
	state, r = b.execute()
	require.Equal(t, program.Done, state)
	require.NotZero(t, r.BytesIn)
	require.Equal(t, want, b.mem.Output)
	// The page of another window.
	b.mem.Scratch[chunk.TagBytes] ^= 1
	state, r = b.execute()
	require.Equal(t, program.Done, state)
	require.NotZero(t, r.BytesIn)
	require.Equal(t, want, b.mem.Output)
}

// TestLongLists checks that a list beyond the engine's bound is refused with the column's name, and that shorter
// lists pass, even if only a few rows fit into a block.
func TestLongLists(t *testing.T) {
	long := make([]any, 3000)
	for i := range long {
		long[i] = int64(i)
	}
	rows := []any{[]any{int64(1)}, long, nil, []any{}, long, []any{int64(2)}}
	for len(rows) < 200 {
		rows = append(rows, []any{int64(3)})
	}
	for range 20 {
		rows = append(rows, long)
	}
	c := testColumn{name: "c", physical: format.Int64, list: true, optional: true, rows: rows}
	data := writeFile(t, []testColumn{c}, layout{groupRows: 1000, batchRows: 1000, pageBytes: 1 << 20, version: 1})
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1},
		Columns: []program.Column{{Name: "c", Kind: program.Int64, List: true,
			Sinks: []program.Sink{{To: program.ToSparse}}}}}
	for bound, ok := range map[int]bool{2900: false, 3000: true, 100000: true} {
		h := newHost(engine.New(engine.Options{MaxList: bound, BlockRows: 64}), p, readFooter(t, data), data, 1)
		h.wholeChunks = true
		got, err := h.miniBatch(0, len(rows))
		if !ok {
			var bad *sliceFailure
			require.ErrorAs(t, err, &bad)
			require.Equal(t, program.NoSupport, bad.state)
			require.ErrorContains(t, err, "leave the column out, or write shorter values or lists")
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 3000, got.Lengths[1])
		require.Len(t, got.Values, 22*3000+2+194)
	}
}

func TestContextEnds(t *testing.T) {
	b := smallRunner(t, "", "")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	clear(b.mem.Output)
	require.Equal(t, program.Idle, b.e.Execute(ctx, b.mem, wire.MarshalSlice(&b.slice)))
	require.Equal(t, make([]byte, len(b.mem.Output)), b.mem.Output)
	// The walk over the page headers, which comes first and would find that bytes are missing, ends too.
	b.slice.Tasks[0].Window.Len = 1
	state, _ := b.execute()
	require.Equal(t, program.MoreInput, state)
	require.Equal(t, program.Idle, b.e.Execute(ctx, b.mem, wire.MarshalSlice(&b.slice)))
}

// askedContext counts how often somebody asks whether it has ended.
type askedContext struct {
	context.Context
	asked *int
}

func (c askedContext) Err() error {
	*c.asked++
	return nil
}

// TestContextIsAskedAtEveryPage, also at those without values between the two pages of a row.
func TestContextIsAskedAtEveryPage(t *testing.T) {
	const between = 1000
	c := testColumn{name: "c", physical: format.Int64, list: true, rows: []any{[]any{int64(1), int64(2), int64(3)}}}
	e := c.entries()
	data := c.page(e[:1], 1, false)
	for range between {
		data = append(data, pageHeaderBytes(1, 0, nil, false, func(*thrift) {})...)
	}
	data = append(data, c.page(e[1:], 1, false)...)
	l := format.Leaf{Path: "c", Name: "c", Physical: c.physical, List: true, MaxDef: 1, MaxRep: 1, RepDef: 1}
	f := &format.File{Rows: 1, Leaves: []format.Leaf{l}, RowGroups: []format.RowGroup{{Rows: 1,
		Columns: []format.Chunk{{Compressed: int64(len(data)), NumValues: int64(len(e))}}}}}
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1}, Columns: []program.Column{
		{Name: "c", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse}}}}}
	h, asked := newHost(engine.New(engine.Options{}), p, f, data, 1), 0
	h.wholeChunks, h.firstCapacity, h.ctx = true, 3, askedContext{context.Background(), &asked}
	got, err := h.miniBatch(0, 1)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, got.Values)
	assert.GreaterOrEqual(t, asked, between)
}

// TestThreads checks that engine threads share only programs.
func TestThreads(t *testing.T) {
	data, p := benchmarkProgram(t, 200, 3, 3, 1, 16, true, "snappy", "dictionary")
	e := engine.New(engine.Options{})
	want := newSliceRunner(t, e, data, p, 50)
	var outputs [][]byte
	for range 4 {
		want.nextBatch()
		outputs = append(outputs, bytes.Clone(want.mem.Output))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			b := newSliceRunner(t, e, data, p, 50)
			for i := range 8 {
				b.nextBatch()
				assert.Equal(t, outputs[i%4][:b.slice.Layout.Values], b.mem.Output[:b.slice.Layout.Values])
			}
		})
	}
	wg.Wait()
}
