package cosim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/logn"
)

// hardLogarithms are the ends of binades and of the table's intervals.
func hardLogarithms() []uint64 {
	var hard []uint64
	for exponent := range uint64(255) {
		hard = append(hard, exponent<<23, exponent<<23|1, exponent<<23|0x7fffff)
	}
	for interval := range uint64(128) {
		hard = append(hard, 0x3f800000|interval<<16, 0x3f800000|interval<<16-1, 0x3f000000|interval<<16,
			0x3f000000|interval<<16-1)
	}
	return hard
}

// logAddends are the constants of the cases. With 0 the sum is any float32; 1 is that of the papers' models.
func logAddends(draw *rand.Rand) []float32 {
	return []float32{0, 1, 3, float32(math.Copysign(0, -1)), -1, math.SmallestNonzeroFloat32, math.MaxFloat32,
		-math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0x1p-126, -0x1.8p-130,
		math.Float32frombits(draw.Uint32()), float32(draw.NormFloat64())}
}

// logCases have fewer values than asked for, since the reference works with math/big.
func logCases(draw *rand.Rand, count int) []unitCase {
	count = max(count/8, 64)
	// Halves of the last place of sums with 1 and 3, which rounding looks at, or the bits below them.
	halves := []float32{0x1p-25, 0x1p-24, 0x1p-23, -0x1p-26, -0x1p-25, -0x1p-24}
	var cases []unitCase
	for _, add := range logAddends(draw) {
		// The neighbours of 1, of which 1 - 2^-23 is the hardest, are there for every constant.
		stream := floatStream(draw, 0, slices.Concat(halves, []float32{add, -add, 1, 1 - 0x1p-23}))
		hard := hardLogarithms()
		draw.Shuffle(len(hard), func(i, k int) { hard[i], hard[k] = hard[k], hard[i] })
		stream.Words = append(stream.Words, hard[:min(len(hard), count/4)]...)
		for len(stream.Words) < count {
			switch draw.IntN(4) {
			case 0: // a number near the constant: the sum is twice it or nearly cancels
				near := math.Float32bits(add) + draw.Uint32N(1<<uint(draw.IntN(27)+1))
				stream.Words = append(stream.Words, uint64(near^draw.Uint32N(2)<<31))
			case 1: // an integer, as the columns hold them
				stream.Words = append(stream.Words, uint64(math.Float32bits(float32(draw.IntN(1<<draw.IntN(25))))))
			default:
				stream.Words = append(stream.Words, uint64(draw.Uint32()))
			}
		}
		cases = append(cases, unitCase{
			name: fmt.Sprintf("log of the sum with %v", add), setup: rtl.Log(add), stream: stream,
			kernel: func(_ *testing.T, stream Stream) []uint64 { return logKernel(stream, add) },
			reference: eachValue(func(value uint64) uint64 {
				return uint64(math.Float32bits(logn.Reference(math.Float32frombits(uint32(value)), add)))
			}),
		})
	}
	return cases
}

func logKernel(stream Stream, add float32) []uint64 {
	values := floats(stream)
	logn.LogClamped(values, values, add, float32(math.Inf(-1)), float32(math.Inf(1)))
	results := make([]uint64, len(values))
	for i, value := range values {
		results[i] = uint64(math.Float32bits(value))
	}
	return results
}
