package processor_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// TestLongRowGroup runs a small form of the main job: a row group ten times as large as the memory, which holds one
// page of each column at a time.
func TestLongRowGroup(t *testing.T) {
	const columns, rows, page, memory = 40, 10000, 4 << 10, 320 << 10
	data, prog, schema := processortest.Wide(t, columns, rows, page, pq.Compression(&pq.Uncompressed))
	require.Greater(t, len(data), 9*memory)
	f := processortest.NewFlash(memory, 512)
	part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
	run := processor.Run{Partition: part, Rows: rows, Batch: 32}
	p := f.Start(t, prog, schema, processor.Options{Streams: 1})
	processortest.RequireSame(t, processortest.Reference(t, prog, schema, run), processortest.MiniBatches(t, p, run))
	s := p.Stats()
	assert.Less(t, s.BytesReread, s.BytesPlanned/4)
}

// TestLateStart begins near the end of a chunk, and checks that the pages before the first row are not moved.
func TestLateStart(t *testing.T) {
	const columns, rows, page = 4, 20000, 4 << 10
	for _, codec := range []pq.WriterOption{pq.Compression(&pq.Uncompressed), pq.Compression(&pq.Snappy)} {
		data, prog, schema := processortest.Wide(t, columns, rows, page, codec)
		f := processortest.NewFlash(1<<20, 512)
		part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
		run := processor.Run{Partition: part, First: rows - 100, Rows: 100, Batch: 50}
		p := f.Start(t, prog, schema, processor.Options{Streams: 1})
		processortest.RequireSame(t, processortest.Reference(t, prog, schema, run), processortest.MiniBatches(t, p, run))
		assert.Less(t, p.Stats().BytesPlanned, int64(columns*4*page))
	}
}

// TestAnOffsetIndexThatLies has one bit of an offset index wrong, each in turn. A wrong bit may cost time, and
// never gives other rows.
func TestAnOffsetIndexThatLies(t *testing.T) {
	const columns, rows, page, part = 2, 10000, 4 << 10, 50
	data, prog, schema := processortest.Wide(t, columns, rows, page, pq.Compression(&pq.Uncompressed))
	whole := processortest.Open(t, data, true)
	want := processortest.Reference(t, prog, schema, processor.Run{Partition: whole, Rows: rows, Batch: part})
	index := whole.File.RowGroups[0].Columns[1]
	require.Greater(t, index.OffsetIndexLength, int32(100))
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range index.OffsetIndexLength {
		bad := bytes.Clone(data)
		bad[index.OffsetIndexOffset+int64(i)] ^= 1 << (1 + i%3)
		f := processortest.NewFlash(1<<20, 512)
		p := processortest.Place(t, bad, f.Put(rand.New(rand.NewPCG(1, 1)), bad, 0, 1))
		r := f.Start(t, prog, schema, processor.Options{Streams: 1})
		for range 4 {
			at := rng.IntN(rows / part)
			got := processortest.MiniBatches(t, r, processor.Run{Partition: p, First: int64(at * part), Rows: part, Batch: part})
			processortest.RequireSame(t, want[at:at+1], got)
		}
		require.NoError(t, r.Close())
	}
}

// TestMarks runs the parts of a row group of lists in any order. The pages do not say how many rows they have, so that
// a stream records the rows at which it saw pages begin, and the next stream begins at such a page.
func TestMarks(t *testing.T) {
	const rows, part = 4000, 500
	l := processortest.Layout{Rows: rows, Group: rows, Page: 500, Codec: &pq.Snappy, Seed: 71}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	whole := processor.Run{Partition: processortest.Open(t, data, true), Rows: rows, Batch: 100}
	want := processortest.Reference(t, prog, schema, whole)
	f := processortest.NewFlash(1<<20, 512)
	p := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
	r := f.Start(t, prog, schema, processor.Options{Streams: 1})
	var planned [2]int64
	for pass := range planned {
		before := r.Stats().BytesPlanned
		for _, i := range []int{7, 3, 6, 1, 5, 0, 4, 2} {
			got := processortest.MiniBatches(t, r, processor.Run{Partition: p, First: int64(i * part), Rows: part, Batch: 100})
			processortest.RequireSame(t, want[i*part/100:(i+1)*part/100], got)
		}
		planned[pass] = r.Stats().BytesPlanned - before
	}
	assert.Less(t, planned[1], planned[0]*3/4, "the second time nothing is walked")
}
