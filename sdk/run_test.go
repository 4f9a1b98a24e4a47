package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/tensor"
)

// collect runs a run and returns copies of its mini-batches.
func collect(p sdk.Processor, run sdk.Run) (out []*tensor.MiniBatch, err error) {
	ctx := context.Background()
	s, err := p.Open(ctx, run)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for {
		m, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m.Clone())
		m.Release()
	}
}

// same demands that two runs gave the same mini-batches, bit for bit.
func same(t testing.TB, want, got []*tensor.MiniBatch, msg ...any) {
	t.Helper()
	require.Len(t, got, len(want), msg...)
	for i := range want {
		require.Empty(t, tensor.Diff(want[i], got[i]), append([]any{fmt.Sprintf("mini-batch %d", i)}, msg...)...)
	}
}

// truth is what the reference gives.
func truth(t testing.TB, prog *program.Program, schema *tensor.Schema, run sdk.Run) []*tensor.MiniBatch {
	ref, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	return all(t, ref, run)
}

func onCPU(t testing.TB, prog *program.Program, schema *tensor.Schema, o sdk.Options) sdk.Processor {
	p, err := cpu.New(context.Background(), prog, schema, cpu.Options{Processor: o})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

var layouts = map[string]layout{
	"one row group":          {rows: 3000, group: 1 << 20, page: 4 << 10, seed: 1},
	"small row groups":       {rows: 1500, group: 130, page: 2 << 10, version: 2, seed: 2},
	"snappy":                 {rows: 3000, group: 1100, page: 3 << 10, codec: &pq.Snappy, seed: 3},
	"zstd, v2":               {rows: 2500, group: 2000, page: 1 << 10, codec: &pq.Zstd, version: 2, seed: 4},
	"gzip, one page":         {rows: 2000, group: 1 << 20, page: 1 << 24, codec: &pq.Gzip, seed: 5},
	"one row, lz4":           {rows: 1, group: 10, page: 1 << 10, codec: &pq.Lz4Raw, seed: 6},
	"as many groups as rows": {rows: 40, group: 1, page: 1 << 10, codec: compress.Codec(&pq.Snappy), seed: 7},
}

func TestEnginesAgree(t *testing.T) {
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			data := write(t, l)
			for kind, build := range map[string]func() (*program.Program, *tensor.Schema){"jagged": jagged, "fixed": fixed} {
				prog, schema := build()
				for _, batch := range []int{1, 64, 333, 5000} {
					if batch == 1 && l.rows > 100 {
						continue
					}
					first := int64(min(l.rows-1, 17))
					run := sdk.Run{Partition: open(t, data, true), First: first, Rows: int64(l.rows) - first, Batch: batch}
					want := truth(t, prog, schema, run)
					for _, o := range []sdk.Options{{SLM: 16 << 20}, {SLM: 1 << 20, Sync: true}, {SLM: 200 << 10, Copy: true}} {
						p := onCPU(t, prog, schema, o)
						msg := fmt.Sprintf("%s, batch %d, %+v", kind, batch, o)
						for _, direct := range []bool{true, false} {
							run.Partition = open(t, data, direct)
							got, err := collect(p, run)
							if slm := (*sdk.ErrSLM)(nil); errors.As(err, &slm) && o.SLM > 0 {
								assert.Greater(t, slm.Need, slm.Have)
								continue
							}
							require.NoError(t, err, msg)
							same(t, want, got, msg, direct)
						}
					}
				}
			}
		})
	}
}
