package quantity

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBytes(t *testing.T) {
	for s, want := range map[string]int64{
		"1B": 1, "512B": 512, "64MiB": 64 << 20, "1GiB": 1 << 30, "500GB": 500e9, "500TB": 500e12, "1.5GiB": 3 << 29,
		"0.5KiB": 512,
		"2PiB":   2 << 50, "11.95PB": 11_950_000_000_000_000, "1e3GB": 1e12, "64 MiB": 64 << 20, "8191PiB": 8191 << 50,
		".5kB": 500,
	} {
		got, err := Bytes(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for s, want := range map[string]string{
		"500":        `"500" lacks a unit: write 500GiB or 500GB, or 500B if it is bytes`,
		"1e9":        `"1e9" lacks a unit`,
		"":           "write a number and B, kB",
		"GiB":        "write a number, as 500GiB",
		"-1GiB":      "want more than 0",
		"0B":         "want more than 0",
		"0.3B":       "is not whole",
		"8192PiB":    "is more than 9223372036854775807",
		"1XB":        "write a number, as 500GiB",
		"64mib":      "write a number and B, kB",
		"+1GiB":      "write a number",
		"1e99GiB":    "write a number",
		"0x10MiB":    "write a number",
		"1_000MiB":   "write a number",
		"infGiB":     "write a number",
		"1/2GiB":     "write a number",
		"1..5GiB":    "write a number",
		"1e+-3GiB":   "write a number",
		"1GiB extra": "write a number and B, kB",
	} {
		_, err := Bytes(s)
		assert.ErrorContains(t, err, want, s)
		assert.True(t, errors.Is(err, ErrSyntax) != errors.Is(err, ErrRange), s)
	}
}

func TestCount(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "7": 7, "3M": 3e6, "2.5k": 2500, "1e6": 1e6, "1.5e3": 1500, "2G": 2e9, "1T": 1e12, "0.0": 0,
	} {
		got, err := Count(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "-1", "1.5", "3m", "3MB", "1e30", "nan", "M", "--1", "9223372036854775808"} {
		_, err := Count(s)
		assert.Error(t, err, s)
	}
}

func TestRate(t *testing.T) {
	for s, want := range map[string]float64{
		"0": 0, "2.5M": 2.5e6, "3.0e6": 3e6, "0.25": 0.25, "1E-3": 1e-3, "200000": 2e5,
	} {
		got, err := Rate(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "-1", "NaN", "Inf", "fast", "1e31", "3MB"} {
		_, err := Rate(s)
		assert.Error(t, err, s)
	}
}

func TestTextIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		got, err := Bytes(Text(n))
		if err != nil || got != n {
			t.Fatalf("%s: %d, %v", Text(n), got, err)
		}
	})
	assert.Equal(t, "64MiB", Text(64<<20))
	assert.Equal(t, "1000B", Text(1000))
}

func FuzzQuantities(f *testing.F) {
	for _, s := range []string{"500TB", "1.5GiB", "3M", "2.5e6", "1e-30", "-.5k", "999999999999999999999999999999PiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := Bytes(s); err == nil && n <= 0 {
			t.Fatalf("%q is %d bytes", s, n)
		}
		if n, err := Count(s); err == nil && n < 0 {
			t.Fatalf("%q is %d", s, n)
		}
		if v, err := Rate(s); err == nil && !(v >= 0 && !math.IsInf(v, 0)) {
			t.Fatalf("%q is %v", s, v)
		}
	})
}

func TestOf(t *testing.T) {
	for want, got := range map[string]string{"0 columns": Of(0, "column"), "1 column": Of(1, "column"),
		"2 rows": Of(int64(2), "row"), "1 mini-batch": Of(1, "mini-batch"), "3 mini-batches": Of(3, "mini-batch")} {
		assert.Equal(t, want, got)
	}
}
