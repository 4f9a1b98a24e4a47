package sdk_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/tensor"
)

// coded has lists behind a dictionary that is large beside a page, and small columns.
type coded struct {
	IDs   []int64 `parquet:"ids,list,dict"`
	Small int64   `parquet:"small,dict"`
	Plain int64   `parquet:"plain"`
}

// TestMemoryForOneDictionaryOfTwo has memory for one or nearly two dictionaries. Arranging the memory for what all columns
// want loses a dictionary, and with it the page that the dictionary is made from has to be in memory again: a planner that
// left that out would arrange memory for all columns, find no room, arrange it for one, and so on without an end.
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
			Sinks: []program.Sink{{To: program.ToSparse, Index: index, Ops: []program.Op{program.FirstX{N: int64(index + 1)}}}}}
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
	for name, codec := range map[string]pq.WriterOption{"packed": pq.Compression(&pq.Gzip), "unpacked": pq.Compression(&pq.Uncompressed)} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			w := pq.NewGenericWriter[coded](&buf, codec, pq.DataPageVersion(1), pq.PageBufferSize(512))
			for i := range list {
				_, err := w.Write(list[i : i+1])
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			data := buf.Bytes()
			did := 0
			for memory := uint64(16 << 10); memory < 160<<10; memory += 1 << 10 {
				if raced && memory>>10%8 > 0 {
					continue
				}
				f := newFlash(memory, 512)
				part := place(t, data, f.put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
				p, err := sdk.Start(context.Background(), f, prog, schema, sdk.Options{Streams: 1})
				require.NoError(t, err)
				run := sdk.Run{Partition: part, Rows: rows, Batch: 1}
				got, err := collect(p, run)
				require.NoError(t, p.Close())
				if err != nil {
					var slm *sdk.ErrSLM
					require.ErrorAs(t, err, &slm, "%d bytes", memory)
					require.Zero(t, did, "less than %d bytes did", memory)
					continue
				}
				did++
				same(t, truth(t, prog, schema, run), got)
			}
			assert.NotZero(t, did)
		})
	}
}
