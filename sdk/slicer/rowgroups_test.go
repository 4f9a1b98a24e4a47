package slicer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/target"
)

// codedFile returns a file of two columns with dictionaries and packed pages, in row groups of the given rows.
func codedFile(groups ...int64) *fakeFile {
	f := &fakeFile{columns: []fakeColumn{
		{name: "countries", page: 6000, pageRows: 300, room: 9000, dictPage: 5000, dict: 8000},
		{name: "devices", page: 4000, pageRows: 200, room: 7000, dictPage: 6000, dict: 9000},
	}, groups: groups}
	f.build()
	return f
}

// TestMostRowGroups counts the row groups of the mini-batch that lies in most of them.
func TestMostRowGroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups []int64
		rows   Rows
		want   int
	}{
		{"one row group", []int64{1000}, Rows{Count: 1000, Batch: 300}, 1},
		{"mini-batches end with row groups", []int64{600, 600}, Rows{Count: 1200, Batch: 300}, 1},
		{"one row beyond a row group", []int64{599, 600}, Rows{Count: 1199, Batch: 300}, 2},
		{"the run ends with the row group", []int64{500, 600}, Rows{Count: 500, Batch: 300}, 1},
		{"the run ends one row behind it", []int64{500, 600}, Rows{Count: 501, Batch: 300}, 2},
		{"the run begins behind a row group", []int64{500, 600}, Rows{First: 500, Count: 600, Batch: 300}, 1},
		{"the run begins with its last row", []int64{500, 600}, Rows{First: 499, Count: 601, Batch: 300}, 2},
		{"small row groups", []int64{100, 100, 100, 100, 100}, Rows{Count: 500, Batch: 300}, 3},
		{"small ones, one row off", []int64{99, 100, 100, 100, 101}, Rows{Count: 500, Batch: 300}, 4},
		{"the small ones last", []int64{900, 1, 1, 1, 900}, Rows{Count: 1803, Batch: 300}, 4},
		{"a short first mini-batch ends with a row group", []int64{500, 600},
			Rows{Count: 1100, Batch: 300, FirstBatch: 200}, 1},
		{"a first mini-batch one row shorter", []int64{500, 600}, Rows{Count: 1100, Batch: 300, FirstBatch: 199}, 2},
		{"an empty row group", []int64{300, 0, 300, 100, 200}, Rows{Count: 900, Batch: 300}, 2},
	} {
		assert.Equal(t, c.want, mostRowGroups(codedFile(c.groups...).partition, c.rows), c.name)
	}
}

// TestMostRowGroupsOfAnyRun compares mostRowGroups with the row groups of each mini-batch.
func TestMostRowGroupsOfAnyRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := codedFile(rapid.SliceOfN(rapid.Int64Range(1, 40), 1, 12).Draw(t, "row groups")...).partition
		rows := Rows{First: rapid.Int64Range(0, p.Rows-1).Draw(t, "first"), Batch: rapid.IntRange(1, 60).Draw(t, "batch")}
		rows.Count = rapid.Int64Range(1, p.Rows-rows.First).Draw(t, "count")
		rows.FirstBatch = rapid.IntRange(0, rows.Batch).Draw(t, "first batch")
		most, at := 0, rows.First
		for _, n := range rows.sizes() {
			var b miniBatch
			b.beginRows(at, uint32(n), p)
			most, at = max(most, len(b.rowGroups)), at+int64(n)
		}
		require.Equal(t, most, mostRowGroups(p, rows))
	})
}

// TestFurtherRowGroupsFit divides a memory that holds the dictionaries, unpacked pages and windows of two row groups,
// and one that has a grain less.
func TestFurtherRowGroupsFit(t *testing.T) {
	f := codedFile(500, 500, 500)
	one := footprint{input: 10 * grain, dict: 20 * grain, scratch: 30 * grain}
	for _, c := range []struct {
		memory uint64 // of the areas
		count  int64  // rows of the run
		want   footprint
	}{
		{120 * grain, 1500, footprint{one.input, 2 * one.dict, 2 * one.scratch}},
		{119 * grain, 1500, one},
		{120 * grain, 500, one}, // the run has no further row group
	} {
		r, err := f.begin(1<<20, Config{Limits: target.Limits{Engine: "fake"}}, Rows{Count: c.count, Batch: 300})
		require.NoError(t, err)
		s := r.slicer
		s.batch.beginRows(0, 300, f.partition)
		span := &s.arena.workspace.span
		span.Len = s.arena.workspace.result.Len + c.memory
		assert.Equal(t, c.want, s.memoryDivision.withFurtherRowGroups(one), "%d bytes, %d rows", c.memory, c.count)
	}
}

// TestNextRowGroupMovesOnce runs through several row groups that are alike, in a memory that holds far more than two
// of them, with the sizes of pages that another slicer learned. At most a twentieth of the bytes may be moved again
// where a mini-batch goes on into the next row group.
func TestNextRowGroupMovesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []int64
		for n, rows := rapid.IntRange(2, 8).Draw(t, "row groups"), rapid.Int64Range(300, 3000).Draw(t, "rows"); n > 0; n-- {
			groups = append(groups, rows)
		}
		f := codedFile(groups...)
		total := uint64(0)
		for i := range f.columns {
			total += uint64(len(groups)) * f.columns[i].length(groups[0])
		}
		rows := Rows{Count: f.partition.Rows, Batch: rapid.IntRange(100, 2000).Draw(t, "batch")}
		rows.FirstBatch = rapid.IntRange(0, rows.Batch).Draw(t, "first batch")
		c := Config{Limits: target.Limits{Engine: "fake"}}
		c.Options = Options{Buffers: 1, FromHost: rapid.Bool().Draw(t, "from the host")}
		for range 2 {
			r, err := f.begin(64<<20, c, rows)
			require.NoError(t, err)
			require.NoError(t, r.run(t))
			if c.Learned == nil {
				c.Learned = r.slicer.Learned()
				continue
			}
			require.LessOrEqual(t, r.traffic.Planned, total+total/20)
		}
	})
}
