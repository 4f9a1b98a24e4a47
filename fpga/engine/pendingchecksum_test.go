package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// summed returns a runner of a slice over the first rows of a file. The file's pages, of some hundred rows each, are
// summed while they are read: lists, ids, ids with nulls (which are not lent), and floats.
func summed(t *testing.T, ids program.IDs, limit int64, version int) *sliceRunner {
	const rows = 700
	rng := rand.New(rand.NewPCG(3, 4))
	cols := []testColumn{
		{name: "a", physical: format.Int64, list: true, rows: make([]any, rows)},
		{name: "b", physical: format.Int64, rows: make([]any, rows)},
		{name: "c", physical: format.Int64, optional: true, rows: make([]any, rows)},
		{name: "d", physical: format.Float, rows: make([]any, rows)},
	}
	for r := range rows {
		list := make([]any, rng.IntN(41))
		for i := range list {
			list[i] = rng.Int64()
		}
		cols[0].rows[r], cols[1].rows[r], cols[3].rows[r] = list, rng.Int64(), float32(rng.NormFloat64())
		if r%7 > 0 {
			cols[2].rows[r] = rng.Int64()
		}
	}
	hash := sigridhash.Op{Salt: 5, Max: limit}
	p := &program.Program{Source: program.Parquet, Output: program.Output{Dense: 1, Keys: 4, IDs: ids},
		Columns: []program.Column{
			{Name: "a", Kind: program.Int64, List: true,
				Sinks: []program.Sink{{To: program.ToSparse, Ops: []program.Op{hash}}}},
			{Name: "b", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse, Index: 1,
				Ops: []program.Op{hash}}, {To: program.ToSparse, Index: 2, Ops: []program.Op{hash}}}},
			{Name: "c", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse, Index: 3,
				Ops: []program.Op{hash}}}},
			{Name: "d", Kind: program.Float32, Sinks: []program.Sink{{To: program.ToDense,
				Ops: []program.Op{clamp.Op{FloatHi: math.Inf(1)}, log.Op{Add: 1}}}}},
		}}
	require.NoError(t, p.Validate())
	data := writeFile(t, cols, layout{groupRows: rows, batchRows: 300, pageBytes: 300 * 4, version: version})
	return newSliceRunner(t, engine.New(engine.Options{BlockRows: 64}), data, p, 450)
}

// TestEveryBytesBitIsSummed checks that a wrong bit anywhere in the pages that a slice touches fails the slice by
// the checksum, also behind the slice's last row, and also where wrong levels or counts lead to other faults.
func TestEveryBytesBitIsSummed(t *testing.T) {
	for _, c := range []struct {
		ids     program.IDs
		limit   int64
		version int
	}{{program.IDs32, 500_000, 1}, {program.IDs32, 100, 1}, {program.IDs64, 1 << 40, 1}, {program.IDs32, 500_000, 2}} {
		t.Run(fmt.Sprintf("ids %v below %d, pages of version %d", c.ids, c.limit, c.version), func(t *testing.T) {
			b := summed(t, c.ids, c.limit, c.version)
			state, r := b.execute()
			require.Equal(t, program.Done, state, r.Message)
			for i, task := range b.slice.Tasks {
				cur := r.Tasks[i].Cursor
				touched := cur.Page
				if cur.Skip > 0 {
					require.True(t, cur.Checked)
					touched += uint64(r.Tasks[i].Page)
				}
				chunk := b.mem.Input[task.Window.Off:][:touched]
				pages := 0
				for at := 0; at < len(chunk); pages++ {
					h, n, err := format.ParsePageHeader(chunk[at:])
					require.NoError(t, err)
					payload := chunk[at+n:][:h.Compressed]
					for k := 0; k < len(payload); k += 1 + k%53 {
						payload[k] ^= 1 << (k % 8)
						state, got := b.execute()
						if state != program.BadData ||
							!assert.Contains(t, got.Message,
								fmt.Sprintf("column %q: page %d at byte %d of its chunk: page checksum",
									string(rune('a'+i)), pages, at)) {
							require.Equal(t, program.BadData, state, "byte %d of page %d of task %d", k, pages, i)
						}
						require.False(t, got.Tasks[i].Cursor.Checked)
						require.EqualValues(t, pages, got.Tasks[i].Cursor.Ordinal, "hosts name the cursor's page")
						payload[k] ^= 1 << (k % 8)
					}
					at += n + int(h.Compressed)
				}
				require.Greater(t, pages, 1)
			}
			state, again := b.execute()
			require.Equal(t, program.Done, state, again.Message)
			again.Decode, again.Transform, again.Wait, again.Move = r.Decode, r.Transform, r.Wait, r.Move
			require.Equal(t, r, again)
		})
	}
}

// TestRoomEndsInsideASummedPage checks that a slice that stops inside a page for lack of room has verified the page,
// and that the next slice does not verify it again.
func TestRoomEndsInsideASummedPage(t *testing.T) {
	b := summed(t, program.IDs32, 500_000, 1)
	state, r := b.execute()
	require.Equal(t, program.Done, state, r.Message)
	b.slice.Tasks = b.slice.Tasks[:1]
	b.slice.ValueCap = 100
	state, r = b.execute()
	require.Equal(t, program.MoreOutput, state)
	require.True(t, r.Tasks[0].Cursor.Checked)
	require.NotZero(t, r.Tasks[0].Cursor.Skip)
	task := &b.slice.Tasks[0]
	last := &b.mem.Input[task.Window.Off+uint64(r.Tasks[0].Page)-1]
	*last ^= 1
	state, _ = b.execute()
	require.Equal(t, program.BadData, state)
	task.Row, task.Count, task.Cursor = r.Tasks[0].Rows, 3, r.Tasks[0].Cursor
	b.slice.Values, b.slice.ValueCap = 0, 1000
	state, r = b.execute()
	require.Equal(t, program.Done, state, r.Message)
}
