package rtl_test

import (
	"context"
	"errors"
	"io"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	fpgartl "github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/rtl/cosim"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/rtl"
	"github.com/millrace/millrace/sdk/tensor"
)

// simulate returns a simulation. Without the tools it skips the test, or fails it if they are required.
func simulate(t *testing.T) *rtl.Simulation {
	t.Helper()
	s, err := rtl.New(t.Context(), nil)
	if errors.Is(err, cosim.ErrTools) {
		shared.MissingSimulator(t, err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// withoutFirstX returns the jagged program without its only step that no unit computes.
func withoutFirstX() (*program.Program, *tensor.Schema) {
	p, schema := processortest.Jagged()
	p.Columns[2].Sinks[0].Ops = nil
	return p, schema
}

// TestMiniBatchesAreThoseOfTheCPU makes the mini-batches of splits of a partition by simulated units and by the node's
// CPU.
func TestMiniBatchesAreThoseOfTheCPU(t *testing.T) {
	s := simulate(t)
	for name, of := range map[string]func() (*program.Program, *tensor.Schema){"jagged": withoutFirstX,
		"fixed": processortest.Fixed} {
		for version := 1; version <= 2; version++ {
			data := processortest.WriteParquet(t, processortest.Layout{Rows: 300, Group: 120, Page: 700,
				Codec: &pq.Snappy, Version: version})
			part := processortest.Open(t, data, true)
			prog, schema := of()
			simulated, err := s.NewProcessor(prog, schema)
			require.NoError(t, err)
			onCPU := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20})
			for _, run := range []processor.Run{{Rows: 128, Batch: 64}, {First: 128, Rows: 172, Batch: 50, FirstBatch: 22},
				{First: 299, Rows: 1, Batch: 9}} {
				run.Partition = part
				processortest.RequireSame(t, processortest.MiniBatches(t, onCPU, run),
					processortest.MiniBatches(t, simulated, run), name)
			}
			require.Equal(t, processor.Stats{Rows: 301, Fragments: 7}, simulated.Stats())
			require.NoError(t, simulated.Close())
		}
	}
	require.Positive(t, s.Report().Cycles)
}

// TestTextIsThatOfTheCPU makes the mini-batches of lines of text by simulated units and by the node's CPU.
func TestTextIsThatOfTheCPU(t *testing.T) {
	s := simulate(t)
	for _, policy := range []program.Malformed{program.MalformedFail, program.MalformedDrop, program.MalformedNull} {
		bad := 0
		if policy != program.MalformedFail {
			bad = 7
		}
		data := processortest.TextRows(300, bad)
		part := processortest.OpenText(t, data, program.CriteoTSV, partition.Options{Bytes: data, Every: 100,
			Text: text.Options{Policy: text.Policy(policy)}})
		prog, schema := processortest.Criteo(program.CriteoTSV, policy)
		simulated, err := s.NewProcessor(prog, schema)
		require.NoError(t, err)
		onCPU := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20})
		for _, run := range []processor.Run{{Rows: 128, Batch: 64}, {First: 128, Rows: part.Rows - 128, Batch: 50},
			{First: part.Rows - 1, Rows: 1, Batch: 9}} {
			run.Partition = part
			processortest.RequireSame(t, processortest.MiniBatches(t, onCPU, run), processortest.MiniBatches(t, simulated, run),
				policy)
		}
	}
}

// TestBinaryRowsAreThoseOfTheCPU makes the mini-batches of binary rows, more than one row group of them, by simulated
// units and by the node's CPU.
func TestBinaryRowsAreThoseOfTheCPU(t *testing.T) {
	s := simulate(t)
	data := processortest.BinaryRows(1100)
	part := processortest.OpenText(t, data, program.CriteoBinary, partition.Options{Bytes: data})
	prog, schema := processortest.Criteo(program.CriteoBinary, program.MalformedFail)
	simulated, err := s.NewProcessor(prog, schema)
	require.NoError(t, err)
	onCPU := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 8 << 20})
	for _, run := range []processor.Run{{Rows: 128, Batch: 64}, {First: 1000, Rows: 100, Batch: 50},
		{First: part.Rows - 1, Rows: 1, Batch: 9}} {
		run.Partition = part
		processortest.RequireSame(t, processortest.MiniBatches(t, onCPU, run), processortest.MiniBatches(t, simulated, run),
			run.First)
	}
}

// TestStream keeps a stream to its contract.
func TestStream(t *testing.T) {
	s := simulate(t)
	part := processortest.Open(t, processortest.WriteParquet(t, processortest.Layout{Rows: 7, Group: 10}), true)
	prog, schema := processortest.Fixed()
	p, err := s.NewProcessor(prog, schema)
	require.NoError(t, err)
	for _, run := range []processor.Run{{Rows: 8, Batch: 3}, {First: 7, Rows: 1, Batch: 1}, {Batch: 1},
		{First: -1, Rows: 1, Batch: 1}} {
		run.Partition = part
		_, err := p.Open(t.Context(), run)
		require.ErrorContains(t, err, "a run outside its partition")
	}
	_, err = p.Open(t.Context(), processor.Run{Partition: part, Rows: 7})
	require.ErrorContains(t, err, "a batch of 0 rows, want 1 to")
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := p.Open(ctx, processor.Run{Partition: part, First: 1, Rows: 6, Batch: 4})
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = stream.Next(ended)
	require.ErrorIs(t, err, context.Canceled)
	for _, rows := range []int{4, 2} {
		m, err := stream.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, rows, m.Rows)
		m.Release()
	}
	for range 2 {
		_, err = stream.Next(t.Context())
		require.ErrorIs(t, err, io.EOF)
	}
	require.NoError(t, stream.Close())

	stream, err = p.Open(ctx, processor.Run{Partition: part, Rows: 7, Batch: 4})
	require.NoError(t, err)
	cancel()
	_, err = stream.Next(t.Context())
	require.ErrorIs(t, err, context.Canceled)
	stream, err = p.Open(t.Context(), processor.Run{Partition: part, Rows: 7, Batch: 4})
	require.NoError(t, err)
	require.NoError(t, stream.Close())
	_, err = stream.Next(t.Context())
	require.ErrorContains(t, err, "closed")
}

// TestErrors checks the types of errors: a step that no unit computes, a null in dense, and a page that is damaged.
func TestErrors(t *testing.T) {
	s := simulate(t)
	prog, schema := processortest.Jagged()
	_, err := s.NewProcessor(prog, schema)
	require.ErrorIs(t, err, fpgartl.ErrNotInRTL)
	require.ErrorContains(t, err, `column "list_1": the step firstx`)

	data := processortest.WriteParquet(t, processortest.Layout{Rows: 50, Group: 50})
	nulls, schema := processortest.Fixed()
	ops := &nulls.Columns[3].Sinks[0].Ops
	*ops = (*ops)[1:]
	damaged := append([]byte(nil), data...)
	for i := 100; i < len(data)/2; i += 9 {
		damaged[i] ^= 0x55
	}
	good, _ := processortest.Fixed()
	for name, c := range map[string]struct {
		prog *program.Program
		data []byte
	}{"a null in dense": {nulls, data}, "a damaged page": {good, damaged}} {
		p, err := s.NewProcessor(c.prog, schema)
		require.NoError(t, err)
		run := processor.Run{Partition: processortest.Open(t, c.data, true), Rows: 50, Batch: 50}
		_, err = processortest.Collect(p, run)
		var data *partition.DataError
		require.ErrorAs(t, err, &data, name)
		require.ErrorIs(t, err, partition.ErrData, name)
		require.Equal(t, "part-0.parquet", data.Partition)
	}
}
