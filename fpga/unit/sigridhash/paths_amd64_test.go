//go:build !purego

package sigridhash

import (
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// The kernel that runs depends on the variant and on the divisor.
func TestPathsOfVariants(t *testing.T) {
	name := func(kernel any) string {
		name := runtime.FuncForPC(reflect.ValueOf(kernel).Pointer()).Name()
		return strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "512")
	}
	for _, c := range []struct {
		variant simd.Variant
		max     int64
		want    string
	}{
		{simd.Products, 2, "hashSmall"},
		{simd.Products, 1<<14 - 1, "hashSmall"},
		{simd.Products, 1 << 14, "hashWide"},
		{simd.Products, math.MaxInt64, "hashWide"},
		{simd.Shifts, 2, "hashShiftsSmall"},
		{simd.Shifts, 1<<14 - 1, "hashShiftsSmall"},
		{simd.Shifts, 1 << 14, "hashShiftsWide"},
		{simd.Shifts, 1 << 31, "hashShiftsWide"},
		{simd.Shifts, 1<<31 + 1, "hashWide"},
		{simd.Shifts, math.MaxInt64, "hashWide"},
	} {
		restore := simd.ForceVariant(c.variant)
		h, err := New(Params{Max: c.max})
		require.NoError(t, err)
		require.Equal(t, c.want, name(h.kernel512()), "%v, max %d", c.variant, c.max)
		require.Equal(t, c.want+"To32x", name(h.kernel32x512()), "%v, max %d", c.variant, c.max)
		restore()
	}
}
