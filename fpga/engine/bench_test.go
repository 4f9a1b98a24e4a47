package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// logSpaced returns the borders of the pipeline's log_spaced.
func logSpaced(from, to float64, count int) []float32 {
	b := make([]float32, count)
	for i := range b {
		b[i] = float32(math.Exp(math.Log(from) + float64(i)*(math.Log(to)-math.Log(from))/float64(count-1)))
	}
	return b
}

// benchmarkProgram makes a file and a program like RM1's (Criteo: 13 dense int32, 26 sparse int64, 13 generated) or
// like RM2's to RM5's (504 dense float32, 42 lists, some generated).
func benchmarkProgram(t testing.TB, rows, dense, sparse, generated, borders int, lists bool, codec,
	encoding string) ([]byte,
	*program.Program) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := &program.Program{Source: program.Parquet}
	p.Output = program.Output{Label: true, Dense: uint32(dense), Keys: uint32(sparse + generated), Fixed: !lists}
	var cols []testColumn
	hash := sigridhash.Op{Max: 500_000}
	var tail, head []program.Column
	for i := range sparse {
		c := testColumn{name: fmt.Sprintf("cat_%02d", i), physical: format.Int64, list: lists, optional: true,
			encoding: encoding, codec: codec, rows: make([]any, rows)}
		ops := []program.Op{hash}
		if !lists {
			ops = []program.Op{fillnull.Op{}, hash}
		}
		for r := range c.rows {
			switch {
			case lists:
				list := make([]any, rng.IntN(41))
				for k := range list {
					list[k] = rng.Int64N(1 << 31)
				}
				c.rows[r] = list
			case rng.IntN(30) > 0:
				c.rows[r] = rng.Int64N(1 << 31)
			}
		}
		cols = append(cols, c)
		head = append(head, program.Column{Name: c.name, Kind: program.Int64, List: lists,
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i), Ops: ops}}})
	}
	b32 := &bucketize.Op{Borders32: logSpaced(1, 1e6, borders)}
	for i := range dense {
		c := testColumn{name: fmt.Sprintf("int_%03d", i), physical: format.Float, optional: true, encoding: encoding,
			codec: codec, rows: make([]any, rows)}
		kind := program.Float32
		conv := []program.Op{fillnull.Op{}}
		if !lists {
			c.physical, kind = format.Int32, program.Int64
		}
		for r := range c.rows {
			if rng.IntN(4) > 0 {
				v := math.Exp(rng.NormFloat64()*3 + 3)
				if lists {
					c.rows[r] = float32(v)
				} else {
					c.rows[r] = int64(int32(min(v, 1e9)) - 1)
				}
			}
		}
		cols = append(cols, c)
		ops := append([]program.Op{}, conv...)
		ops = append(ops, clamp.Op{IntHi: math.MaxInt64, FloatHi: math.Inf(1)})
		bucket := append([]program.Op{}, conv...)
		if !lists {
			ops = append(ops, convert.Op{To: program.Float32})
			bucket = append(bucket, convert.Op{To: program.Float32})
		}
		pc := program.Column{Name: c.name, Kind: kind,
			Sinks: []program.Sink{{To: program.ToDense, Index: uint32(i), Ops: append(ops, log.Op{Add: 1})}}}
		if i < generated {
			pc.Sinks = append(pc.Sinks, program.Sink{To: program.ToSparse, Index: uint32(sparse + i),
				Ops: append(bucket, b32, hash)})
			head = append(head, pc)
		} else {
			tail = append(tail, pc)
		}
	}
	label := testColumn{name: "label", physical: format.Int32, rows: make([]any, rows), encoding: encoding,
		codec: codec}
	for r := range label.rows {
		label.rows[r] = rng.Int64N(2)
	}
	cols = append(cols, label)
	tail = append(tail, program.Column{Name: "label", Kind: program.Int64,
		Sinks: []program.Sink{{To: program.ToLabel, Ops: []program.Op{convert.Op{To: program.Float32}}}}})
	p.Columns = append(head, tail...)
	require.NoError(t, p.Validate())
	return writeFile(t, cols, layout{groupRows: rows, batchRows: 1000, pageBytes: 1 << 20, version: 1}), p
}

// sliceRunner is a host with the whole file in memory. It runs one slice of all columns for each mini-batch, and
// keeps the cursors.
type sliceRunner struct {
	t      testing.TB
	e      *engine.Engine
	mem    engine.Memory
	slice  program.Slice
	start  []program.Task
	args   []byte
	result program.Result
	rows   int
	at     int
	stats  program.Result
}

func newSliceRunner(t testing.TB, e *engine.Engine, data []byte, p *program.Program, batch int) *sliceRunner {
	f := readFooter(t, data)
	code := wire.Marshal(p)
	b := &sliceRunner{t: t, e: e, rows: int(f.RowGroups[0].Rows)}
	b.mem = engine.Memory{Program: code, Input: data}
	b.slice = program.Slice{Digest: sha256.Sum256(code), Program: uint64(len(code)), Rows: uint32(batch),
		Layout: p.Output.Layout(uint32(batch))}
	b.slice.ValueCap = uint64(batch) * uint64(p.Output.Keys) * 24
	if p.Output.Fixed {
		b.slice.ValueCap = uint64(batch) * uint64(p.Output.Keys)
	}
	if p.Output.Weights {
		size := p.Output.Size(uint32(batch), b.slice.ValueCap)
		b.slice.Layout, b.slice.ValueCap = p.Output.LayoutIn(uint32(batch), size)
		b.mem.Output = make([]byte, size)
	} else {
		b.mem.Output = make([]byte, b.slice.Layout.Values+b.slice.ValueCap*p.Output.IDs.Bytes())
	}
	b.mem.Result = make([]byte, wire.ResultSize(len(p.Columns)))
	const room = 4 << 20
	b.mem.Dict, b.mem.Scratch = make([]byte, room*len(p.Columns)), make([]byte, room*len(p.Columns))
	for i := range p.Columns {
		l, ok := f.Leaf(p.Columns[i].Name)
		require.True(t, ok)
		c := f.RowGroups[0].Columns[l.Index]
		b.slice.Tasks = append(b.slice.Tasks, program.Task{Column: uint32(i), Count: uint32(batch),
			Chunk: program.ChunkType{Physical: uint8(l.Physical), Codec: uint8(c.Codec), MaxDef: l.MaxDef,
				MaxRep:     l.MaxRep,
				ElementDef: l.RepDef, EntryDef: l.EntryDef, Unsigned: l.Unsigned, BitWidth: uint8(l.BitWidth),
				Values: uint64(c.NumValues)},
			Window: program.Span{Off: uint64(c.Offset), Len: uint64(c.Compressed)}, ChunkLen: uint64(c.Compressed),
			Dict:    program.Span{Off: uint64(room * i), Len: room},
			Scratch: program.Span{Off: uint64(room * i), Len: room}})
	}
	b.start = append([]program.Task{}, b.slice.Tasks...)
	return b
}

// nextBatch runs the next mini-batch. After the last row it begins again with the first.
func (b *sliceRunner) nextBatch() {
	if b.at+int(b.slice.Rows) > b.rows {
		copy(b.slice.Tasks, b.start)
		b.at = 0
	}
	b.args = wire.AppendSlice(b.args[:0], &b.slice)
	if state := b.e.Execute(context.Background(), b.mem, b.args); state != program.Done {
		r, err := wire.UnmarshalResult(b.mem.Result)
		b.t.Fatal(state, r, err)
	}
	if err := wire.DecodeResult(&b.result, b.mem.Result); err != nil {
		b.t.Fatal(err)
	}
	for i := range b.result.Tasks {
		b.slice.Tasks[i].Cursor = b.result.Tasks[i].Cursor
	}
	b.at += int(b.slice.Rows)
	b.stats.Decode += b.result.Decode
	b.stats.Transform += b.result.Transform
	b.stats.BytesIn += b.result.BytesIn
	b.stats.BytesOut += b.result.BytesOut
}

func benchmarkModel(b *testing.B, rows, batch int, data []byte, p *program.Program) {
	h := newSliceRunner(b, engine.New(engine.Options{}), data, p, batch)
	h.nextBatch()
	h.stats = program.Result{}
	n := 0
	b.ResetTimer()
	for b.Loop() {
		h.nextBatch()
		n += batch
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(h.stats.Decode)/float64(n), "decode-ns/row")
	b.ReportMetric(float64(h.stats.Transform)/float64(n), "transform-ns/row")
}

func BenchmarkRM1(b *testing.B) {
	for _, c := range []struct{ codec, encoding string }{{"", ""}, {"", "dictionary"}, {"snappy", ""},
		{"zstd", "dictionary"}} {
		b.Run(fmt.Sprintf("codec=%s,encoding=%s", c.codec, c.encoding), func(b *testing.B) {
			const rows = 8192 * 8
			data, p := benchmarkProgram(b, rows, 13, 26, 13, 1024, false, c.codec, c.encoding)
			benchmarkModel(b, rows, 8192, data, p)
		})
	}
}

func BenchmarkRM5(b *testing.B) {
	const rows = 4096 * 2
	data, p := benchmarkProgram(b, rows, 504, 42, 42, 4096, true, "", "")
	benchmarkModel(b, rows, 4096, data, p)
}

// The models of the benchmarks compute what the reference computes.
func TestModels(t *testing.T) {
	for name, m := range map[string]struct {
		dense, sparse, generated, borders int
		lists                             bool
	}{"rm1": {13, 26, 13, 1024, false}, "rm5": {20, 5, 4, 64, true}} {
		t.Run(name, func(t *testing.T) {
			const rows = 150
			data, p := benchmarkProgram(t, rows, m.dense, m.sparse, m.generated, m.borders, m.lists, "snappy",
				"dictionary")
			f := readFooter(t, data)
			ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
			require.NoError(t, err)
			h := newHost(engine.New(engine.Options{}), p, f, data, 1)
			h.wholeChunks = true
			want, err := ref.MiniBatch(20, 100)
			require.NoError(t, err)
			got, err := h.miniBatch(20, 100)
			require.NoError(t, err)
			requireSame(t, want, got)
		})
	}
}
