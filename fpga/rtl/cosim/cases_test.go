package cosim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/fillnull"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// unitCase is one setup of a unit, the values for it, and what the drive's kernel and the reference make of them. Both
// return the words of the results.
type unitCase struct {
	name      string
	setup     rtl.Setup
	stream    Stream
	kernel    func(t *testing.T, stream Stream) []uint64
	reference func(stream Stream) []uint64
	// read returns what the results of a section say, in the form of kernel and reference, or how they contradict
	// themselves; cycles is how many the section takes beside the latency. A unit that makes one result of each value
	// has neither.
	read   func(results []uint64) ([]uint64, error)
	cycles int
}

// unitCases returns cases of every unit, with count values each, drawn from the seed, after the values that are hard.
func unitCases(t *testing.T, count int, seed uint64) []unitCase {
	draw := rand.New(rand.NewPCG(seed, 7))
	return slices.Concat(divisorCases(t, draw, count), fillCases(draw, count), clampCases(draw, count),
		bucketizeCases(t, draw, count), hexCases(draw, count), hybridCases(t, draw, count),
		// These have sources of their own, so that the records of the others stay as they are.
		logCases(rand.New(rand.NewPCG(seed, 8)), count), levelCases(t, rand.New(rand.NewPCG(seed, 9)), count),
		plainCases(t, rand.New(rand.NewPCG(seed, 10)), count), gatherCases(t, rand.New(rand.NewPCG(seed, 11)), count),
		rowCases(t, rand.New(rand.NewPCG(seed, 12)), count), vocabularyCases(t, rand.New(rand.NewPCG(seed, 13)), count),
		intToFloatCases(rand.New(rand.NewPCG(seed, 14)), count), laneCases(t, rand.New(rand.NewPCG(seed, 15)), count),
		lineCases(rand.New(rand.NewPCG(seed, 16)), count))
}

// eachValue has a reference for one value compute the results of a stream.
func eachValue(reference func(value uint64) uint64) func(stream Stream) []uint64 {
	return func(stream Stream) []uint64 {
		results := make([]uint64, len(stream.Words))
		for i, value := range stream.Words {
			results[i] = reference(value)
		}
		return results
	}
}

// hardIntegers lie at the ends of int64 and of its parts.
func hardIntegers() []uint64 {
	hard := []uint64{0, 1, 2, math.MaxUint64, math.MaxUint64 - 1, 1 << 63, 1<<63 - 1, 1<<63 + 1}
	for bit := 7; bit < 63; bit += 8 {
		hard = append(hard, 1<<bit, 1<<bit-1, -(1 << bit), -(1<<bit)-1)
	}
	return hard
}

// hardFloats are zeros, subnormals, infinities, NaNs and their neighbours, as bits of float32.
func hardFloats() []uint64 {
	hard := []uint64{0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x3f7fffff, 0x3f800001, 0x7f7fffff, 0x7f800000, 0x7f800001,
		0x7fc00000, 0x7fffffff}
	for _, value := range slices.Clone(hard) {
		hard = append(hard, value|1<<31)
	}
	return hard
}

// drawInteger draws a number of any magnitude.
func drawInteger(draw *rand.Rand) uint64 { return uint64(int64(draw.Uint64()) >> draw.IntN(64)) }

func integerStream(draw *rand.Rand, count int, more ...uint64) Stream {
	values := append(hardIntegers(), more...)
	for len(values) < count {
		values = append(values, drawInteger(draw))
	}
	return Stream{Words: values}
}

func divisorCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	divisors := []int64{1, 2, 3, 7, 100, 500000, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<31 + 1, math.MaxUint32,
		1 + draw.Int64N(math.MaxUint32), 1 + draw.Int64N(1<<20)}
	var cases []unitCase
	for _, divisor := range divisors {
		// Values beside multiples of the divisor.
		var beside []uint64
		for range 8 {
			multiple := (draw.Int64() >> draw.IntN(60)) / divisor * divisor
			beside = append(beside, uint64(multiple-1), uint64(multiple), uint64(multiple+1))
		}
		setup, err := rtl.PositiveModulus(divisor)
		require.NoError(t, err)
		cases = append(cases, unitCase{
			name: fmt.Sprintf("positive_modulus %d", divisor), setup: setup,
			stream: integerStream(draw, count, beside...),
			kernel: func(t *testing.T, stream Stream) []uint64 {
				modulus, err := positivemodulus.New(divisor)
				require.NoError(t, err)
				return integers(stream, modulus.Mod)
			},
			reference: eachValue(func(value uint64) uint64 {
				return uint64(positivemodulus.Reference(int64(value), divisor))
			}),
		})
		params := sigridhash.Params{Salt: int64(drawInteger(draw)), Max: divisor}
		setup, err = rtl.SigridHash(params)
		require.NoError(t, err)
		cases = append(cases, unitCase{
			name: fmt.Sprintf("sigrid_hash %d", divisor), setup: setup, stream: integerStream(draw, count),
			kernel: func(t *testing.T, stream Stream) []uint64 {
				hasher, err := sigridhash.New(params)
				require.NoError(t, err)
				return integers(stream, hasher.Hash)
			},
			reference: eachValue(func(value uint64) uint64 {
				return uint64(sigridhash.Reference(int64(value), params.Salt, params.Max))
			}),
		})
	}
	return cases
}

// integers has a kernel over int64 compute the results of a stream.
func integers(stream Stream, kernel func(dst, src []int64)) []uint64 {
	values := make([]int64, len(stream.Words))
	for i, value := range stream.Words {
		values[i] = int64(value)
	}
	kernel(values, values)
	results := make([]uint64, len(values))
	for i, value := range values {
		results[i] = uint64(value)
	}
	return results
}

func fillCases(draw *rand.Rand, count int) []unitCase {
	var stream Stream
	for _, value := range integerStream(draw, count).Words {
		present := uint64(1)
		if draw.IntN(3) == 0 {
			present = 0
		}
		stream.Words = append(stream.Words, value, present)
	}
	const fill = -77
	return []unitCase{{
		name: "fill_null", setup: rtl.FillNull(uint64(1<<64 + fill)), stream: stream,
		kernel: func(_ *testing.T, stream Stream) []uint64 {
			var values Stream
			var valid []byte
			for transfer := range slices.Chunk(stream.Words, 2) {
				values.Words, valid = append(values.Words, transfer[0]), append(valid, byte(transfer[1]))
			}
			return integers(values, func(dst, _ []int64) { fillnull.Int64(dst, valid, fill) })
		},
		reference: func(stream Stream) []uint64 {
			var results []uint64
			for transfer := range slices.Chunk(stream.Words, 2) {
				results = append(results, uint64(fillnull.Reference(int64(transfer[0]), transfer[1] == 1, fill)))
			}
			return results
		},
	}}
}

func clampCases(draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	for _, limits := range [][2]int64{{0, math.MaxInt64}, {-1, 1}, {math.MinInt64, math.MaxInt64}, {5, 5},
		{-1 << 40, -3}} {
		cases = append(cases, unitCase{
			name: fmt.Sprintf("clamp %d to %d", limits[0], limits[1]), setup: rtl.ClampInt64(limits[0], limits[1]),
			stream: integerStream(draw, count, uint64(limits[0]-1), uint64(limits[0]+1), uint64(limits[1]-1),
				uint64(limits[1]+1)),
			kernel: func(t *testing.T, stream Stream) []uint64 {
				return integers(stream, func(dst, _ []int64) { require.NoError(t, clamp.Int64(dst, limits[0], limits[1])) })
			},
			reference: eachValue(func(value uint64) uint64 {
				return uint64(clamp.Reference(int64(value), limits[0], limits[1]))
			}),
		})
	}
	negativeZero := float32(math.Copysign(0, -1))
	infinity := float32(math.Inf(1))
	for _, limits := range [][2]float32{{0, 1}, {negativeZero, 1}, {-1, negativeZero}, {-infinity, infinity}, {-2, -1},
		{math.SmallestNonzeroFloat32, math.MaxFloat32}} {
		cases = append(cases, unitCase{
			name: fmt.Sprintf("clamp float32 %v to %v", limits[0], limits[1]), setup: rtl.ClampFloat32(limits[0], limits[1]),
			stream: floatStream(draw, count, limits[:]),
			kernel: func(t *testing.T, stream Stream) []uint64 {
				values := floats(stream)
				require.NoError(t, clamp.Float32(values, limits[0], limits[1]))
				results := make([]uint64, len(values))
				for i, value := range values {
					results[i] = uint64(math.Float32bits(value))
				}
				return results
			},
			reference: eachValue(func(value uint64) uint64 {
				v := math.Float32frombits(uint32(value))
				return uint64(math.Float32bits(clamp.Reference(v, limits[0], limits[1])))
			}),
		})
	}
	return cases
}

func floats(stream Stream) []float32 {
	values := make([]float32, len(stream.Words))
	for i, value := range stream.Words {
		values[i] = math.Float32frombits(uint32(value))
	}
	return values
}

// floatStream holds the floats that are hard, the neighbours of some given ones, and floats of any magnitude.
func floatStream(draw *rand.Rand, count int, beside []float32) Stream {
	values := hardFloats()
	for _, value := range beside {
		bits := math.Float32bits(value)
		values = append(values, uint64(bits-1), uint64(bits), uint64(bits+1))
	}
	for len(values) < count {
		if draw.IntN(2) == 0 {
			values = append(values, uint64(draw.Uint32()))
		} else {
			values = append(values, uint64(math.Float32bits(float32(draw.NormFloat64()*100))))
		}
	}
	return Stream{Words: values}
}

func bucketizeCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	negativeZero := float32(math.Copysign(0, -1))
	infinity := float32(math.Inf(1))
	sets := map[string][]float32{
		"one": {1}, "two": {-1, 1}, "equal": {2, 2}, "zeros": {negativeZero, 0}, "double zero": {-1, 0, 0, 1},
		"infinities": {-infinity, -infinity, 0, infinity, infinity}, "three equal": {1, 2, 2, 2, 3},
	}
	for _, n := range []int{1023, 1024, 4094, 4095, 4096} {
		sets[fmt.Sprint(n, " spaced")] = spacedBorders(draw, n, false)
		sets[fmt.Sprint(n, " with doubles")] = spacedBorders(draw, n, true)
	}
	last := spacedBorders(draw, 4096, false)
	last[4095] = last[4094]
	sets["4096, the last two equal"] = last
	names := make([]string, 0, len(sets))
	for name := range sets {
		names = append(names, name)
	}
	slices.Sort(names)
	var cases []unitCase
	for _, name := range names {
		params := bucketize.Params{Borders: sets[name]}
		setup, err := rtl.Bucketize(params)
		require.NoError(t, err)
		near := params.Borders
		if some := count / 32; len(near) > some {
			near = append(slices.Clone(near[:some/2]), near[len(near)-some/2:]...)
		}
		cases = append(cases, unitCase{
			name: "bucketize " + name, setup: setup, stream: floatStream(draw, count, near),
			kernel: func(t *testing.T, stream Stream) []uint64 {
				table, err := bucketize.New(params)
				require.NoError(t, err)
				buckets := make([]int64, len(stream.Words))
				require.NoError(t, table.Float32(buckets, floats(stream)))
				return integers(stream, func(dst, _ []int64) { copy(dst, buckets) })
			},
			reference: eachValue(func(value uint64) uint64 {
				v := math.Float32frombits(uint32(value))
				bucket, _ := bucketize.Reference(v, params.Borders, params.Side, params.NaN)
				return uint64(bucket)
			}),
		})
	}
	return cases
}

// spacedBorders draws n borders that do not decrease; with doubles one in eight is there twice.
func spacedBorders(draw *rand.Rand, n int, doubles bool) []float32 {
	borders := make([]float32, n)
	at := -50.0
	for i := range borders {
		if !doubles || i == 0 || draw.IntN(8) > 0 {
			at += 0.001 + draw.Float64()/20
		}
		borders[i] = float32(at)
	}
	return borders
}
