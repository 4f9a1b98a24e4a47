package engine_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// lackColumns makes a program read some columns that no file has, and marks others that a file has as absent elsewhere.
// The leaves of a map are absent together.
func lackColumns(rng *rand.Rand, p *program.Program) {
	for i := 0; i < len(p.Columns); {
		n := 1
		for i+n < len(p.Columns) && p.Columns[i].LeafPart().OfMap() && p.Columns[i+n].LeafPart().OfMap() &&
			p.Columns[i+n].LeafPart().Continues() {
			n++
		}
		choice := rng.IntN(3)
		for k := i; k < i+n; k++ {
			if choice > 0 {
				p.Columns[k].Absent = true
			}
			if choice > 1 {
				p.Columns[k].Name = "absent." + p.Columns[k].Name
			}
		}
		i += n
	}
}

// absentProgram reads a column of each shape, all of which the file lacks.
func absentProgram() *program.Program {
	fill := func(to program.Dest, index uint32) []program.Sink {
		return []program.Sink{{To: to, Index: index, Ops: []program.Op{fillnull.Op{Int: 7, Float: 0.5}}}}
	}
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 4, Dense: 3, Weights: true}}
	hashed := []program.Op{hashbytes.Op{}, fillnull.Op{Int: -3}}
	p.Columns = []program.Column{
		{Name: "id", Kind: program.Int64, Sinks: fill(program.ToSparse, 0)},
		{Name: "ids", Kind: program.Int64, List: true, Sinks: []program.Sink{{To: program.ToSparse, Index: 1}}},
		{Name: "text", Kind: program.Bytes, Sinks: []program.Sink{{To: program.ToSparse, Index: 2, Ops: hashed}}},
		{Name: "map.key", Kind: program.Int64, Part: program.MapKeys},
		{Name: "map.value", Kind: program.Int64, List: true, Part: program.MapValues,
			Sinks: []program.Sink{{To: program.ToSparse, Index: 3}}, Picks: []program.Pick{{Key: 5, Scored: true}}},
		{Name: "map.score", Kind: program.Float32, List: true, Part: program.MapScores},
		{Name: "rate", Kind: program.Float32, Sinks: fill(program.ToDense, 0)},
		{Name: "embedding", Kind: program.Float32, List: true, Sinks: []program.Sink{{To: program.ToDense, Index: 1,
			Ops: []program.Op{fixedlength.Op{Length: 2, Pads: true, Pad: 9}}}}},
	}
	for i := range p.Columns {
		p.Columns[i].Absent = true
	}
	return p
}

// TestAllColumnsAbsent checks a file that has none of a program's columns.
func TestAllColumnsAbsent(t *testing.T) {
	data, _ := benchmarkProgram(t, 10, 1, 0, 0, 0, false, "", "")
	f := readFooter(t, data)
	p := absentProgram()
	require.NoError(t, p.Validate())
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	want, err := ref.MiniBatch(2, 3)
	require.NoError(t, err)
	assert.Equal(t, []float32{0.5, 9, 9, 0.5, 9, 9, 0.5, 9, 9}, want.Dense)
	assert.Equal(t, []int32{1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0}, want.Lengths)
	assert.Equal(t, []int64{7, 7, 7, -3, -3, -3}, want.Values)
	got, err := newHost(engine.New(engine.Options{BlockRows: 2}), p, f, data, 1).miniBatch(2, 3)
	require.NoError(t, err)
	requireSame(t, want, got)
}

// TestLongAbsentChunk checks a row behind more rows than a page of an absent chunk stands for, and that a cursor far
// behind the chunk ends the slice at once.
func TestLongAbsentChunk(t *testing.T) {
	const rows = 5<<24 + 10
	b := absentRunner(t, rows)
	b.slice.Tasks[0].Cursor.Skip = rows - 10
	state, r := b.execute()
	require.Equal(t, program.Done, state, r.Message)
	assert.Equal(t, program.Cursor{Seen: rows, Ordinal: 1}, r.Tasks[0].Cursor, "behind the chunk's last row")

	b = absentRunner(t, 1<<61)
	b.slice.Tasks[0].Cursor.Skip = 1 << 62
	state, r = b.execute()
	require.Equal(t, program.BadData, state)
	assert.Contains(t, r.Message, "the chunk ends")
}

// absentRunner returns a runner of one task of ten rows, of a column whose chunk is absent and has the given rows.
func absentRunner(t *testing.T, rows uint64) *sliceRunner {
	b := smallRunner(t, "", "")
	p, err := operator.Unmarshal(b.mem.Program)
	require.NoError(t, err)
	column := len(p.Columns) - 1
	c := &p.Columns[column]
	c.Absent = true
	for i := range c.Sinks {
		c.Sinks[i].Ops = append([]program.Op{fillnull.Op{}}, c.Sinks[i].Ops...)
	}
	b.mem.Program = wire.Marshal(p)
	b.slice.Digest, b.slice.Program = sha256.Sum256(b.mem.Program), uint64(len(b.mem.Program))
	b.slice.Tasks = []program.Task{{Column: uint32(column), Count: 10,
		Chunk: program.ChunkType{Absent: true, Values: rows}}}
	return b
}

// TestAbsentChunkRefused checks that an absent chunk has no bytes, no type and no dictionary, and that its column may
// be absent.
func TestAbsentChunkRefused(t *testing.T) {
	for name, change := range map[string]func(task *program.Task){
		"a type":       func(task *program.Task) { task.Chunk.Physical = uint8(format.Float) },
		"a codec":      func(task *program.Task) { task.Chunk.Codec = 1 },
		"levels":       func(task *program.Task) { task.Chunk.MaxDef = 1 },
		"a length":     func(task *program.Task) { task.ChunkLen = 1 },
		"a dictionary": func(task *program.Task) { task.Cursor.Dict = true },
		"a page":       func(task *program.Task) { task.Cursor.Unpacked = true },
		"a place":      func(task *program.Task) { task.ChunkLen, task.Cursor.Page = 1, 1 },
		"too many":     func(task *program.Task) { task.Chunk.Values = 1 << 63 },
		"a column that is never absent": func(task *program.Task) {
			task.Column = 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := absentRunner(t, 10)
			change(&b.slice.Tasks[0])
			state, r := b.execute()
			assert.Equal(t, program.BadSlice, state, r.Message)
		})
	}
	b := absentRunner(t, 9)
	state, r := b.execute()
	assert.Equal(t, program.BadData, state)
	assert.Contains(t, r.Message, "the chunk ends, 1 rows are wanted still")
	b = absentRunner(t, 10)
	state, r = b.execute()
	assert.Equal(t, program.Done, state, r.Message)
}
