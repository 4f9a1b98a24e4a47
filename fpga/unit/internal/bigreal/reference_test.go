package bigreal

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The textbook's digits.
func TestConstants(t *testing.T) {
	for _, c := range []struct {
		name   string
		got    *big.Float
		digits string
	}{
		{"ln 2", Ln(Of(2)), "0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863327"},
		{"ln 10", Ln(Of(10)), "2.30258509299404568401799145468436420760110148862877297603332790096757260967735248023599721"},
		{"e", Exp(Of(1)), "2.71828182845904523536028747135266249775724709369995957496696762772407663035354759457138217"},
	} {
		want, _, err := big.ParseFloat(c.digits, 10, precision, big.ToNearestEven)
		require.NoError(t, err)
		miss, _ := New().Sub(c.got, want).Float64()
		require.Less(t, math.Abs(miss), 1e-86, c.name)
	}
	require.Zero(t, Ln(Of(1)).Sign())
	require.Zero(t, Exp(Of(0)).Cmp(Of(1)))
}

// One undoes the other.
func TestLnOfExp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y := Of(rapid.Float64Range(-300, 300).Draw(t, "y"))
		miss, _ := New().Sub(Ln(Exp(y)), y).Float64()
		require.Less(t, math.Abs(miss), math.Ldexp(1, -250))
	})
}
