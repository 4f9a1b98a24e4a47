package main

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// floorMod is the definition, in big integers.
func floorMod(h, d int64) int64 {
	return new(big.Int).Mod(big.NewInt(h), big.NewInt(d)).Int64()
}

// TestShiftedModulo holds TorchArrow's multiplication and shift to the definition.
func TestShiftedModulo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []int64{2, 3, 7, 100, 8192, 500_000, 1<<31 - 1, 1 << 40, 1<<62 + 1, math.MaxInt64} {
		m, s := multiplierAndShift(d)
		hashes := []int64{0, 1, -1, d, d - 1, -d, -d - 1, math.MaxInt64, math.MinInt64}
		for range 500 {
			hashes = append(hashes, int64(r.Uint64()))
		}
		for _, h := range hashes {
			if want, got := floorMod(h, d), shiftedModulo(h, d, m, s); want != got {
				t.Fatalf("%d modulo %d by %d >> 64+%d: %d, want %d", h, d, m, s, got, want)
			}
		}
	}
}

// TestSigrid has facts of TorchArrow's and folly's own tests.
func TestSigrid(t *testing.T) {
	p := &plain{max: 100}
	for id, want := range []int32{6, 60, 54, 54, 9, 4, 91, 11, 67, 79, 2, 25, 92, 98, 83, 66, 2} {
		assert.Equal(t, want, p.id(int64(id)), "id %d", id)
	}
	a := &torchArrow{max: 100}
	got := make([]int32, 4)
	a.ids(got, []int64{1, 14, 15, 16}, []int32{1, 0, 3})
	assert.Equal(t, []int32{60, 83, 66, 2}, got)
	a.ids(got, []int64{0, 1, 2, 3}, nil)
	assert.Equal(t, []int32{6, 60, 54, 54}, got)
}

func TestLowerBound(t *testing.T) {
	borders := []float32{1, 10, 100}
	for v, want := range map[float32]int{
		-1: 0, 1: 0, 1.5: 1, 10: 1, 10.5: 2, 100: 2, 101: 3, float32(math.Inf(1)): 3, float32(math.Inf(-1)): 0,
	} {
		assert.Equal(t, want, lowerBound(borders, v), "%v", v)
	}
	assert.Equal(t, int64(-1), (&torchArrow{borders: []float32{2, 1}}).bucket(5),
		"borders that fall fail the comparison")
	assert.Equal(t, int64(2), (&torchArrow{borders: borders}).bucket(11))
}
