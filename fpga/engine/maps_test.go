package engine_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The engine makes of maps what the reference makes of them, whatever the file, the features, the rows, and the host's
// windows and slices.
func TestMapsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 200).Draw(t, "rows")
		l := layout{
			groupRows: rapid.IntRange(1, 250).Draw(t, "groupRows"), batchRows: rapid.IntRange(1, 100).Draw(t, "batchRows"),
			pageBytes: rapid.SampledFrom([]int{64, 256, 1024, 1 << 20}).Draw(t, "pageBytes"), version: rapid.IntRange(1, 2).Draw(t, "version"),
		}
		batch := rapid.IntRange(1, 150).Draw(t, "batch")
		rng := rand.New(rand.NewPCG(seed, 3))
		cols := randomCols(rng, rapid.IntRange(0, 3).Draw(t, "columns"), rows)
		maps := randomMaps(rng, rapid.IntRange(1, 3).Draw(t, "maps"), rows)
		risky := rapid.IntRange(0, 5).Draw(t, "risky") == 0
		data := writeMaps(t, cols, maps, l)
		f := footer(t, data)
		p := randomProgram(rng, cols, risky, l.groupRows >= rows)
		addMaps(rng, p, maps, f, risky)
		if len(p.Columns) == 0 {
			t.Skip("no column fits a program of fixed lengths")
		}
		require.NoError(t, p.Validate(), p)
		ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
		require.NoError(t, err)
		h := newHost(engine.New(engine.Options{BlockRows: rapid.SampledFrom([]int{1, 7, 64, 0}).Draw(t, "block")}), p, f, data, seed)
		switch rapid.IntRange(0, 3).Draw(t, "host") {
		case 0:
			h.big = true
		case 1:
			h.tiny = true
		}
		for first := 0; first < rows; first += batch {
			n := min(batch, rows-first)
			if rng.IntN(5) == 0 {
				continue
			}
			want, wantErr := ref.MiniBatch(int64(first), n)
			got, err := h.miniBatch(int64(first), n)
			if wantErr != nil {
				require.ErrorIs(t, wantErr, reference.ErrData)
				var bad *stateError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, program.BadData, bad.state, bad.message)
				return
			}
			require.NoError(t, err, p)
			same(t, want, got)
		}
	})
}

// Rows of maps go on over pages, cut in other places in each leaf: the engine still is the reference, also when windows grow a
// byte at a time.
func TestMapPagesCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 40).Draw(t, "rows")
		groupRows := rapid.IntRange(1, 50).Draw(t, "groupRows")
		mean := rapid.IntRange(1, 30).Draw(t, "mean entries a page")
		batch := rapid.IntRange(1, 30).Draw(t, "batch")
		habit := rapid.IntRange(0, 3).Draw(t, "host")
		rng := rand.New(rand.NewPCG(seed, 4))
		maps := randomMaps(rng, rapid.IntRange(1, 2).Draw(t, "maps"), rows)
		for i := range maps {
			m := &maps[i]
			for _, c := range []*col{&m.value, &m.score} {
				if c.encoding = ""; c.codec != "" {
					c.codec = "snappy"
				}
				if c.physical == parquet.Boolean {
					c.physical = parquet.Int64
				}
			}
		}
		data, f := assembleMaps(rng, maps, groupRows, mean)
		p := &program.Program{Source: program.Parquet, Output: program.Output{IDs: program.IDs(rng.IntN(2))}}
		addMaps(rng, p, maps, f, false)
		require.NoError(t, p.Validate())
		ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
		require.NoError(t, err)
		h := newHost(engine.New(engine.Options{BlockRows: rapid.SampledFrom([]int{1, 5, 0}).Draw(t, "block")}), p, f, data, seed)
		h.big, h.tiny, h.creep = habit == 0, habit == 1, habit == 2
		for first := 0; first < rows; first += batch {
			n := min(batch, rows-first)
			want, err := ref.MiniBatch(int64(first), n)
			require.NoError(t, err)
			got, err := h.miniBatch(int64(first), n)
			require.NoError(t, err, p)
			same(t, want, got)
		}
	})
}
