package catalogue

import (
	"math"
	"strconv"
	"strings"
)

// Pos is a place in a document, from 1; the zero value is none.
type Pos struct{ Line, Column int }

// Value is the value of a parameter: a Number, a Text, Words, Borders, an IDTable or a TextTable.
type Value interface{ value() }

// Number is a number as it was written. A number without fraction and exponent is an integer, and exact up to 64 bits.
type Number struct {
	Int     int64
	Float   float64
	Integer bool // the value is Int; otherwise it is Float
}

// Text is one word of a choice.
type Text string

// Words are words of a choice.
type Words []string

// Borders are the borders of buckets: a list, or a rule that makes one.
type Borders struct {
	List      []Number
	LogSpaced *LogSpaced // instead of List
	Pos       Pos
}

// LogSpaced makes Count borders from From to To, spaced evenly on a logarithmic scale: border i is
// exp(ln From + i (ln To - ln From)/(Count-1)), correctly rounded, the ends exact.
type LogSpaced struct {
	From, To float64 // 0 < From < To
	Count    int     // at least 2
}

// IDTable is pairs of integers: keys that ascend, each with its value. Without keys (nil) the keys are 0, 1, 2 and so
// on.
type IDTable struct{ Keys, Values []int64 }

// TextTable is pairs of a text and an integer. The texts are UTF-8, ascend by their bytes, and each has its value.
type TextTable struct {
	Keys   []string
	Values []int64
}

func (IDTable) value()   {}
func (TextTable) value() {}
func (Number) value()    {}
func (Text) value()      {}
func (Words) value()     {}
func (Borders) value()   {}

// Real returns the number as the nearest float64.
func (n Number) Real() float64 {
	if n.Integer {
		return float64(n.Int)
	}
	return n.Float
}

// Int returns a whole number.
func Int(n int64) Number { return Number{Int: n, Integer: true} }

// Real returns a number that need not be whole.
func Real(x float64) Number { return Number{Float: x} }

// Float32 rounds the number once: an integer is not rounded to float64 before.
func (n Number) Float32() float32 {
	if n.Integer {
		return float32(n.Int)
	}
	return float32(n.Float)
}

// Finite reports whether the number is neither infinite nor NaN.
func (n Number) Finite() bool {
	return n.Integer || !math.IsNaN(n.Float) && !math.IsInf(n.Float, 0)
}

// Less compares exactly if both numbers are whole, and as float64 otherwise.
func (n Number) Less(m Number) bool {
	if n.Integer && m.Integer {
		return n.Int < m.Int
	}
	return n.Real() < m.Real()
}

// String writes the number in YAML, so that it reads back the same.
func (n Number) String() string {
	switch {
	case n.Integer:
		return strconv.FormatInt(n.Int, 10)
	case math.IsNaN(n.Float):
		return ".nan"
	case math.IsInf(n.Float, 1):
		return ".inf"
	case math.IsInf(n.Float, -1):
		return "-.inf"
	}
	s := strconv.FormatFloat(n.Float, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	} else if i := strings.IndexByte(s, 'e'); i >= 0 && !strings.Contains(s, ".") {
		s = s[:i] + ".0" + s[i:]
	}
	return s
}
