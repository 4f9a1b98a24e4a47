package decimal_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/decimal"
	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

// bytesOf returns an integer in two's complement of a length, the highest byte first.
func bytesOf(n *big.Int, length int) []byte {
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*length)))
	}
	return n.FillBytes(make([]byte, length))
}

// requireReference compares all conversions of an integer with their references.
func requireReference(t require.TestingT, n *big.Int, scale uint8) {
	want32 := math.Float32bits(decimal.ReferenceFloat32(n, scale))
	want64 := math.Float64bits(decimal.ReferenceFloat64(n, scale))
	value := bytesOf(n, decimal.MaxBytes)
	require.Zero(t, n.Cmp(decimal.Unscaled(value)))
	offsets := []uint32{0, uint32(len(value))}
	float32s, float64s, int64s := make([]float32, 1), make([]float64, 1), make([]int64, 1)
	require.NoError(t, decimal.BytesToFloat32(float32s, offsets, value, nil, scale))
	require.Equal(t, want32, math.Float32bits(float32s[0]), "%v / 10^%d: %v", n, scale, float32s[0])
	require.NoError(t, decimal.BytesToFloat64(float64s, offsets, value, nil, scale))
	require.Equal(t, want64, math.Float64bits(float64s[0]), "%v / 10^%d: %v", n, scale, float64s[0])
	err := decimal.BytesToInt64(int64s, offsets, value, nil)
	if !n.IsInt64() {
		require.ErrorIs(t, err, decimal.ErrRange)
		return
	}
	require.NoError(t, err)
	require.Equal(t, n.Int64(), int64s[0])
	require.NoError(t, decimal.Int64ToFloat32(float32s, int64s, scale))
	require.Equal(t, want32, math.Float32bits(float32s[0]), "%v / 10^%d: %v", n, scale, float32s[0])
	require.NoError(t, decimal.Int64ToFloat64(float64s, int64s, scale))
	require.Equal(t, want64, math.Float64bits(float64s[0]), "%v / 10^%d: %v", n, scale, float64s[0])
}

// TestKernelEqualsReference draws integers of every size and every scale.
func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(1, decimal.MaxBytes).Draw(t, "length")
		n := decimal.Unscaled(rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "bytes"))
		requireReference(t, n, rapid.Uint8Range(0, decimal.MaxScale).Draw(t, "scale"))
	})
}

// TestNearTies draws integers whose quotients lie at or beside the middle of two floats, where a second rounding errs.
func TestNearTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.Uint8Range(0, decimal.MaxScale).Draw(t, "scale")
		bits := rapid.SampledFrom([]uint{25, 54}).Draw(t, "bits")
		odd := new(big.Int).SetUint64(rapid.Uint64Range(1<<(bits-1), 1<<bits-1).Draw(t, "middle") | 1)
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		n := new(big.Int).Mul(odd, power)
		// Powers of two that keep the integer whole or make it fit.
		if shift := rapid.IntRange(-200, 180).Draw(t, "shift"); shift < 0 {
			n.Rsh(n, uint(-shift))
		} else {
			n.Lsh(n, uint(shift))
		}
		n.Add(n, big.NewInt(rapid.Int64Range(-1, 1).Draw(t, "beside")))
		if n.BitLen() > 8*decimal.MaxBytes-1 {
			n.Rsh(n, uint(n.BitLen()-8*decimal.MaxBytes+1))
		}
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		requireReference(t, n, scale)
	})
}

// TestSmallTies tries every scale with integers whose float64 quotient may be the middle of two float32.
func TestSmallTies(t *testing.T) {
	for scale := range uint8(23) {
		power := math.Pow(10, float64(scale))
		for bits := range 24 {
			middle := (float64(1<<24+1+2*bits*70001) / (1 << 24)) * math.Ldexp(1, bits)
			for beside := range int64(5) {
				if x := middle * power; math.Abs(x) < 1<<62 {
					requireReference(t, big.NewInt(int64(x)+beside-2), scale)
				}
			}
		}
	}
}

func TestEdges(t *testing.T) {
	least := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 255))
	most := new(big.Int).Not(least)
	for _, n := range []*big.Int{
		new(big.Int), big.NewInt(1), big.NewInt(-1), big.NewInt(math.MaxInt64), big.NewInt(math.MinInt64),
		new(big.Int).Add(big.NewInt(math.MaxInt64), big.NewInt(1)), big.NewInt(1 << 53), big.NewInt(1<<53 + 1), least, most,
		new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), new(big.Int).Lsh(big.NewInt(1), 103)),
		new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 103),
			big.NewInt(1))),
		big.NewInt(16777217), big.NewInt(7006492321624085), // 2^-149 half, about
	} {
		for _, scale := range []uint8{0, 1, 18, 19, 20, 22, 23, 38, 44, 45, 60, 61, 62, 75, decimal.MaxScale} {
			requireReference(t, n, scale)
		}
	}
	zero := make([]float32, 1)
	require.NoError(t, decimal.BytesToFloat32(zero, []uint32{0, 16}, make([]byte, 16), nil, 3))
	require.Zero(t, math.Float32bits(zero[0]), "+0")
}

func TestColumns(t *testing.T) {
	dst := []float64{9, 9, 9}
	data := []byte{0x04, 0xd2, 0xff}
	require.NoError(t, decimal.BytesToFloat64(dst, []uint32{0, 2, 2, 3}, data, []byte{1, 0, 1}, 2))
	require.Equal(t, []float64{12.34, 0, -0.01}, dst, "a null is 0")
	var wrong *decimal.ValueError
	require.ErrorAs(t, decimal.BytesToFloat64(dst, []uint32{0, 2, 2, 3}, data, nil, 2), &wrong)
	assert.Equal(t, decimal.ValueError{Row: 1, Err: decimal.ErrLength}, *wrong)
	long := make([]byte, decimal.MaxBytes+1)
	require.NoError(t, decimal.BytesToInt64(make([]int64, 1), []uint32{0, decimal.MaxBytes}, long, nil))
	err := decimal.BytesToInt64(make([]int64, 1), []uint32{0, uint32(len(long))}, long, nil)
	require.ErrorIs(t, err, decimal.ErrLength)
	require.ErrorIs(t, decimal.BytesToInt64(make([]int64, 1), []uint32{0}, long, nil), bytecolumn.ErrShape)
	require.ErrorIs(t, decimal.BytesToFloat32(nil, []uint32{0}, nil, nil, decimal.MaxScale+1), decimal.ErrScale)
	require.ErrorIs(t, decimal.Int64ToFloat32(nil, nil, decimal.MaxScale+1), decimal.ErrScale)
	require.ErrorIs(t, decimal.Int64ToFloat64(nil, nil, decimal.MaxScale+1), decimal.ErrScale)
	require.NoError(t, decimal.Int64ToFloat64(nil, nil, decimal.MaxScale))
}
