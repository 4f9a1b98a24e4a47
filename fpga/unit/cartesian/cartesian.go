package cartesian

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// maxMixed is the most ids of a second list whose part of the hash is computed once for all ids of the first.
const maxMixed = 256

// MaxLength bounds Params.MaxLength.
const MaxLength = 1 << 16

var (
	// ErrMaxLength says that the bound of a row's ids is out of range.
	ErrMaxLength = errors.New("cartesian: max_length must be 1 to 65536")
	// ErrLengths says that lengths are negative, differ in number, or do not add up to the ids.
	ErrLengths = errors.New("cartesian: lengths do not match the ids")
	// ErrTooLong says that a row would make more ids than its bound.
	ErrTooLong = errors.New("too many ids")
)

// Params are the parameters of the unit.
type Params struct {
	MaxLength int64 // ids of a row, 1 to MaxLength
	Fail      bool  // a row with more ids is an error; otherwise its first ids are kept
}

// Input is a list of ids a row, one behind the other.
type Input struct {
	Lengths []int32
	IDs     []int64
}

// Lists appends the ids of all rows to ids, and their number for each row to lengths. After an error it has appended
// nothing.
func Lists(lengths []int32, ids []int64, a, b Input, p Params) ([]int32, []int64, error) {
	if p.MaxLength < 1 || p.MaxLength > MaxLength {
		return lengths, ids, fmt.Errorf("max_length is %d: %w", p.MaxLength, ErrMaxLength)
	}
	if err := checkInputs(a, b, p); err != nil {
		return lengths, ids, err
	}
	var mixed [maxMixed]uint64
	fromA, fromB := 0, 0
	for row, n := range a.Lengths {
		listA, listB := a.IDs[fromA:][:n], b.IDs[fromB:][:b.Lengths[row]]
		fromA, fromB = fromA+len(listA), fromB+len(listB)
		made := int(min(int64(len(listA))*int64(len(listB)), p.MaxLength))
		ids = slices.Grow(ids, made)
		dst := ids[len(ids):][:made]
		ids = ids[:len(ids)+made]
		if len(listB) <= maxMixed && len(listA) > 1 {
			sigridhash.MixIDs(mixed[:len(listB)], listB)
			for _, x := range listA {
				n := min(len(dst), len(listB))
				sigridhash.CombineMixed(dst[:n], mixed[:n], x)
				dst = dst[n:]
			}
		} else {
			for _, x := range listA {
				for i, y := range listB[:min(len(dst), len(listB))] {
					dst[i] = sigridhash.Combine(y, x)
				}
				dst = dst[min(len(dst), len(listB)):]
			}
		}
		lengths = append(lengths, int32(made))
	}
	return lengths, ids, nil
}

// checkInputs checks the lengths of both inputs and, if rows may be too long, the rows.
func checkInputs(a, b Input, p Params) error {
	if len(a.Lengths) != len(b.Lengths) {
		return fmt.Errorf("%d rows and %d: %w", len(a.Lengths), len(b.Lengths), ErrLengths)
	}
	var sumA, sumB int64
	for row, n := range a.Lengths {
		m := b.Lengths[row]
		if n < 0 || m < 0 {
			return fmt.Errorf("row %d has lengths %d and %d: %w", row, n, m, ErrLengths)
		}
		sumA, sumB = sumA+int64(n), sumB+int64(m)
		if p.Fail && int64(n)*int64(m) > p.MaxLength {
			return fmt.Errorf("row %d makes %d x %d ids, want at most %d: %w", row, n, m, p.MaxLength, ErrTooLong)
		}
	}
	if sumA != int64(len(a.IDs)) || sumB != int64(len(b.IDs)) {
		return fmt.Errorf("lengths add up to %d and %d, there are %d and %d ids: %w", sumA, sumB, len(a.IDs), len(b.IDs),
			ErrLengths)
	}
	return nil
}

// Scalars makes the id of the pair of each row: dst[i] of a[i] and b[i]. All have the same length. dst may be a or b.
func Scalars(dst, a, b []int64) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = sigridhash.Combine(b[i], a[i])
	}
}
