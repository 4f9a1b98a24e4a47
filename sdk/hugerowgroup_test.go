package sdk_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

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
		data, prog, schema := processortest.Wide(t, c.columns, c.rows, c.page, pq.Compression(&pq.Snappy))
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
