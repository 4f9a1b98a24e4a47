package resolve

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
)

// TestRealNumbersCompareExactly compares numbers around every constant with their buckets' conditions.
func TestRealNumbersCompareExactly(t *testing.T) {
	constants := []float64{-math.MaxFloat64, -1, math.Nextafter(-1, 0), 0, math.SmallestNonzeroFloat64, 0.1, 1,
		math.Nextafter(1, 2), math.MaxFloat64}
	c := &filterColumn{kind: program.Float64, constants: constants}
	borders := c.borders()
	bucket := func(x float64) (n int64) { // the definition of bucketize with side: right and nan: first
		for _, b := range borders {
			if b <= x {
				n++
			}
		}
		return n
	}
	numbers := []float64{math.NaN(), math.Inf(-1), math.Inf(1), math.Copysign(0, -1), 0.5, -2}
	for _, x := range constants {
		numbers = append(numbers, x, math.Nextafter(x, math.Inf(1)), math.Nextafter(x, math.Inf(-1)))
	}
	compare := map[string]func(a, b float64) bool{
		"eq": func(a, b float64) bool { return a == b }, "ne": func(a, b float64) bool { return a != b },
		"lt": func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
		"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
		"in": func(a, b float64) bool { return a == b },
	}
	for operator, holds := range compare {
		for _, constant := range constants {
			ranges := c.condition(&pipeline.Comparison{Operator: operator,
				Values: []pipeline.Number{pipeline.Real(constant)}}).Ranges
			for _, x := range numbers {
				in := false
				for _, r := range ranges {
					in = in || bucket(x) >= r.Least && bucket(x) <= r.Greatest
				}
				assert.Equal(t, holds(x, constant), in, "%g %s %g", x, operator, constant)
			}
		}
	}
	for _, unsigned := range []bool{false, true} {
		whole := &filterColumn{kind: program.Int64, unsigned: unsigned}
		for operator, holds := range compare {
			for _, constant := range []int64{math.MinInt64, -1, 0, 7, math.MaxInt64} {
				ranges := whole.condition(&pipeline.Comparison{Operator: operator,
					Values: []pipeline.Number{pipeline.Int(constant)}}).Ranges
				for _, x := range []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 6, 7, 8, math.MaxInt64 - 1,
					math.MaxInt64} {
					in := false
					for _, r := range ranges {
						in = in || x >= r.Least && x <= r.Greatest
					}
					order := float64(0)
					if unsigned && x < 0 { // it is at least 2^63, more than any constant
						order = 1
					} else if x < constant {
						order = -1
					} else if x > constant {
						order = 1
					}
					assert.Equal(t, holds(order, 0), in, "%d %s %d", x, operator, constant)
				}
			}
		}
	}
}
