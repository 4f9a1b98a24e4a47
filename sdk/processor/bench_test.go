package processor_test

import (
	"context"
	"errors"
	"io"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// BenchmarkStream runs forty hashed columns in memory. The time beyond the engine's own time is the planner's.
func BenchmarkStream(b *testing.B) {
	data, prog, schema := processortest.Wide(b, 40, 100_000, 1<<20, pq.Compression(&pq.Uncompressed))
	part := processortest.Open(b, data, true)
	options := cpu.Options{Processor: processor.Options{SLM: 64 << 20, Sync: true}}
	p, err := cpu.New(context.Background(), prog, schema, options)
	require.NoError(b, err)
	defer p.Close()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := p.Open(context.Background(), processor.Run{Partition: part, Rows: part.Rows, Batch: 8192})
		require.NoError(b, err)
		for {
			m, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(b, err)
			m.Release()
		}
		require.NoError(b, s.Close())
	}
	stats := p.Stats()
	b.ReportMetric(float64(stats.Rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(1-float64(stats.Decode+stats.Transform)/float64(b.Elapsed()), "planner-share")
}
