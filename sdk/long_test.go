package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// wide makes a file of int64 columns in one row group, and the program that reads them all.
func wide(t testing.TB, columns, rows, page int, codec pq.WriterOption) ([]byte, *program.Program, *tensor.Schema) {
	group := pq.Group{}
	prog := &program.Program{Source: program.Parquet, Output: program.Output{Keys: uint32(columns), Fixed: true}}
	schema := &tensor.Schema{IDs: tensor.Int64}
	for i := range columns {
		name := fmt.Sprintf("cat_%02d", i)
		group[name] = pq.Encoded(pq.Leaf(pq.Int64Type), &pq.Plain)
		prog.Columns = append(prog.Columns, program.Column{Name: name, Kind: program.Int64, Sinks: []program.Sink{
			{To: program.ToSparse, Index: uint32(i), Ops: []program.Op{program.SigridHash{Max: 500000}}}}})
		schema.Keys = append(schema.Keys, tensor.Key{Name: name})
	}
	var buf bytes.Buffer
	w := pq.NewWriter(&buf, pq.NewSchema("rows", group), pq.MaxRowsPerRowGroup(1<<40), pq.PageBufferSize(page),
		pq.DataPageStatistics(false), codec)
	rng := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < rows; at += 100 {
		var part []pq.Row
		for range min(100, rows-at) {
			var row pq.Row
			for i := range columns {
				row = append(row, pq.Int64Value(rng.Int64()).Level(0, 0, i))
			}
			part = append(part, row)
		}
		_, err := w.WriteRows(part)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes(), prog, schema
}

// TestLongRowGroup is the main job in small: a row group ten times the memory, in pages, one page a column at a time of
// which fits.
func TestLongRowGroup(t *testing.T) {
	const columns, rows, page, memory = 40, 10000, 4 << 10, 320 << 10
	data, prog, schema := wide(t, columns, rows, page, pq.Compression(&pq.Uncompressed))
	require.Greater(t, len(data), 9*memory)
	f := newFlash(memory, 512)
	part := place(t, data, f.put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
	run := processor.Run{Partition: part, Rows: rows, Batch: 32}
	p := f.start(t, prog, schema, processor.Options{Streams: 1})
	same(t, truth(t, prog, schema, run), all(t, p, run))
	s := p.Stats()
	assert.Less(t, s.BytesReread, s.BytesPlanned/4)
}

// TestLateStart begins near the end of a chunk: the pages before are passed over without being moved.
func TestLateStart(t *testing.T) {
	const columns, rows, page = 4, 20000, 4 << 10
	for _, codec := range []pq.WriterOption{pq.Compression(&pq.Uncompressed), pq.Compression(&pq.Snappy)} {
		data, prog, schema := wide(t, columns, rows, page, codec)
		f := newFlash(1<<20, 512)
		part := place(t, data, f.put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
		run := processor.Run{Partition: part, First: rows - 100, Rows: 100, Batch: 50}
		p := f.start(t, prog, schema, processor.Options{Streams: 1})
		same(t, truth(t, prog, schema, run), all(t, p, run))
		assert.Less(t, p.Stats().BytesPlanned, int64(columns*4*page))
	}
}

// TestAnOffsetIndexThatLies has one bit of an offset index wrong, each in turn. A wrong bit may cost time, and
// never gives other rows.
func TestAnOffsetIndexThatLies(t *testing.T) {
	const columns, rows, page, part = 2, 10000, 4 << 10, 50
	data, prog, schema := wide(t, columns, rows, page, pq.Compression(&pq.Uncompressed))
	whole := open(t, data, true)
	want := truth(t, prog, schema, processor.Run{Partition: whole, Rows: rows, Batch: part})
	index := whole.File.RowGroups[0].Columns[1]
	require.Greater(t, index.OffsetIndexLength, int32(100))
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range index.OffsetIndexLength {
		bad := bytes.Clone(data)
		bad[index.OffsetIndexOffset+int64(i)] ^= 1 << (1 + i%3)
		f := newFlash(1<<20, 512)
		p := place(t, bad, f.put(rand.New(rand.NewPCG(1, 1)), bad, 0, 1))
		r := f.start(t, prog, schema, processor.Options{Streams: 1})
		for range 4 {
			at := rng.IntN(rows / part)
			got := all(t, r, processor.Run{Partition: p, First: int64(at * part), Rows: part, Batch: part})
			same(t, want[at:at+1], got)
		}
		require.NoError(t, r.Close())
	}
}

// TestMarks runs the parts of a row group of lists, whose pages do not say how many rows they have, one after another
// and in any order: what one stream came by the next one begins at.
func TestMarks(t *testing.T) {
	const rows, part = 4000, 500
	data := write(t, layout{rows: rows, group: rows, page: 500, codec: &pq.Snappy, seed: 71})
	prog, schema := jagged()
	want := truth(t, prog, schema, processor.Run{Partition: open(t, data, true), Rows: rows, Batch: 100})
	f := newFlash(1<<20, 512)
	p := place(t, data, f.put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
	r := f.start(t, prog, schema, processor.Options{Streams: 1})
	var planned [2]int64
	for pass := range planned {
		before := r.Stats().BytesPlanned
		for _, i := range []int{7, 3, 6, 1, 5, 0, 4, 2} {
			got := all(t, r, processor.Run{Partition: p, First: int64(i * part), Rows: part, Batch: 100})
			same(t, want[i*part/100:(i+1)*part/100], got)
		}
		planned[pass] = r.Stats().BytesPlanned - before
	}
	assert.Less(t, planned[1], planned[0]*3/4, "the second time nothing is walked")
}

// TestHugeRowGroup is the main job's hardest file at its real size: 64 MiB of memory, a row group of 640 MiB in pages
// of 1 MiB, and a chunk that is one page of 20 MiB. MILLRACE_SWEEP=1 runs it.
func TestHugeRowGroup(t *testing.T) {
	if os.Getenv("MILLRACE_SWEEP") == "" {
		t.Skip("set MILLRACE_SWEEP=1 to run with files of 640 MiB")
	}
	for _, c := range []struct{ columns, rows, page, batch int }{
		{40, 640 << 20 / 40 / 8, 1 << 20, 8192},
		{2, 20 << 20 / 8, 1 << 30, 8192},
	} {
		data, prog, schema := wide(t, c.columns, c.rows, c.page, pq.Compression(&pq.Snappy))
		dev, part := onDrive(t, data, sdk.FilesOptions{SLM: 64 << 20})
		p := startOn(t, dev, prog, schema, processor.Options{})
		s, err := p.Open(context.Background(), processor.Run{Partition: part, Rows: part.Rows, Batch: c.batch})
		require.NoError(t, err)
		rows := 0
		for {
			m, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			rows += m.Rows
			m.Release()
		}
		require.NoError(t, s.Close())
		assert.Equal(t, c.rows, rows)
		t.Logf("%d bytes: %+v", len(data), p.Stats())
		require.NoError(t, p.Close())
	}
}
