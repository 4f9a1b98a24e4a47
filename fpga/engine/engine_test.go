package engine_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// requireSame compares two mini-batches: floats by their bits, but every NaN equals every other.
func requireSame(t require.TestingT, want, got *reference.Tensors) {
	require.Equal(t, want.Rows, got.Rows)
	require.Equal(t, want.Lengths, got.Lengths, "lengths")
	require.Equal(t, len(want.Values), len(got.Values), "number of values")
	for i := range want.Values {
		require.Equal(t, want.Values[i], got.Values[i], "value %d", i)
	}
	requireFloats(t, "weights", want.Weights, got.Weights)
	requireFloats(t, "label", want.Label, got.Label)
	requireFloats(t, "dense", want.Dense, got.Dense)
}

// requireMiniBatch checks that the reference and the engine, in blocks of any size, make a mini-batch of all rows.
func requireMiniBatch(t *testing.T, p *program.Program, f *format.File, data []byte, want *reference.Tensors) {
	t.Helper()
	require.NoError(t, p.Validate())
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	got, err := ref.MiniBatch(0, want.Rows)
	require.NoError(t, err)
	requireSame(t, want, got)
	for _, block := range []int{1, 3, 0} {
		h := newHost(engine.New(engine.Options{BlockRows: block}), p, f, data, 1)
		got, err = h.miniBatch(0, want.Rows)
		require.NoError(t, err)
		requireSame(t, want, got)
	}
}

func requireFloats(t require.TestingT, name string, want, got []float32) {
	require.Equal(t, len(want), len(got), name)
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			require.Failf(t, "floats differ", "%s %d: want %v (%08x), got %v (%08x)", name, i,
				want[i], math.Float32bits(want[i]), got[i], math.Float32bits(got[i]))
		}
	}
}

// drawLayout draws the layout of a file whose row groups have up to groupRows rows.
func drawLayout(t *rapid.T, groupRows int) layout {
	return layout{
		groupRows: rapid.IntRange(1, groupRows).Draw(t, "groupRows"),
		batchRows: rapid.IntRange(1, 100).Draw(t, "batchRows"),
		pageBytes: rapid.SampledFrom([]int{64, 256, 1024, 1 << 20}).Draw(t, "pageBytes"),
		version:   rapid.IntRange(1, 2).Draw(t, "version"),
	}
}

// TestEngineIsReference checks that the engine computes the same mini-batches as the reference, for any file,
// pipeline and rows, and for any windows and slices of the host.
func TestEngineIsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 400).Draw(t, "rows")
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		l := drawLayout(t, 500)
		risky := rapid.IntRange(0, 5).Draw(t, "risky") == 0
		batch := rapid.IntRange(1, 300).Draw(t, "batch")
		block := rapid.SampledFrom([]int{1, 7, 64, 0}).Draw(t, "block")
		rng := rand.New(rand.NewPCG(seed, 2))
		cols := randomColumns(rng, columns, rows)
		p := randomProgram(rng, cols, risky, l.groupRows >= rows)
		if rng.IntN(3) == 0 {
			addLookups(t, rng, p, risky)
		}
		require.NoError(t, p.Validate())
		data := writeFile(t, cols, l)
		f := readFooter(t, data)
		compareMiniBatches(t, p, f, data, compared{seed: seed, rows: rows, batch: batch, block: block}, rng)
	})
}

// compared says which mini-batches of a file are compared, and how many rows a block of the engine has.
type compared struct {
	seed               uint64 // of the host
	rows, batch, block int
}

// compareMiniBatches checks that the engine makes the mini-batches of the reference for any windows of the host, and
// fails where the reference fails. rng leaves some mini-batches out, as a host may.
func compareMiniBatches(
	t *rapid.T, p *program.Program, f *format.File, data []byte, c compared, rng *rand.Rand,
) {
	if rng.IntN(3) == 0 {
		lackColumns(rng, p)
		require.NoError(t, p.Validate(), p)
	}
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	h := newHost(engine.New(engine.Options{BlockRows: c.block, Modules: p.Modules}), p, f, data, c.seed)
	switch rapid.IntRange(0, 3).Draw(t, "host") {
	case 0:
		h.wholeChunks = true
	case 1:
		h.smallestWindows = true
	}
	for first := 0; first < c.rows; first += c.batch {
		n := min(c.batch, c.rows-first)
		if rng.IntN(5) == 0 {
			continue
		}
		want, wantErr := ref.MiniBatch(int64(first), n)
		got, err := h.miniBatch(int64(first), n)
		if wantErr != nil {
			require.ErrorIs(t, wantErr, reference.ErrData)
			var bad *sliceFailure
			require.ErrorAs(t, err, &bad)
			require.Equal(t, program.BadData, bad.state, bad.message)
			return
		}
		require.NoError(t, err, p)
		requireSame(t, want, got)
	}
}
