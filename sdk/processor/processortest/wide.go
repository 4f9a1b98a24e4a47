package processortest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/tensor"
)

// Wide makes a file of int64 columns in one row group, and the program that reads all columns.
func Wide(t testing.TB, columns, rows, page int, codec pq.WriterOption) ([]byte, *program.Program, *tensor.Schema) {
	group := pq.Group{}
	prog := &program.Program{Source: program.Parquet, Output: program.Output{Keys: uint32(columns), Fixed: true}}
	schema := &tensor.Schema{IDs: tensor.Int64}
	for i := range columns {
		name := fmt.Sprintf("cat_%02d", i)
		group[name] = pq.Encoded(pq.Leaf(pq.Int64Type), &pq.Plain)
		prog.Columns = append(prog.Columns, program.Column{Name: name, Kind: program.Int64, Sinks: []program.Sink{
			{To: program.ToSparse, Index: uint32(i), Ops: []program.Op{sigridhash.Op{Max: 500000}}}}})
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
