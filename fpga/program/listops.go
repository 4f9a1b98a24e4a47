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
