package rm

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestBothLoopsAreMeasured runs every workload that has a pipeline of another name, with two threads.
func TestBothLoopsAreMeasured(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, pair := range pairs {
		if isReal(pair.data) {
			continue // TestRealRows
		}
		require.NoError(t, Known(pair.name))
		rows := int64(3000)
		if pair.data == "d2" {
			rows = 200
		}
		results, err := Run(t.Context(), Options{Models: []string{pair.name}, Rows: rows, Time: time.Millisecond,
			Threads: 2})
		require.NoError(t, err, pair.name)
		require.Len(t, results, 1)
		r := results[0]
		assert.Equal(t, pair.name, r.Model)
		assert.Positive(t, r.Rows)
		assert.Zero(t, r.Rows%rows, "whole turns only: %d rows", r.Rows)
		assert.InEpsilon(t, float64(r.Rows)/r.ElapsedSeconds, r.RowsPerSecond, 1e-9)
	}
	for _, name := range []string{"d1", "d2", "criteo-9k"} {
		assert.ErrorContains(t, Known(name), "criteo-512k, criteo-1m", name)
	}
}

// madeBy runs both loops of a pipeline over a partition and returns the mini-batches by their first rows.
func madeBy(t *testing.T, o Options, data, named, path string) map[int64]*tensor.MiniBatch {
	t.Helper()
	spec, err := pipeline.Named(named)
	require.NoError(t, err)
	spec.Batch = 64
	b := &bench{o: o, spec: spec, source: sourceOf(data)}
	defer func() { require.NoError(t, b.close()) }()
	require.NoError(t, b.openPartition(t.Context(), path))
	var lock sync.Mutex // of made: each thread has a goroutine
	made := map[int64]*tensor.MiniBatch{}
	l := &Loops{bench: b, dir: &scratch.Folder{Path: t.TempDir()}}
	defer func() { require.NoError(t, l.closeProcessors()) }()
	err = l.Turn(t.Context(), func(_ int, first int64, mb *tensor.MiniBatch) error {
		lock.Lock()
		defer lock.Unlock()
		made[first] = mb.Clone()
		return mb.Validate()
	})
	require.NoError(t, err)
	return made
}

// TestNamedPipelinesAreTheSameOnEveryEngine runs the pipelines of Piper, MiniPipe and DPP that ship by name over small
// data of their shape.
func TestNamedPipelinesAreTheSameOnEveryEngine(t *testing.T) {
	for _, c := range []struct {
		data, pipeline string
		rows           int64
	}{
		{CriteoTSV, "piper-5k", 130}, {CriteoBinary, "piper-512k", 130}, {CriteoTSV, "piper-1m", 130},
		{"d1", "minipipe-1", 130}, {"d1", "minipipe-2", 130}, {"d2", "minipipe-3", 70}, {"rm2", "dpp", 70},
	} {
		t.Run(c.pipeline+" over "+c.data, func(t *testing.T) {
			dir := t.TempDir()
			path, err := generateData(t.Context(), Options{Rows: c.rows, Progress: func(string) {}}, c.data, c.data, dir)
			require.NoError(t, err)
			options := func(engine host.Engine, commands sdk.Commands) Options {
				return Options{Engine: engine, Threads: 1, Commands: commands}
			}
			want := madeBy(t, options(host.EngineReference, sdk.Vendor), c.data, c.pipeline, path)
			require.Len(t, want, int(c.rows+63)/64)
			for _, o := range []Options{options(host.EngineCPU, sdk.Vendor), options(host.EngineDrive, sdk.Standard)} {
				got := madeBy(t, o, c.data, c.pipeline, path)
				require.Len(t, got, len(want))
				for first, mb := range want {
					name := fmt.Sprintf("%s %v, rows from %d", o.Engine, o.Commands, first)
					require.NotNil(t, got[first], name)
					assert.Equal(t, mb.Label, got[first].Label, name)
					assert.Equal(t, mb.Dense, got[first].Dense, name)
					assert.Equal(t, mb.Lengths, got[first].Lengths, name)
					assert.Equal(t, mb.Values32, got[first].Values32, name)
				}
			}
		})
	}
}

// TestVocabulariesOfPackedRows compares the ids of two threads with the definition, over rows read without Millrace.
func TestVocabulariesOfPackedRows(t *testing.T) {
	const rows, modulus = 2000, 5000
	path, err := generateCriteo(t.TempDir(), CriteoBinary, rows, 5)
	require.NoError(t, err)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	made := madeBy(t, Options{Engine: host.EngineCPU, Threads: 2}, CriteoBinary, "piper-5k", path)
	for column := range text.Sparse {
		indices := map[uint32]int32{}
		for row := range rows {
			key := binary.LittleEndian.Uint32(file[row*text.BinaryRow+4*(1+text.Dense+column):]) % modulus
			if _, ok := indices[key]; !ok {
				indices[key] = int32(len(indices))
			}
			first := row % (rows / 2) / 64 * 64
			if row >= rows/2 {
				first += rows / 2
			}
			mb := made[int64(first)]
			require.NotNil(t, mb)
			require.Equal(t, indices[key], mb.Values32[column*mb.Rows+row-first], "column %d, row %d", column, row)
		}
	}
}
