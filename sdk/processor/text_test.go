package processor_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/slicer"
)

// TestTextAgrees runs text and binary rows from many first rows, from memory and from a device, with little memory.
func TestTextAgrees(t *testing.T) {
	for _, c := range []struct {
		name   string
		source program.Source
		policy program.Malformed
		data   []byte
	}{
		{"text", program.CriteoTSV, program.MalformedFail, processortest.TextRows(1200, 0)},
		{
			"text without a last newline", program.CriteoTSV, program.MalformedFail,
			bytes.TrimRight(processortest.TextRows(1200, 0), "\n"),
		},
		{"malformed rows dropped", program.CriteoTSV, program.MalformedDrop, processortest.TextRows(1000, 7)},
		{"malformed rows null", program.CriteoTSV, program.MalformedNull, processortest.TextRows(1000, 11)},
		{"binary", program.CriteoBinary, program.MalformedFail, processortest.BinaryRows(1200)},
	} {
		t.Run(c.name, func(t *testing.T) {
			prog, schema := processortest.Criteo(c.source, c.policy)
			o := partition.Options{Text: text.Options{Policy: text.Policy(c.policy)}, Every: 100, Bytes: c.data}
			whole := processortest.OpenText(t, c.data, c.source, o)
			require.GreaterOrEqual(t, whole.Rows, int64(1000))
			firsts := []int64{0, 99, 834, whole.Rows - 1}
			if processortest.Raced {
				firsts = firsts[1:3]
			}
			for _, first := range firsts {
				for _, batch := range []int{1, 300} {
					rows := min(whole.Rows-first, int64(3*batch))
					run := processor.Run{Partition: whole, First: first, Rows: rows, Batch: batch, FirstBatch: batch / 3}
					want := processortest.Reference(t, prog, schema, run)
					p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 2 << 20})
					processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run), "in memory", first, batch)

					f := processortest.NewFlash(120<<10, 512)
					o := o
					o.Bytes, o.Extents = nil, f.Put(rand.New(rand.NewPCG(1, 1)), c.data, 0, 3)
					run.Partition = processortest.OpenText(t, c.data, c.source, o)
					got, err := processortest.Collect(f.Start(t, prog, schema, processor.Options{Streams: 1}), run)
					if slm := (*slicer.MemoryError)(nil); batch == 300 && errors.As(err, &slm) {
						assert.Equal(t, -1, slm.RowGroup)
						continue
					}
					require.NoError(t, err)
					processortest.RequireSame(t, want, got, "on a device", first, batch)
				}
			}
		})
	}
}

// TestRealRows runs rows of Criteo as they were published.
func TestRealRows(t *testing.T) {
	data, err := os.ReadFile(shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv"))
	require.NoError(t, err)
	prog, schema := processortest.Criteo(program.CriteoTSV, program.MalformedFail)
	part := processortest.OpenText(t, data, program.CriteoTSV, partition.Options{Bytes: data})
	run := processor.Run{Partition: part, Rows: part.Rows, Batch: 512}
	assert.Equal(t, int64(3000), run.Rows)
	want := processortest.Reference(t, prog, schema, run)
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20})
	processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run))
}

// TestTextErrors opens and runs text partitions that must be refused.
func TestTextErrors(t *testing.T) {
	ctx := context.Background()
	bad := processortest.TextRows(50, 10)
	_, err := partition.Open(ctx, "day_0", bytes.NewReader(bad), int64(len(bad)), program.CriteoTSV,
		partition.Options{})
	require.ErrorIs(t, err, partition.ErrUnreadable)
	require.ErrorIs(t, err, text.ErrFieldCount)
	var row *text.RowError
	require.ErrorAs(t, err, &row)
	assert.Equal(t, int64(10), row.Line)

	part := processortest.OpenText(t, bad, program.CriteoTSV,
		partition.Options{Text: text.Options{Policy: text.Drop}, Bytes: bad})
	assert.Equal(t, int64(50), part.Rows)
	assert.Equal(t, int64(5), part.Index.Dropped)
	assert.Equal(t, sha256.Sum256(bad), [32]byte(part.Describe().Content))
	assert.Equal(t, []int64{50}, part.Describe().RowGroups)

	// The index leaves malformed rows out and the program does not: rows would have other numbers.
	prog, schema := processortest.Criteo(program.CriteoTSV, program.MalformedFail)
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 2 << 20})
	_, err = p.Open(ctx, processor.Run{Partition: part, Rows: 10, Batch: 10})
	require.ErrorIs(t, err, partition.ErrSchema)

	// A file that changed after it was indexed.
	good := processortest.TextRows(50, 0)
	part = processortest.OpenText(t, good, program.CriteoTSV, partition.Options{Bytes: good})
	copy(good[len(good)/2:], "xyz\n")
	_, err = processortest.Collect(p, processor.Run{Partition: part, Rows: 50, Batch: 10})
	var data *partition.DataError
	require.ErrorAs(t, err, &data)
	assert.ErrorIs(t, err, partition.ErrData)
	assert.Positive(t, data.Line)

	rows := processortest.BinaryRows(3)
	_, err = partition.Open(ctx, "day_0", bytes.NewReader(rows), int64(len(rows)-1), program.CriteoBinary,
		partition.Options{})
	require.ErrorIs(t, err, text.ErrPartialRow)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = partition.Open(ended, "day_0", bytes.NewReader(rows), int64(len(rows)), program.CriteoBinary,
		partition.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
