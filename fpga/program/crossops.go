package program

import "fmt"

// HashBucket hashes an id by SplitMix64's finaliser into [0, Buckets). Takes and yields Int64.
type HashBucket struct{ Buckets int64 }

// HashCross hashes one id of each of 2 to MaxInputs inputs together into [0, Buckets): the exclusive or of their
// hashes, which are those of HashBucket. Takes scalars of Int64 and yields one, which is null if an input is.
type HashCross struct{ Buckets int64 }

// Unit implements [Op].
func (HashBucket) Unit() Unit { return UnitHashBucket }

// Unit implements [Combiner].
func (HashCross) Unit() Unit { return UnitHashCross }

// Out implements [Op].
func (HashBucket) Out(in Kind) Kind { return kindIf(in, Int64, Int64) }

// Yield implements [Combiner].
func (HashCross) Yield(inputs []ValueType) (ValueType, bool) {
	for _, in := range inputs {
		if in.Kind != Int64 || in.List {
			return ValueType{}, false
		}
	}
	return ValueType{Kind: Int64}, len(inputs) >= 2
}

// checkBuckets checks a number of buckets.
func checkBuckets(n int64) error {
	if n < 1 {
		return fmt.Errorf("%d buckets, want more than 0", n)
	}
	return nil
}
