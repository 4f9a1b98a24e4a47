package bucketize

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

func floats(t require.TestingT, l catalogue.LogSpaced) []float32 {
	var b Op
	require.NoError(t, b.convertLogSpaced(l, program.Float32))
	return b.Borders32
}

// The digests were computed with Python's decimal module at 60 digits, rounded once to float32.
func TestLogSpacedBits(t *testing.T) {
	for count, want := range logSpacedDigests {
		var bits []byte
		for _, x := range floats(t, catalogue.LogSpaced{From: 1, To: 1e6, Count: count}) {
			bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(x))
		}
		sum := sha256.Sum256(bits)
		assert.Equal(t, want, hex.EncodeToString(sum[:]), "%d borders", count)
	}
}

func TestLogSpacedExactValues(t *testing.T) {
	assert.Equal(t, []float32{1, 10, 100, 1000, 10000, 100000, 1000000},
		floats(t, catalogue.LogSpaced{From: 1, To: 1e6, Count: 7}))
	assert.Equal(t, []float32{0.25, 0.5, 1, 2, 4}, floats(t, catalogue.LogSpaced{From: 0.25, To: 4, Count: 5}))
	assert.Equal(t, []float32{3, 5}, floats(t, catalogue.LogSpaced{From: 3, To: 5, Count: 2}))
	// The one in the middle is 16777217 exactly, halfway between two float32: ties go to even.
	assert.Equal(t, []float32{1, 16777216, 281475010265089}, floats(t, catalogue.LogSpaced{From: 1, To: 281475010265089,
		Count: 3}))
	var b Op
	require.NoError(t, b.convertLogSpaced(catalogue.LogSpaced{From: 1, To: 281475010265089, Count: 3}, program.Float64))
	assert.Equal(t, []float64{1, 16777217, 281475010265089}, b.Borders64)
}

func TestLogSpacedExtremes(t *testing.T) {
	borders := floats(t, catalogue.LogSpaced{From: math.SmallestNonzeroFloat32, To: math.MaxFloat32, Count: 1000})
	assert.True(t, slices.IsSorted(borders))
	assert.Equal(t, float32(math.SmallestNonzeroFloat32), borders[0])
	assert.Equal(t, float32(math.MaxFloat32), borders[999])

	var b Op
	widest := catalogue.LogSpaced{From: math.SmallestNonzeroFloat64, To: math.MaxFloat64, Count: 1000}
	require.NoError(t, b.convertLogSpaced(widest, program.Float64))
	assert.True(t, slices.IsSorted(b.Borders64))
	require.Error(t, b.convertLogSpaced(catalogue.LogSpaced{From: 1, To: 1e39, Count: 3}, program.Float32))
	require.Error(t, b.convertLogSpaced(catalogue.LogSpaced{From: 1e-50, To: 1, Count: 3}, program.Float32))
	for _, l := range []catalogue.LogSpaced{
		{From: 0, To: 1, Count: 2}, {From: 1, To: 1, Count: 2}, {From: math.NaN(), To: 1, Count: 2},
		{From: 1, To: math.NaN(), Count: 2},
		{From: 1, To: math.Inf(1), Count: 2}, {From: 1, To: 2, Count: 1}, {From: 1, To: 2, Count: program.MaxBorders + 1},
	} {
		require.Error(t, b.convertLogSpaced(l, program.Float32), "%v", l)
	}
}

// The definition, evaluated in float64 with the library's exp and log, is off by at most a float32's last bit.
func TestLogSpacedAgainstFloat64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := math.Exp(rapid.Float64Range(-50, 50).Draw(t, "ln from"))
		to := from * math.Exp(rapid.Float64Range(1e-3, 30).Draw(t, "ln to/from"))
		n := rapid.IntRange(2, 300).Draw(t, "count")
		got := floats(t, catalogue.LogSpaced{From: from, To: to, Count: n})
		require.Equal(t, float32(from), got[0])
		require.Equal(t, float32(to), got[n-1])
		require.True(t, slices.IsSorted(got))
		step := (math.Log(to) - math.Log(from)) / float64(n-1)
		for i, x := range got {
			y := float32(math.Exp(math.Log(from) + float64(float64(i)*step)))
			require.InDelta(t, int64(math.Float32bits(y)), int64(math.Float32bits(x)), 1, "border %d of %d", i, n)
		}
	})
}

var logSpacedDigests = map[int]string{
	7:    "64a0ad5a7bf0b569fabe66af3006423da81ff79cd282e8d781cd013b1fd7d5ce",
	1024: "ad0c9b04c3e1a073e58b72485d21e49ee6ba952cc5c87c7d4b58c47847ad74f5",
	2048: "814c92057a0e6b08e900e66a39fb410569339f8c4dec3086b91b349b50c457ee",
	4096: "8a7dcc657aa17fffa5ee3cb5f9fea21ce223b9f98ac1b3371e93de9a81917165",
}
