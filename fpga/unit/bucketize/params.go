package bucketize

import (
	"errors"
	"fmt"
)

// Side says to which side a value on a border goes.
type Side uint8

// The sides.
const (
	SideLeft  Side = iota // bucket i is (b[i-1], b[i]]; equal borders as TorchArrow
	SideRight             // bucket i is [b[i-1], b[i])
)

// NaN says where a NaN goes.
type NaN uint8

// The places of a NaN.
const (
	NaNTorchArrow NaN = iota // bucket 1, or 0 if there is one border only: what TorchArrow's search arrives at
	NaNFirst                 // bucket 0
	NaNLast                  // bucket n
	NaNFail                  // a *NaNError
)

// Compare is the type that values and borders are compared in.
type Compare uint8

// The types of comparisons.
const (
	CompareFloat32 Compare = iota
	CompareFloat64
	CompareInt64 // integer values only
)

// Params are the operator's parameters. Exactly one kind of borders is given. Under CompareFloat32 and CompareFloat64
// borders of any kind are converted to that type; CompareInt64 takes BordersI64 only.
type Params struct {
	Borders    []float32
	Borders64  []float64
	BordersI64 []int64
	Side       Side
	NaN        NaN
	Compare    Compare
}

var (
	// ErrBorders says that borders are empty, decreasing, or not numbers.
	ErrBorders = errors.New("bucketize: borders must be a non-empty, non-decreasing sequence of numbers")
	// ErrParams says that an enumerator is unknown or that borders do not fit the comparison.
	ErrParams = errors.New("bucketize: parameters do not fit together")
	// ErrCompare says that float values were given to a table that compares integers.
	ErrCompare = errors.New("bucketize: a table that compares int64 takes integer values only")
)

// NaNError names the first NaN of a slice under NaNFail.
type NaNError struct {
	Row int // Row counts from 0 in the slice given.
}

func (e *NaNError) Error() string {
	return fmt.Sprintf("bucketize: row %d is NaN, and nan is error", e.Row)
}
