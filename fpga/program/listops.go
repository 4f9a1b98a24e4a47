package program

// MaxNGram is the greatest length of NGram's windows.
const MaxNGram = 16

// NGram replaces a list by the ids of its windows of N consecutive ids, 1 to MaxNGram, each folded by SigridHash's
// hash. It takes lists of Int64 whose scores are not used.
type NGram struct{ N int64 }

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
	if f, ok := s.fixedLength(); ok {
		return f.Length
	}
	return 1
}
