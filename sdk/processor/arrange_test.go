package processor_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/tensor"
)

// coded has lists behind a dictionary that is large beside a page, and small columns.
type coded struct {
	IDs   []int64 `parquet:"ids,list,dict"`
	Small int64   `parquet:"small,dict"`
	Plain int64   `parquet:"plain"`
}

// memorySweep is a row of memories, in bytes.
type memorySweep struct {
	least, most, step uint64 // most is not one of them
	monotone          bool   // every memory suffices that is larger than a memory that suffices
}

// sweepMemory runs a run in memories of many sizes, some of which suffice. A run ends with the mini-batches of the
// reference or with a MemoryError. The partition of the run lies in memory.
func sweepMemory(
	t *testing.T, sweep memorySweep, data []byte, prog *program.Program, schema *tensor.Schema, run processor.Run,
) {
	want := processortest.Reference(t, prog, schema, run)
	sufficed := 0
	for memory := sweep.least; memory < sweep.most; memory += sweep.step {
		if processortest.Raced && memory>>10%8 > 0 {
			continue
		}
		f := processortest.NewFlash(memory, 512)
		run.Partition = processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
		p, err := processor.Start(t.Context(), f, prog, schema, processor.Options{Streams: 1})
		require.NoError(t, err)
		got, err := processortest.Collect(p, run)
		require.NoError(t, p.Close())
		if err != nil {
			var short *slicer.MemoryError
			require.ErrorAs(t, err, &short, "%d bytes", memory)
			if sweep.monotone {
				require.Zero(t, sufficed, "less than %d bytes sufficed", memory)
			}
			continue
		}
		sufficed++
		processortest.RequireSame(t, want, got)
	}
	assert.NotZero(t, sufficed)
}

// TestMemoryForSomeOfManyPages has several columns with pages and dictionaries of different sizes and memory for some
// of them, with mini-batches of several tasks. With any memory, the run ends with mini-batches or with ErrSLM.
func TestMemoryForSomeOfManyPages(t *testing.T) {
	const rows = 3000
	rng := rand.New(rand.NewPCG(7, 8))
	list := make([]mixed, rows)
	pool := make([]int64, 6000)
	for i := range pool {
		pool[i] = rng.Int64()
	}
	for i := range list {
		for range rng.IntN(16) {
			list[i].Lists = append(list[i].Lists, pool[rng.IntN(len(pool))])
		}
		list[i].Names = []byte(fmt.Sprintf("%08x", rng.Uint32()))
		list[i].Codes, list[i].Few = pool[rng.IntN(6000)], pool[rng.IntN(5)]
	}
	prog := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 6}}
	for k, name := range []string{"few", "lists", "codes", "few", "names", "lists"} {
		c := program.Column{
			Name: name, Kind: program.Int64, List: name == "lists",
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(k)}},
		}
		if name == "names" {
			c.Kind, c.Sinks[0].Ops = program.Bytes, []program.Op{hextoint.Op{}}
		}
		prog.Columns = append(prog.Columns, c)
	}
	schema := &tensor.Schema{IDs: tensor.Int64}
	for k := range 6 {
		schema.Keys = append(schema.Keys, tensor.Key{Name: fmt.Sprint("key_", k), List: true})
	}
	for name, o := range map[string][]pq.WriterOption{
		"packed":   {pq.Compression(&pq.Snappy), pq.DataPageVersion(1), pq.PageBufferSize(2600)},
		"unpacked": {pq.Compression(&pq.Uncompressed), pq.DataPageVersion(2), pq.PageBufferSize(3000)},
	} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			w := pq.NewGenericWriter[mixed](&buf, o...)
			for i := 0; i < rows; i += 20 {
				_, err := w.Write(list[i : i+20])
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			data := buf.Bytes()
			run := processor.Run{Partition: processortest.Open(t, data, true), Rows: rows, Batch: 500}
			sweepMemory(t, memorySweep{least: 24 << 10, most: 700 << 10, step: 3 << 10}, data, prog, schema, run)
		})
	}
}

// mixed has columns whose pages and dictionaries differ in size.
type mixed struct {
	Lists []int64 `parquet:"lists,list,dict"`
	Codes int64   `parquet:"codes,dict"`
	Few   int64   `parquet:"few,dict"`
	Names []byte  `parquet:"names,dict"`
}

// TestMemoryForOneDictionaryOfTwo has memory for one or nearly two dictionaries. If the memory is arranged for all
// columns, a dictionary is lost, and the page that the dictionary is made from must be in memory again. A planner that
// did not count this page would arrange the memory for all columns, find no room, arrange the memory for one column,
// and begin again without end.
func TestMemoryForOneDictionaryOfTwo(t *testing.T) {
	const rows, distinct = 24, 2400
	rng := rand.New(rand.NewPCG(5, 6))
	pool := make([]int64, distinct)
	for i := range pool {
		pool[i] = rng.Int64()
	}
	list := make([]coded, rows)
	for i := range list {
		for k := range distinct / 8 {
			list[i].IDs = append(list[i].IDs, pool[(i*distinct/8+k)%distinct])
		}
		list[i].Small, list[i].Plain = int64(i%3), int64(i)
	}
	ids := func(index uint32) program.Column {
		return program.Column{Name: "ids", Kind: program.Int64, List: true,
			Sinks: []program.Sink{{To: program.ToSparse, Index: index, Ops: []program.Op{firstx.Op{N: int64(index + 1)}}}}}
	}
	prog := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{ids(0), ids(1),
			{Name: "small", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse, Index: 2}}},
			{Name: "plain", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse, Index: 3}}}},
		Output: program.Output{Keys: 4},
	}
	schema := &tensor.Schema{IDs: tensor.Int64}
	for k := range 4 {
		schema.Keys = append(schema.Keys, tensor.Key{Name: fmt.Sprint("key_", k), List: true})
	}
	codecs := map[string]pq.WriterOption{
		"packed": pq.Compression(&pq.Gzip), "unpacked": pq.Compression(&pq.Uncompressed),
	}
	for name, codec := range codecs {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			w := pq.NewGenericWriter[coded](&buf, codec, pq.DataPageVersion(1), pq.PageBufferSize(512))
			for i := range list {
				_, err := w.Write(list[i : i+1])
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			data := buf.Bytes()
			run := processor.Run{Partition: processortest.Open(t, data, true), Rows: rows, Batch: 1}
			sweep := memorySweep{least: 16 << 10, most: 160 << 10, step: 1 << 10, monotone: true}
			sweepMemory(t, sweep, data, prog, schema, run)
		})
	}
}
