package quantity

import "strconv"

// Integer is a type that a count may have.
type Integer interface{ ~int | ~int64 | ~uint64 }

// CountFlag is a flag that [Count] reads (pflag.Value).
type CountFlag[T Integer] struct{ To *T }

// Set reads the flag's value.
func (f CountFlag[T]) Set(s string) error {
	n, err := Count(s)
	if err == nil {
		*f.To = T(n)
	}
	return err
}

// String is the value.
func (f CountFlag[T]) String() string {
	if f.To == nil {
		return ""
	}
	return strconv.FormatInt(int64(*f.To), 10)
}

// Type is how help names the value.
func (CountFlag[T]) Type() string { return "count" }

// RateFlag is a flag that [Rate] reads (pflag.Value).
type RateFlag struct{ To *float64 }

// Set reads the flag's value.
func (f RateFlag) Set(s string) error {
	v, err := Rate(s)
	if err == nil {
		*f.To = v
	}
	return err
}

// String is the value.
func (f RateFlag) String() string {
	if f.To == nil {
		return ""
	}
	return strconv.FormatFloat(*f.To, 'f', -1, 64)
}

// Type is how help names the value.
func (RateFlag) Type() string { return "number" }

// BytesFlag is a flag that [Bytes] reads (pflag.Value).
type BytesFlag[T Integer] struct {
	To   *T
	Bare bool // the flag's name says bytes, so that a number may stand without a unit
}

// Set reads the flag's value.
func (f BytesFlag[T]) Set(s string) error {
	if _, ok := number(s); ok && f.Bare {
		s += "B"
	}
	n, err := Bytes(s)
	if err == nil {
		*f.To = T(n)
	}
	return err
}

// String is the value, in the largest unit that divides it.
func (f BytesFlag[T]) String() string {
	if f.To == nil || *f.To == 0 {
		return ""
	}
	return Text(int64(*f.To))
}

// Type is how help names the value.
func (BytesFlag[T]) Type() string { return "size" }

// Text writes a number of bytes as [Bytes] reads it, in the largest power of 1024 that divides it.
func Text(n int64) string {
	for i := 4; i >= 0; i-- {
		if u := byteUnits[i]; n != 0 && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
