package summary

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value is a value of a column: an integer from -2^63 to 2^64 - 1, or a finite real number.
type Value struct {
	Int     int64
	Float   float64 // if the value is not an integer
	Integer bool    // the value is Int
	Large   bool    // the value is an integer of at least 2^63, and Int has its bits
}

// IntegerValue returns the value of an integer.
func IntegerValue(n int64) Value { return Value{Int: n, Integer: true} }

// UnsignedValue returns the value of an unsigned integer.
func UnsignedValue(n uint64) Value {
	return Value{Int: int64(n), Integer: true, Large: n > math.MaxInt64}
}

// RealValue returns the value of a real number.
func RealValue(x float64) Value { return Value{Float: x} }

// Real returns the value as the nearest float64.
func (v Value) Real() float64 {
	switch {
	case v.Large:
		return float64(uint64(v.Int))
	case v.Integer:
		return float64(v.Int)
	}
	return v.Float
}

// String returns the value in decimal: an integer without point and exponent, a real number with one of them.
func (v Value) String() string {
	switch {
	case v.Large:
		return strconv.FormatUint(uint64(v.Int), 10)
	case v.Integer:
		return strconv.FormatInt(v.Int, 10)
	}
	text := strconv.FormatFloat(v.Float, 'g', -1, 64)
	if strings.ContainsAny(text, ".e") {
		return text
	}
	return text + ".0"
}

// MarshalJSON returns the form of String.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Integer && !isFinite(v.Float) {
		return nil, fmt.Errorf("%w: the value %v is not finite", ErrDamaged, v.Float)
	}
	return []byte(v.String()), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(b []byte) error {
	var number json.Number
	if err := json.Unmarshal(b, &number); err != nil {
		return err
	}
	text := string(number)
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			*v = IntegerValue(n)
			return nil
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		*v = UnsignedValue(n)
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	*v = RealValue(x)
	return nil
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
