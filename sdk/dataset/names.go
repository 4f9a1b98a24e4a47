package dataset

import (
	"cmp"
	"strings"
)

// Sort is the order of the files of a data set.
type Sort uint8

// The orders of files.
const (
	SortGiven   Sort = iota // a list as given; the files of a folder or a pattern by CompareNames (the default)
	SortNatural             // all files by CompareNames
	SortName                // all files by the bytes of their names
)

// String returns given, natural or name.
func (s Sort) String() string { return nameOf(uint8(s), sortNames[:]) }

// ParseSort reads given, natural or name. The empty string is SortGiven. The error wraps ErrOptions.
func ParseSort(name string) (Sort, error) {
	if name == "" {
		return SortGiven, nil
	}
	v, err := parseName([]byte(name), sortNames[:], "sort")
	return Sort(v), err
}

// Compare compares the names of two files. If the order is SortGiven, they are files of one folder or pattern.
func (s Sort) Compare(a, b string) int {
	if s == SortName {
		return strings.Compare(a, b)
	}
	return CompareNames(a, b)
}

var sortNames = [...]string{"given", "natural", "name"}

// CompareNames compares names in natural order: byte by byte, but consecutive digits as one number, so that day_2 comes
// before day_10. Names that differ only in leading zeros are compared as bytes.
func CompareNames(a, b string) int {
	restA, restB := a, b
	for restA != "" && restB != "" {
		if isDigit(restA[0]) && isDigit(restB[0]) {
			var numberA, numberB string
			numberA, restA = cutNumber(restA)
			numberB, restB = cutNumber(restB)
			if c := cmp.Or(cmp.Compare(len(numberA), len(numberB)), strings.Compare(numberA, numberB)); c != 0 {
				return c
			}
			continue
		}
		if c := cmp.Compare(restA[0], restB[0]); c != 0 {
			return c
		}
		restA, restB = restA[1:], restB[1:]
	}
	return cmp.Or(cmp.Compare(len(restA), len(restB)), strings.Compare(a, b))
}

// cutNumber returns the digits that s begins with, without leading zeros, and what follows them.
func cutNumber(s string) (number, rest string) {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return strings.TrimLeft(s[:n], "0"), s[n:]
}

// isDigit reports whether c is a decimal digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
