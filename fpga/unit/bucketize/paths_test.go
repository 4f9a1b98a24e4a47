package bucketize

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &narrowFloat32, "narrowGeneric", "narrowFloat32AVX2", "narrowFloat32AVX512",
		"narrowFloat32NEON")
	proving.Picks(t, &narrowFloat64, "narrowGeneric", "narrowFloat64AVX2", "narrowFloat64AVX512",
		"narrowFloat64NEON")
	proving.Picks(t, &narrowInt64, "narrowGeneric", "narrowInt64AVX2", "narrowInt64AVX512",
		"narrowInt64NEON")
}

// tables is one of every kind of cells: equal ones, of one threshold and of several; unequal ones, likewise; rough
// ones.
func tables(t testing.TB, nan NaN) map[string]*Table {
	rng := rand.New(rand.NewPCG(4, 4))
	all := map[string]*Table{}
	for name, border := range map[string]func(i int) float64{
		"one":    func(i int) float64 { return 3 },
		"log":    func(i int) float64 { return math.Exp(float64(i) / 300 * math.Log(1e6)) },
		"pairs":  func(i int) float64 { return math.Exp(float64(i/2) / 300 * math.Log(1e6)) },
		"linear": func(i int) float64 { return float64(i-40) * 100 },
		"normal": func(i int) float64 { return rng.NormFloat64() * 1000 },
		"equal":  func(i int) float64 { return float64(i / 100) },
	} {
		borders := make([]float32, map[bool]int{true: 1, false: 300}[name == "one"])
		for i := range borders {
			borders[i] = float32(border(i))
		}
		slices.Sort(borders)
		table, err := New(Params{Borders: borders, NaN: nan})
		require.NoError(t, err)
		all[name] = table
	}
	return all
}

// The kinds of tables are what the tests take them for.
func TestKindsOfCells(t *testing.T) {
	all := tables(t, NaNTorchArrow)
	for _, c := range []struct {
		name  string
		flat  bool
		steps func(int) bool
	}{
		{"one", true, func(n int) bool { return n == 1 }},
		{"log", true, func(n int) bool { return n == 1 }},
		{"pairs", true, func(n int) bool { return n == 2 }},
		{"linear", false, func(n int) bool { return n == 1 }},
		{"normal", false, func(n int) bool { return 1 < n && n <= mostSteps }},
		{"equal", false, func(n int) bool { return n > mostSteps }},
	} {
		x := &all[c.name].narrow
		require.Equal(t, c.flat, x.regions == nil, c.name)
		require.True(t, c.steps(x.steps), "%s: %d steps", c.name, x.steps)
	}
}

// There are as many cells as promised, for any borders.
func TestCellsAreFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, n := range []int{1, 2, 10, 1000, 70000} {
		for name, f := range map[string]func(i int) uint32{
			"anywhere":    func(int) uint32 { return rng.Uint32N(0xff800000-0x00800000) + 0x00800000 },
			"in a corner": func(i int) uint32 { return 0x00800000 + uint32(i) },
			"two places":  func(i int) uint32 { return 0x00800000 + uint32(i%2)*0xfe000000 + uint32(i) },
			"crowding":    func(i int) uint32 { return 0x80000000 + uint32(math.Exp(float64(i)/float64(n)*21)) },
		} {
			thresholds := make([]uint32, n)
			for i := range thresholds {
				thresholds[i] = f(i)
			}
			slices.Sort(thresholds)
			x := newCells(slices.Clone(thresholds))
			require.LessOrEqual(t, len(x.cells), budget(n)+1, "%s, %d", name, n)
			for range 300 {
				key := thresholds[rng.IntN(n)] + rng.Uint32N(3) - 1
				want, _ := slices.BinarySearch(thresholds, key+1)
				got := []int64{0}
				narrowGeneric(&Table{narrow: x}, got, []float32{valueOf(key)})
				require.Equal(t, int64(want), got[0], "%s, %d: key %08x", name, n, key)
			}
		}
	}
}

// valueOf undoes key32.
func valueOf(key uint32) float32 {
	if key>>31 == 0 {
		return math.Float32frombits(^key)
	}
	return math.Float32frombits(key ^ 1<<31)
}

func value(i int) float64 {
	r := uint64(i) * 0x9e3779b97f4a7c15
	switch r >> 61 {
	case 0:
		return []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat32, -math.MaxFloat32,
			math.MaxFloat64, 1e-45, -1e-45,
			1e-310, 3, 1e6, -4000, 25900, math.MaxInt64, math.MinInt64}[r>>8&15]
	case 1:
		return float64(math.Float32frombits(uint32(r >> 8)))
	case 2, 3:
		return float64(int64(r>>8&0xffff) - 20000)
	}
	return math.Exp(float64(r>>8&0xffff) / 0xffff * 14)
}

func TestEveryPathInEveryPlace(t *testing.T) {
	all := tables(t, NaNTorchArrow)
	proving.EachLevel(t, func(t *testing.T) {
		for _, name := range []string{"log", "linear", "normal", "pairs"} {
			b := all[name]
			want := make([]int64, proving.Lengths)
			check := func(got []int64, err error) {
				require.NoError(t, err)
				require.True(t, slices.Equal(want[:len(got)], got), "%s: %d values", name, len(got))
			}
			proving.Places(t, func(i int) float32 { return float32(value(i)) }, func(dst []int64, src []float32) {
				narrowGeneric(b, want, src)
				check(dst, b.Float32(dst, src))
			})
			proving.Places(t, value, func(dst []int64, src []float64) {
				narrowGeneric(b, want, src)
				check(dst, b.Float64(dst, src))
			})
			proving.Places(t, func(i int) int64 { return int64(max(min(value(i), 1e18), -1e18)) },
				func(dst, src []int64) {
					narrowGeneric(b, want, src)
					check(dst, b.Int64(dst, src))
					check(src, b.Int64(src, src))
				})
		}
	})
}

// The first NaN's row is named wherever it lies, with the rows before it done.
func TestTheFirstNaNIsNamed(t *testing.T) {
	nan := float32(math.NaN())
	proving.EachLevel(t, func(t *testing.T) {
		for name, b := range tables(t, NaNFail) {
			for at := range 70 {
				src, dst, want := make([]float32, 70), make([]int64, 70), make([]int64, 70)
				for i := range src {
					src[i] = float32(i*300 + 1)
				}
				require.Equal(t, -1, narrowGeneric(b, want, src))
				src[at] = nan
				src[69] = nan
				var e *NaNError
				require.True(t, errors.As(b.Float32(dst, src), &e), name)
				require.Equal(t, at, e.Row, name)
				require.Equal(t, want[:at], dst[:at], name)
			}
		}
	})
}

func TestBucketizeAllocatesNothing(t *testing.T) {
	dst, ids, floats := make([]int64, 100), make([]int64, 100), make([]float32, 100)
	b := tables(t, NaNTorchArrow)["linear"]
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = b.Int64(dst, ids), b.Float32(dst, floats) }))
	})
}

func FuzzTable(f *testing.F) {
	f.Add(make([]byte, 80), uint8(3), uint8(0))
	f.Add([]byte("values and borders of four bytes, and some more of that"), uint8(7), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, n, kind uint8) {
		var values, borders []float32
		for i := 0; i+4 <= len(data); i += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
			values = append(values, v)
			if len(borders) < int(n) && v == v {
				borders = append(borders, v)
			}
		}
		slices.Sort(borders)
		p := Params{Borders: borders, Side: Side(kind & 1), NaN: NaN(kind >> 1 % 3)}
		b, err := New(p)
		if err != nil {
			require.Empty(t, borders)
			return
		}
		for _, l := range simd.Levels() {
			restore := simd.Force(l)
			got := make([]int64, len(values))
			err := b.Float32(got, values)
			restore()
			require.NoError(t, err)
			for i, v := range values {
				want, _ := Reference(v, borders, p.Side, p.NaN)
				require.Equal(t, want, got[i], "%x among %x, %+v, %v", v, borders, p, l)
			}
		}
	})
}
