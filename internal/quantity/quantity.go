package quantity

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

var (
	// ErrSyntax says that a text is not a number, or lacks the unit that is wanted.
	ErrSyntax = errors.New("not a number of the wanted form")
	// ErrRange says that a number is out of range.
	ErrRange = errors.New("number out of range")
)

// quantityError says what is wrong with the typed text, and wraps the kind of the error.
type quantityError struct {
	text string
	kind error
}

func (e *quantityError) Error() string { return e.text }
func (e *quantityError) Unwrap() error { return e.kind }

func fail(kind error, format string, args ...any) error {
	return &quantityError{text: fmt.Sprintf(format, args...), kind: kind}
}

// Of returns a count with its noun, which is in the plural unless n is 1.
func Of[N int | int64 | uint64](n N, noun string) string {
	if n != 1 {
		if strings.HasSuffix(noun, "ch") {
			noun += "e"
		}
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

type unit struct {
	suffix string
	factor int64
}

// byteUnits and multiples have the longer suffix first where one ends another.
var (
	byteUnits = []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"PiB", 1 << 50},
		{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"B", 1},
	}
	multiples = []unit{{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}
)

// mostText bounds the length of text that is read as a number.
const (
	mostText = 64
)

// Bytes reads a number of bytes above 0, with its unit.
func Bytes(s string) (int64, error) {
	for _, u := range byteUnits {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			return whole(s, strings.TrimSpace(digits), u.factor, "500GiB or 500GB")
		}
	}
	if _, ok := number(s); ok {
		return 0, fail(ErrSyntax, "%q lacks a unit: write %sGiB or %sGB, or %sB if it is bytes", s, s, s, s)
	}
	return 0,
		fail(ErrSyntax, "%q is not a size: write a number and B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB or PiB, as "+
			"500GiB", s)
}

// Count reads a whole number from 0 on, as 1000000, 1M or 1e6.
func Count(s string) (int64, error) {
	digits, factor := multiple(s)
	if x, ok := number(digits); ok && x.Sign() == 0 {
		return 0, nil
	}
	return whole(s, digits, factor, "1000000, 1M or 1e6")
}

// Rate reads a number from 0 on, as 2500000, 2.5M or 2.5e6.
func Rate(s string) (float64, error) {
	digits, factor := multiple(s)
	x, ok := number(digits)
	if !ok {
		return 0, fail(ErrSyntax, "%q is not a number: write a number, as 2500000, 2.5M or 2.5e6", s)
	}
	v, _ := x.Mul(x, new(big.Rat).SetInt64(factor)).Float64()
	if v < 0 || math.IsInf(v, 0) {
		return 0, fail(ErrRange, "%q: want a number from 0 on", s)
	}
	return v, nil
}

// multiple cuts off the letter that multiplies a number.
func multiple(s string) (digits string, factor int64) {
	for _, u := range multiples {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			return digits, u.factor
		}
	}
	return s, 1
}

// whole makes a whole number above 0 of digits and a factor; s is the typed text.
func whole(s, digits string, factor int64, example string) (int64, error) {
	x, ok := number(digits)
	if !ok {
		return 0, fail(ErrSyntax, "%q is not a number: write a number, as %s", s, example)
	}
	x.Mul(x, new(big.Rat).SetInt64(factor))
	switch {
	case x.Sign() <= 0:
		return 0, fail(ErrRange, "%q: want more than 0", s)
	case !x.IsInt():
		return 0, fail(ErrRange, "%q is not whole", s)
	case !x.Num().IsInt64():
		return 0, fail(ErrRange, "%q is more than %d", s, int64(math.MaxInt64))
	}
	return x.Num().Int64(), nil
}

// number reads a decimal number exactly: digits with at most one point, and an exponent of at most 30, so that no text
// makes a huge one.
func number(s string) (*big.Rat, bool) {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(s), "e")
	if len(s) > mostText || !decimal(strings.TrimPrefix(mantissa, "-"), true) {
		return nil, false
	}
	if scientific {
		sign := strings.TrimLeft(exponent, "+-")
		if len(exponent)-len(sign) > 1 || len(sign) > 2 || !decimal(sign, false) || sign > "30" && len(sign) == 2 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

// decimal reports whether s is digits, with a point among or before them if point permits one.
func decimal(s string, point bool) bool {
	digits := 0
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r == '.' && point:
			point = false
		default:
			return false
		}
	}
	return digits > 0
}
