package rtl

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/logn"
	"github.com/millrace/millrace/internal/goldenfile"
)

// The form of the tables of module natural_logarithm, whose comment says what they are for.
const (
	reciprocalBits = 10 // behind the point, of the reciprocals of the first 2^7 intervals
	factorBits     = 17 // behind the point, of f
	correctionBits = 24 // behind the point, of g
	logarithmBits  = 72 // behind the point, of all logarithms

	firstHalf = 48 // the first interval of which the reciprocal is that of half the significand
)

// naturalLog returns ln x for a positive x, as 2 (s + s^3/3 + s^5/5 + ...) with s = (x-1)/(x+1).
func naturalLog(x *big.Rat) *big.Float {
	const precision = 160
	float := func(n int64) *big.Float { return new(big.Float).SetPrec(precision).SetInt64(n) }
	value := float(0).SetRat(x)
	s := float(0).Quo(float(0).Sub(value, float(1)), float(0).Add(value, float(1)))
	square, power, sum := float(0).Mul(s, s), float(0).Set(s), float(0)
	for n := int64(1); power.Sign() != 0 && power.MantExp(nil) > -precision; n += 2 {
		sum.Add(sum, float(0).Quo(power, float(n)))
		power.Mul(power, square)
	}
	return sum.Mul(sum, float(2))
}

// logarithm returns factor * ln x to logarithmBits behind the point, to nearest.
func logarithm(factor int64, x *big.Rat) *big.Int {
	scaled := naturalLog(x)
	scaled.Mul(scaled, new(big.Float).SetInt64(factor))
	scaled.SetMantExp(scaled, logarithmBits)
	half := big.NewFloat(0.5)
	if scaled.Sign() < 0 {
		half.Neg(half)
	}
	rounded, _ := scaled.Add(scaled, half).Int(nil)
	return rounded
}

// readOnlyMemory is a table of constants, whose module has a cycle of latency.
type readOnlyMemory struct {
	name, about       string
	indexBits, width  int
	value             func(index int) *big.Int
	begin, valueCount int // the indices with a value, which may be negative; other entries hold 0
}

// module returns the table in SystemVerilog.
func (m readOnlyMemory) module(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\n// Made by TestLogTables; do not edit.\nmodule %s (\n", m.about, m.name)
	fmt.Fprintf(&b, "  input  logic clk_i,\n  input  logic [%d:0] index_i,\n  output logic [%d:0] value_o\n);\n",
		m.indexBits-1, m.width-1)
	fmt.Fprintf(&b, "  always_ff @(posedge clk_i) begin\n    case (index_i)\n")
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(m.width))
	signed, bits := 0, 0
	for index := m.begin; index < m.begin+m.valueCount; index++ {
		value := m.value(index)
		if value.Sign() < 0 {
			signed = 1
		}
		bits = max(bits, value.BitLen())
		fmt.Fprintf(&b, "      %d'd%d: value_o <= %d'h%0*x;\n", m.indexBits, index&(1<<m.indexBits-1), m.width,
			(m.width+3)/4, value.Mod(value, modulus))
	}
	require.Equal(t, m.width, bits+signed, m.name)
	if m.valueCount < 1<<m.indexBits {
		b.WriteString("      default: value_o <= '0;\n")
	}
	b.WriteString("    endcase\n  end\nendmodule\n")
	return b.String()
}

// reciprocalOf returns the reciprocal of interval i of the significand, in units of 2^-10.
func reciprocalOf(i int) int64 {
	switch i {
	case 0:
		return 1 << reciprocalBits
	case 127: // beside 2, whose half is 1
		return 1 << (reciprocalBits - 1)
	}
	middle := 257 + 2*int64(i) // in units of 2^-8
	return (1<<(reciprocalBits+9)/middle + 1) / 2
}

// factorOf returns f for the interval of r1 from index 2^-15 on, in units of 2^-17. Beside 0 it is 0.
func factorOf(index int) int64 {
	if index == 0 || index == -1 {
		return 0
	}
	middle := int64(2*index + 1) // in units of 2^-16
	// f = 1 - 1/(1+middle) = middle / (1+middle), to nearest.
	numerator, denominator := middle<<(factorBits+1), int64(1<<16)+middle
	return (numerator/denominator + 1) >> 1
}

// correctionOf returns g for the interval of r2 from index 2^-23 on, in units of 2^-24. Beside 0 it is 0.
func correctionOf(index int) int64 {
	if index == 0 || index == -1 {
		return 0
	}
	return int64(2*index + 1)
}

// minusLogOfOneLess returns -ln(1 - n/2^bits).
func minusLogOfOneLess(n int64, bits uint) *big.Int {
	return logarithm(-1, big.NewRat(1<<bits-n, 1<<bits))
}

func logTables() []readOnlyMemory {
	return []readOnlyMemory{
		{name: "log_reciprocals", indexBits: 7, width: reciprocalBits + 1, valueCount: 128,
			about: "1024 / (1 + (index + 0.5) / 128); where that is next to a power of two, the power.",
			value: func(i int) *big.Int { return big.NewInt(reciprocalOf(i)) }},
		{name: "log_of_reciprocals", indexBits: 7, width: 72, valueCount: 128,
			about: "-ln of the reciprocal, 72 bits behind the point; the reciprocal is in units of 2^-10 below 48, else 2^-9.",
			value: func(i int) *big.Int {
				one := int64(1 << reciprocalBits)
				if i >= firstHalf {
					one /= 2
				}
				return logarithm(-1, big.NewRat(reciprocalOf(i), one))
			}},
		{name: "log_factors", indexBits: 9, width: 12, begin: -256, valueCount: 512,
			about: "f, 17 bits behind the point: x / (1 + x) with x = (index + 0.5) / 2^15, and 0 next to 0.",
			value: func(i int) *big.Int { return big.NewInt(factorOf(i)) }},
		{name: "log_of_factors", indexBits: 9, width: 67, begin: -256, valueCount: 512,
			about: "-ln(1 - f), 72 bits behind the point.",
			value: func(i int) *big.Int { return minusLogOfOneLess(factorOf(i), factorBits) }},
		{name: "log_of_corrections", indexBits: 9, width: 58, begin: -256, valueCount: 512,
			about: "-ln(1 - g), 72 bits behind the point: g is (index + 0.5) / 2^23, and 0 next to 0.",
			value: func(i int) *big.Int { return minusLogOfOneLess(correctionOf(i), correctionBits) }},
		{name: "log_two_units", indexBits: 4, width: 76, valueCount: 16,
			about: "index * ln 2, 72 bits behind the point.",
			value: func(i int) *big.Int { return logarithm(int64(i), big.NewRat(2, 1)) }},
		{name: "log_two_sixteens", indexBits: 5, width: 80, begin: -10, valueCount: 19,
			about: "16 * index * ln 2, 72 bits behind the point, for the exponents -160 to 143.",
			value: func(i int) *big.Int { return logarithm(16*int64(i), big.NewRat(2, 1)) }},
	}
}

// TestLogTables checks that the tables of module natural_logarithm are what their definitions make, and that the
// numbers stay within the bits that the module has for them.
func TestLogTables(t *testing.T) {
	for _, table := range logTables() {
		goldenfile.Text(t, filepath.FromSlash("generated/"+table.name+".sv"), table.module(t))
	}
	for i := range 128 { // the first and the last significand of each interval: r1, in units of 2^-33
		for _, significand := range []int64{1<<23 + int64(i)<<16, 1<<23 + int64(i+1)<<16 - 1} {
			r1 := significand*reciprocalOf(i) - 1<<33
			require.Less(t, max(r1, -1-r1), int64(1<<26), "interval %d", i)
		}
	}
	for i := -256; i < 256; i++ { // the same of r1: r2, in units of 2^-50
		for _, r1 := range []int64{int64(i) << 18, int64(i+1)<<18 - 1} {
			f := factorOf(i)
			r2 := r1<<17 - f<<33 - r1*f
			require.Less(t, max(r2, -1-r2), int64(1<<35), "interval %d", i)
		}
	}
	for i := -256; i < 256; i++ { // and of r2: r3, in units of 2^-74
		for _, r2 := range []int64{int64(i) << 27, int64(i+1)<<27 - 1} {
			g := correctionOf(i)
			r3 := r2<<24 - g<<50 - r2*g
			require.Less(t, max(r3, -1-r3), int64(1<<51), "interval %d", i)
		}
	}
}

// logModel computes as module natural_logarithm does. It has the module's tables, by the low bits of the index.
type logModel struct {
	log1, log2, log3 [512]word128
	units            [16]word128
	sixteens         [32]word128
}

// word128 is a signed number of 128 bits.
type word128 struct {
	high int64
	low  uint64
}

func (a word128) plus(b word128) word128 {
	low, carry := bits.Add64(a.low, b.low, 0)
	return word128{a.high + b.high + int64(carry), low}
}

// wordOf returns a number of at most 127 bits.
func wordOf(n *big.Int) word128 {
	modulus := new(big.Int).Lsh(big.NewInt(1), 128)
	n = new(big.Int).Mod(n, modulus)
	low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
	return word128{int64(new(big.Int).Rsh(n, 64).Uint64()), low.Uint64()}
}

func newLogModel() *logModel {
	m := new(logModel)
	fill := func(name string, entries []word128) {
		for _, table := range logTables() {
			if table.name == name {
				for index := table.begin; index < table.begin+table.valueCount; index++ {
					entries[index&(len(entries)-1)] = wordOf(table.value(index))
				}
			}
		}
	}
	fill("log_of_reciprocals", m.log1[:128])
	fill("log_of_factors", m.log2[:])
	fill("log_of_corrections", m.log3[:])
	fill("log_two_units", m.units[:])
	fill("log_two_sixteens", m.sixteens[:])
	return m
}

// significand returns the logarithm of significand / 2^23, less ln 2 if it was halved, in units of 2^-72, of which it
// has one less.
func (m *logModel) significand(significand int64) (sum word128, halved int) {
	index1 := int(significand >> 16 & 127)
	r1 := significand*reciprocalOf(index1) - 1<<33
	index2 := int(r1 >> 18)
	f := factorOf(index2)
	r2 := r1<<17 - f<<33 - r1*f
	index3 := int(r2 >> 27)
	g := correctionOf(index3)
	r3 := r2<<24 - g<<50 - r2*g
	root := r3 >> 25
	tail := r3>>2 - root*root>>27 - 1
	sum = m.log1[index1].plus(m.log2[index2&511]).plus(m.log3[index3&511]).plus(word128{tail >> 63, uint64(tail)})
	if index1 >= firstHalf {
		halved = 1
	}
	return sum, halved
}

// round returns the float32 of a sum with k ln 2.
func (m *logModel) round(sum word128, k int) float32 {
	sum = sum.plus(m.units[k&15]).plus(m.sixteens[k>>4&31])
	sign := uint32(0)
	if sum.high < 0 {
		sum, sign = word128{^sum.high, ^sum.low}, 1<<31
	}
	if sum.high == 0 && sum.low == 0 {
		return 0
	}
	zeros := bits.LeadingZeros64(uint64(sum.high))
	top := uint64(sum.high)<<zeros | sum.low>>(64-zeros) // from the first one on
	if sum.high == 0 {
		zeros = 64 + bits.LeadingZeros64(sum.low)
		top = sum.low << (zeros - 64)
	}
	exponent := uint32(127 + 127 - logarithmBits - zeros)
	normal := top >> (64 - 25) // its last bit is rounded
	return math.Float32frombits(sign | (exponent<<23 + uint32(normal>>1)&(1<<23-1) + uint32(normal&1)))
}

// TestLogModel computes logarithms as module natural_logarithm does and compares them with the kernel. For
// `make rtl-exhaustive` it takes all 2^31 positive finite float32, else those with one in 1021 of the significands and
// with the significands at both ends.
func TestLogModel(t *testing.T) {
	step := int64(1021)
	if os.Getenv("MILLRACE_RTL_EXHAUSTIVE") == "1" {
		step = 1
	}
	model := newLogModel()
	first, end := int64(1<<23), int64(1<<24)
	var significands []int64
	for s := first; s < end; s += step {
		significands = append(significands, s)
	}
	for s := range int64(256) {
		significands = append(significands, first+s, end-1-s)
	}
	var values, logarithms [512]float32
	var exponents [512]int
	for _, s := range significands {
		sum, halved := model.significand(s)
		n := 0
		for exponent := -149; exponent <= 127; exponent++ {
			if exponent < -126 && s&(1<<(-126-exponent)-1) != 0 {
				continue // the significand of a subnormal float32 ends in zeros
			}
			values[n], exponents[n] = float32(math.Ldexp(float64(s), exponent-23)), exponent
			n++
		}
		logn.LogClamped(logarithms[:n], values[:n], 0, float32(math.Inf(-1)), float32(math.Inf(1)))
		for i, exponent := range exponents[:n] {
			if got := model.round(sum, exponent+halved); got != logarithms[i] {
				require.Equal(t, logarithms[i], got, "ln %08x", math.Float32bits(values[i]))
			}
		}
	}
}
