package program

import (
	"fmt"
	"math"
)

// MaxNGram is the greatest length of NGram's windows.
const MaxNGram = 16

// MaxNGramIDs is the greatest number of ids that NGram with NGramRAP makes of a list.
const MaxNGramIDs = 1 << 20

// NGramMode says what NGram makes of the windows of a list.
type NGramMode uint8

// The modes. The numbers are part of the wire form.
const (
	// NGramFold makes one id of each window, folded by SigridHash's hash. A list of less than N ids has no window.
	NGramFold NGramMode = 0
	// NGramRAP lists the ids of all windows, one window behind the other, as RAP does. In a list of less than N ids the
	// only window is the list itself. A list may have MaxNGramIDs ids at most afterwards.
	NGramRAP NGramMode = 1
)

// NGram replaces a list by the ids of its windows of N consecutive ids, 1 to MaxNGram. It takes lists of Int64 whose
// scores are not used, and yields such lists. A chain has at most one NGram with NGramRAP.
type NGram struct {
	N    int64
	Mode NGramMode
}

// Unit implements [Op].
func (NGram) Unit() Unit { return UnitNGram }

// Out implements [Op].
func (NGram) Out(in Kind) Kind { return kindIf(in, Int64, Int64) }

// FixedLength makes Length neighbouring dense columns of a list of Length values, of which the sink's index is the
// first. It is the last operator of a sink that makes a list dense. A list of another length, or a null list, fails the
// slice; if Pads is set, shorter lists are filled up with Pad. Takes and yields Float32.
type FixedLength struct {
	Length uint32
	Pads   bool
	Pad    float32
}

// Unit implements [Op].
func (FixedLength) Unit() Unit { return UnitFixedLength }

// Out implements [Op].
func (FixedLength) Out(in Kind) Kind { return kindIf(in, Float32, Float32) }

// fixedLength returns the operator that makes the sink's lists dense, and false if there is none.
func (s *Sink) fixedLength() (FixedLength, bool) {
	if len(s.Ops) == 0 {
		return FixedLength{}, false
	}
	f, ok := s.Ops[len(s.Ops)-1].(FixedLength)
	return f, ok
}

// denseColumns returns how many neighbouring columns of dense a dense sink writes.
func (s *Sink) denseColumns() uint32 {
	if len(s.Ops) > 0 {
		switch o := s.Ops[len(s.Ops)-1].(type) {
		case FixedLength:
			return o.Length
		case OneHot:
			return o.Classes
		}
	}
	return 1
}

// MaxListLength is the greatest length to which ListSlice fills lists up.
const MaxListLength = 1024

// NoEnd as the end of a ListSlice is the end of the list.
const NoEnd = math.MaxInt64

// ListSlice keeps list[Start:End] of a list, as Python has it: numbers below 0 count from the list's end. If Padded,
// lists that are shorter are filled up at their end to the length of the part, and a null list, or one that holds a
// null, counts as an empty list. PadInt is used for Int64, PadFloat otherwise (exactly representable for Float32). It
// takes lists whose scores are not used.
type ListSlice struct {
	Start, End int64
	Padded     bool
	PadInt     int64
	PadFloat   float64
}

// Unit implements [Op].
func (ListSlice) Unit() Unit { return UnitListSlice }

// Out implements [Op].
func (ListSlice) Out(in Kind) Kind { return numericKind(in) }

// Length returns the length of the part in every list that is long enough. The length of a part must not depend on the
// list, and is at most MaxListLength.
func (s ListSlice) Length() (int64, error) {
	start, end := s.Start, s.End
	if start < 0 && end == NoEnd {
		end = 0 // behind the last element, which is -1
	} else if (start < 0) != (end < 0) {
		return 0, fmt.Errorf("the length of the part depends on the list")
	}
	if end <= start {
		return 0, nil
	}
	if uint64(end)-uint64(start) > MaxListLength {
		return 0, fmt.Errorf("a part of more than %d elements", MaxListLength)
	}
	return end - start, nil
}

// check checks the operator for values of a kind.
func (s ListSlice) check(in Kind) error {
	if !s.Padded {
		return nil
	}
	if _, err := s.Length(); err != nil {
		return fmt.Errorf("from %d to %d, padded: %w", s.Start, s.End, err)
	}
	if in == Float32 && !isFloat32(s.PadFloat) {
		return fmt.Errorf("pads with %v, which is no float32", s.PadFloat)
	}
	return nil
}
