package slicer

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// drawFile draws a file of a few columns of any kind.
func drawFile(t *rapid.T) *fakeFile {
	f := &fakeFile{indexed: rapid.Bool().Draw(t, "indexed")}
	size := rapid.Uint64Range(headerBytes, 90_000)
	draw := func(name string) fakeColumn {
		c := fakeColumn{name: name, page: size.Draw(t, "page"),
			pageRows: rapid.Int64Range(1, 900).Draw(t, "rows a page")}
		if rapid.Bool().Draw(t, "packed") {
			c.room = size.Draw(t, "room")
		}
		if rapid.Bool().Draw(t, "coded") {
			c.dictPage, c.dict = size.Draw(t, "dictionary page"), size.Draw(t, "dictionary")
		}
		if rapid.IntRange(0, 3).Draw(t, "last page") == 0 {
			c.lastFactor = 3
		}
		return c
	}
	lists := rapid.Bool().Draw(t, "lists")
	for i := range rapid.IntRange(1, 4).Draw(t, "columns") {
		name := fmt.Sprintf("column_%d", i)
		if lists && rapid.IntRange(0, 3).Draw(t, "map") == 0 {
			values := rapid.Uint64Range(1, 20).Draw(t, "values")
			for _, part := range []program.Part{program.MapKeys, program.MapValues, program.MapScores} {
				c := draw(fmt.Sprintf("%s_%v", name, part))
				if c.part = part; part != program.MapKeys {
					c.values, c.list = values, true
				}
				f.columns = append(f.columns, c)
			}
			continue
		}
		if lists && rapid.IntRange(0, 3).Draw(t, "graph") == 0 {
			for part := range rapid.IntRange(1, 3).Draw(t, "columns of the graph") {
				c := draw(fmt.Sprintf("%s_%d", name, part))
				c.part = program.GraphFirst
				if part > 0 {
					c.part = program.GraphNext
				}
				c.list, c.values = true, rapid.Uint64Range(1, 20).Draw(t, "values")
				f.columns = append(f.columns, c)
			}
			continue
		}
		c := draw(name)
		if lists && rapid.Bool().Draw(t, "list") {
			c.list, c.values = true, rapid.Uint64Range(1, 30).Draw(t, "values")
			c.declared = rapid.Uint64Range(1, 30).Draw(t, "declared")
		}
		f.columns = append(f.columns, c)
	}
	for range rapid.IntRange(1, 3).Draw(t, "row groups") {
		f.groups = append(f.groups, rapid.Int64Range(1, 1500).Draw(t, "rows"))
	}
	f.build()
	return f
}

// maxSlicesWithoutProgress bounds the consecutive slices that write nothing and reach no page. The bound is the sum of
// the slices until portions are placed one by one, of the six needs of each of the three columns that a map or graph
// may have, of the pages in which a task's rows lie (this engine requests one page after another), and of halving the
// rows.
func (r *fakeRun) maxSlicesWithoutProgress() int {
	pages := 0
	for i := range r.engine.file.columns {
		pages = max(pages, r.batchRows/int(r.engine.file.columns[i].pageRows)+2)
	}
	return patience + 4*r.portions + 6*3 + 3*pages + 2*bits.Len(uint(r.batchRows))
}

// maxAttemptsAtSlice bounds the attempts at building one slice: for each measure that is taken once, and for halving
// the rows.
func (r *fakeRun) maxAttemptsAtSlice() int { return 8 + 2*bits.Len(uint(r.batchRows)) }

// run carries out all steps. After each step it checks that the slicer makes progress, or requests something new,
// within the bounds of the package comment.
func (r *fakeRun) run(t require.TestingT) error {
	for {
		step, _, err := r.step()
		if memory := (*MemoryError)(nil); errors.As(err, &memory) {
			require.Greater(t, memory.Need, memory.Have)
			return err
		}
		require.NoError(t, err)
		require.LessOrEqual(t, r.stalled, r.maxSlicesWithoutProgress())
		require.LessOrEqual(t, r.tries, r.maxAttemptsAtSlice(), "attempts at building a slice")
		if _, ok := step.(*End); ok {
			return nil
		}
	}
}

// sizes returns the rows of each mini-batch of a run.
func (r Rows) sizes() (sizes []int) {
	left := int(r.Count)
	if r.FirstBatch > 0 {
		sizes = append(sizes, min(r.FirstBatch, left))
		left -= sizes[0]
	}
	for left > 0 {
		sizes = append(sizes, min(r.Batch, left))
		left -= sizes[len(sizes)-1]
	}
	return sizes
}

// TestEveryFileEnds runs files of many shapes in memories of many sizes. The fake engine checks that every window
// holds the bytes that it is said to hold, and that dictionaries and unpacked pages are where they are said to be.
// Every run ends with all rows or with a MemoryError. With a little more memory than the errors demand, the run ends
// with all rows, in mini-batches of the sizes that were asked for.
func TestEveryFileEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		block := rapid.SampledFrom([]uint64{1, 512, 4096}).Draw(t, "block")
		c := Config{Limits: target.Limits{Engine: "fake", Block: block}}
		c.Limits.Moves = rapid.SampledFrom([]int{0, 4}).Draw(t, "moves")
		c.Options = Options{
			Buffers:  rapid.SampledFrom([]int{1, 4}).Draw(t, "buffers"),
			Coalesce: rapid.SampledFrom([]uint64{1, 0, 1 << 20}).Draw(t, "coalesce"),
			Gap:      rapid.SampledFrom([]uint64{0, 1000}).Draw(t, "gap"),
			FromHost: rapid.Bool().Draw(t, "from the host"),
		}
		c.Limits.HostBlock = rapid.SampledFrom([]uint64{0, 4, 64}).Draw(t, "host block")
		first := rapid.Int64Range(0, f.partition.Rows-1).Draw(t, "first")
		rows := Rows{First: first, Count: f.partition.Rows - first, Batch: rapid.IntRange(1, 700).Draw(t, "batch")}
		rows.FirstBatch = rapid.IntRange(0, rows.Batch).Draw(t, "first batch")
		memory := rapid.Uint64Range(8<<10, 500<<10).Draw(t, "memory")
		spare := rapid.SampledFrom([]uint64{8, 64, 1 << 62}).Draw(t, "spare") // a share of what the error asks for
		require.Equal(t, rows.sizes(), f.end(t, memory, spare, c, rows).sizes)
	})
}

// end makes rows with a memory, and with the memory that the error asks for, and a share of it in addition, until all
// rows are made.
func (f *fakeFile) end(t *rapid.T, memory, spare uint64, c Config, rows Rows) *fakeRun {
	for range 1000 {
		r, err := f.begin(memory, c, rows)
		require.NoError(t, err)
		err = r.run(t)
		var short *MemoryError
		if !errors.As(err, &short) {
			require.NoError(t, err)
			require.EqualValues(t, rows.Count, r.rows)
			return r
		}
		memory = short.Need + short.Need/spare
	}
	require.Fail(t, "it asks for more memory each time")
	return nil
}

// TestWhatAMemoryErrorAsksForIsEnough reads a map whose scores have a large dictionary page, with exactly the memory
// that each error asks for. A read that is joined over the gap between two chunks takes room that the errors do not
// count.
func TestWhatAMemoryErrorAsksForIsEnough(t *testing.T) {
	f := &fakeFile{columns: []fakeColumn{
		{name: "keys", page: 32, pageRows: 1, part: program.MapKeys},
		{name: "values", page: 32, pageRows: 1, part: program.MapValues, list: true, values: 1},
		{
			name: "scores", page: 32, pageRows: 1, part: program.MapScores, list: true, values: 1,
			dictPage: 90_000, dict: 32,
		},
	}, groups: []int64{3}}
	f.build()
	config := Config{Limits: target.Limits{Engine: "fake", Block: 1}, Options: Options{Buffers: 1, Gap: 1000}}
	memory, errs := uint64(8<<10), 0
	for {
		r, err := f.begin(memory, config, Rows{First: 1, Count: 2, Batch: 2})
		require.NoError(t, err)
		if err = r.run(t); err == nil {
			assert.EqualValues(t, 2, r.rows)
			break
		}
		var short *MemoryError
		require.ErrorAs(t, err, &short)
		memory = short.Need
		require.Less(t, errs, 4, "it asks for more memory each time")
		errs++
	}
	assert.Less(t, memory, uint64(93_000))
}

// TestPlentyMovesOnce gives a slicer as much memory as it can use, and the sizes of pages that another slicer
// learned. The chunks must be moved whole, and once.
func TestPlentyMovesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		// Another row group may need a larger output buffer, for which the memory is divided again.
		f.groups = f.groups[:1]
		total := uint64(0)
		for i, c := range f.columns {
			f.columns[i].declared = 0
			for _, rows := range f.groups {
				if c.length(rows) > partition.SmallChunk {
					f.columns[i].page, f.columns[i].dictPage = headerBytes, min(c.dictPage, headerBytes)
				}
				total += f.columns[i].length(rows)
			}
		}
		f.starts = nil
		f.build()
		c := Config{Limits: target.Limits{Engine: "fake"}, Options: Options{Buffers: 1}}
		for range 2 {
			r, err := f.begin(64<<20, c, Rows{Count: f.partition.Rows, Batch: 200})
			require.NoError(t, err)
			require.NoError(t, r.run(t))
			if c.Learned == nil {
				c.Learned = r.slicer.Learned()
				continue
			}
			if r.relocations == 0 {
				require.Zero(t, r.traffic.Reread)
				require.Equal(t, total, r.traffic.Planned)
			}
		}
	})
}

// TestNeededBytesAreTheChunksOnce makes all rows of a file in several runs, whose ends cut row groups, mini-batches and
// pages, in memories that are large or so small that bytes are moved again. The rows need the bytes of every chunk,
// each once. An engine that reads the file where it lies needs none that are moved.
func TestNeededBytesAreTheChunksOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		total, moved := uint64(0), uint64(0)
		for i := range f.columns {
			for _, rows := range f.groups {
				total += f.columns[i].length(rows)
			}
		}
		needed := uint64(0)
		batch := rapid.IntRange(1, 300).Draw(t, "batch")
		direct := rapid.Bool().Draw(t, "direct")
		c := Config{Limits: target.Limits{Engine: "fake"}, Options: Options{Buffers: 1, Direct: direct}}
		for first := int64(0); first < f.partition.Rows; {
			count := rapid.Int64Range(1, f.partition.Rows-first).Draw(t, "rows")
			memory := rapid.Uint64Range(8<<10, 500<<10).Draw(t, "memory")
			r := f.end(t, memory, 8, c, Rows{First: first, Count: count, Batch: batch})
			needed, moved, first = needed+r.needed, moved+r.traffic.Planned, first+count
		}
		if direct {
			require.Zero(t, needed)
			return
		}
		require.Equal(t, total, needed)
		require.GreaterOrEqual(t, moved, needed)
	})
}

// TestGreedyEngines runs engines that ask for one byte more every time, without end. The stream must end with an
// error.
func TestGreedyEngines(t *testing.T) {
	f := &fakeFile{columns: []fakeColumn{{name: "ids", page: 100_000, pageRows: 1000}}, groups: []int64{1000}}
	f.build()
	const guard = maxStalledSlices + 102
	for state, most := range map[program.State]int{
		program.MoreInput: guard, program.MoreDict: guard, program.MoreScratch: guard, program.Idle: 1,
	} {
		r, err := f.begin(8<<20, Config{Limits: target.Limits{Engine: "fake"}}, Rows{Count: 1000, Batch: 100})
		require.NoError(t, err)
		results := 0
		for err == nil && results <= guard {
			var step Step
			if step, err = r.slicer.Next(); err != nil {
				break
			}
			x, ok := step.(*Execute)
			if !ok {
				continue
			}
			results++
			task := &x.Slice.Tasks[0]
			need := task.Window.Len + 1
			if state != program.MoreInput {
				need = max(task.Dict.Len, task.Scratch.Len) + 1
			}
			err = r.slicer.Result(&program.Result{State: state,
				Tasks: []program.TaskResult{{State: state, Need: need}}})
		}
		require.Error(t, err, state)
		assert.LessOrEqual(t, results, most, state)
		var breach *target.EngineError
		var short *MemoryError
		assert.True(t, errors.As(err, &breach) || errors.As(err, &short), "%v: %v", state, err)
	}
}

// TestResultsOutOfTurn hands in results and page indexes that the slicer did not ask for.
func TestResultsOutOfTurn(t *testing.T) {
	f := &fakeFile{columns: []fakeColumn{{name: "ids", page: 4000, pageRows: 1000}}, groups: []int64{1000}}
	f.build()
	r, err := f.begin(1<<20, Config{}, Rows{Count: 1000, Batch: 100})
	require.NoError(t, err)
	require.ErrorIs(t, r.slicer.Result(&program.Result{}), target.ErrEngine)
	r.slicer.Index(nil)
	step, err := r.slicer.Next()
	require.NoError(t, err)
	require.IsType(t, &Execute{}, step)
	assert.Equal(t, []int{0}, step.(*Execute).Columns())
	_, err = r.slicer.Next()
	require.ErrorIs(t, err, target.ErrEngine)
	assert.Equal(t, 1, r.workspace.FreeBuffers(), "after an error no buffer is held")
}

// TestRowsEndBeforeTheirChunk checks that values behind the last row of a list column's chunk are an error. In other
// columns the footer's reader compares the number of values with the number of rows.
func TestRowsEndBeforeTheirChunk(t *testing.T) {
	for _, more := range []int64{0, 1} {
		f := &fakeFile{columns: []fakeColumn{{name: "words", page: 800, pageRows: 100, list: true, values: 4}},
			groups: []int64{200}}
		f.build()
		f.partition.File.RowGroups[0].Columns[0].NumValues += more
		r, err := f.begin(400_000, Config{Options: Options{Buffers: 4}}, Rows{Count: 200, Batch: 100})
		require.NoError(t, err)
		for err == nil {
			var s Step
			if s, err = r.slicer.Next(); err == nil {
				if _, end := s.(*End); end {
					break
				}
				if x, ok := s.(*Execute); ok {
					_, err = r.execute(x)
				}
			}
		}
		if more == 0 {
			require.NoError(t, err)
			continue
		}
		var bad *partition.DataError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, "the row group has 200 rows, which end after 800 of the chunk's 801 values", bad.Message)
	}
}

// TestGrowingBesideLentBuffers lends all buffers but one and lets the output grow: the written part moves, although
// no ring of the larger size fits beside the lent buffers.
func TestGrowingBesideLentBuffers(t *testing.T) {
	f := &fakeFile{columns: []fakeColumn{
		{name: "ids", page: 800, pageRows: 100},
		{name: "words", page: 8000, pageRows: 100, list: true, values: 40, declared: 3},
	}, groups: []int64{2000}}
	f.build()
	r, err := f.begin(400_000, Config{Options: Options{Buffers: 4}}, Rows{Count: 2000, Batch: 100})
	require.NoError(t, err)
	var lent []*Buffer
	moved := 0
	for {
		step, err := r.slicer.Next()
		require.NoError(t, err)
		switch x := step.(type) {
		case *ReadIndex:
		case *Execute:
			_, err := r.execute(x)
			require.NoError(t, err)
		case *Relocate:
			moved++
			for _, m := range x.Moves {
				assert.Equal(t, target.FromMemory, m.Source)
				for _, s := range lent {
					assert.False(t, m.To < s.Span.End() && s.Span.Addr < m.To+m.Len, "it moves over a lent mini-batch")
				}
			}
		case *Done:
			for _, s := range lent {
				assert.False(t, x.Buffer.Span.Addr < s.Span.End() && s.Span.Addr < x.Buffer.Span.End(),
					"buffers overlap")
			}
			if lent = append(lent, x.Buffer); len(lent) > 2 {
				r.workspace.Release(lent[0])
				lent = lent[1:]
			}
		case *End:
			assert.Positive(t, moved)
			return
		}
	}
}

// TestImportsAreTame holds the list of the package's imports: no package that waits, reads, measures time or runs
// concurrently.
func TestImportsAreTame(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var got []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imp := range parsed.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			got = append(got, strings.TrimPrefix(path, "github.com/millrace/millrace/"))
		}
	}
	slices.Sort(got)
	assert.Equal(t, []string{
		"crypto/sha256", "fmt", "fpga/program", "fpga/program/parquetcolumn", "fpga/program/wire",
		"fpga/unit/parquet/format", "fpga/unit/text", "math", "math/bits", "sdk/partition", "sdk/target", "slices", "sort",
		"strings",
	}, slices.Compact(got))
}
