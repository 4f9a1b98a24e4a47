package partition

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestGeometry moves random ranges of a partition in extents and finds its bytes where they belong.
func TestGeometry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.SampledFrom([]uint64{1, 512, 4096}).Draw(t, "block")
		phase := rapid.Uint64Range(0, block-1).Draw(t, "phase")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var device []byte
		var data []byte
		p := &Partition{Name: "p"}
		for i := range rapid.IntRange(1, 4).Draw(t, "extents") {
			n := block * (1 + rng.Uint64N(4))
			device = append(device, make([]byte, block*rng.Uint64N(3))...)
			if i == 0 {
				device = append(device, make([]byte, phase)...)
				n -= phase
			}
			p.Extents = append(p.Extents, Extent{Offset: int64(len(data)), Device: int64(len(device)), Len: int64(n)})
			for range n {
				b := byte(rng.Uint32())
				device, data = append(device, b), append(data, b)
			}
		}
		p.Size = int64(len(data))
		require.NoError(t, checkExtents(p.Extents, p.Size))
		g, err := p.Geometry(block, true)
		require.NoError(t, err)
		from := rng.Uint64N(uint64(len(data)))
		to := from + 1 + rng.Uint64N(uint64(len(data))-from)
		lo, hi := g.Cover(from, to)
		memory := make([]byte, hi-lo)
		total := uint64(0)
		for _, r := range g.AppendRuns(nil, lo, hi) {
			require.Zero(t, r.From%block)
			require.Zero(t, r.Len%block)
			copy(memory[total:total+r.Len], device[r.From:r.From+r.Len])
			total += r.Len
		}
		require.Equal(t, hi-lo, total)
		require.Equal(t, data[from:to], memory[from+g.Align(0)-lo:to+g.Align(0)-lo])
	})
}

func TestExtentsAreChecked(t *testing.T) {
	for name, e := range map[string][]Extent{
		"a hole":               {{0, 0, 512}, {1024, 4096, 512}},
		"an overlap":           {{0, 0, 512}, {256, 4096, 1024}},
		"nothing at the start": {{512, 0, 1024}},
		"an empty extent":      {{0, 0, 0}, {0, 512, 1024}},
		"before the drive":     {{0, -512, 1024}},
		"too short":            {{0, 0, 1000}},
	} {
		assert.Error(t, checkExtents(e, 1024), name)
	}
	assert.NoError(t, checkExtents([]Extent{{0, 512, 512}, {512, 0, 600}}, 1024))

	p := &Partition{Name: "p", Size: 1024, Extents: []Extent{{0, 0, 700}, {700, 4096, 324}}}
	_, err := p.Geometry(512, true)
	require.ErrorIs(t, err, ErrUnreadable)
	_, err = p.Geometry(1, true)
	require.NoError(t, err)
	_, err = p.Geometry(3, false)
	require.Error(t, err)
	p.Extents = nil
	_, err = p.Geometry(512, true)
	require.ErrorIs(t, err, ErrUnreadable)
}
