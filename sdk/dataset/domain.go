package dataset

// Domain is a use of numbers that are drawn by a hash and decide about rows. It is a part of what is hashed, so that no
// two uses share numbers, even where their keys and seeds are equal.
type Domain uint64

// The uses of drawn numbers. The sampling of a filter (sdk/selection.Sampling), which hashes with a salt, has no
// domain: with one, a filter would keep other rows. A validation split is a sampling whose salt is made of its seed and
// its domain.
const (
	DomainSplits     Domain = iota + 1 // permutes the splits of an epoch
	DomainRows                         // permutes the rows of a window
	DomainFolds                        // divides rows into the folds of a target encoding (sdk/targetencoding.Folding)
	DomainValidation                   // divides rows into training and validation (sdk/pipeline.ValidationSplit)
)
