package dataset

// Domain is a use of numbers that are drawn by a hash and decide about rows. It is a part of what is hashed, so that no
// two uses share numbers, also where their keys and seeds are equal. Domains lists every use.
type Domain uint64

// The uses of drawn numbers.
const (
	// DomainSampling keeps rows in a filter (sdk/selection.Sampling). Its hash has no domain, so that it is the hash of
	// the sampling's test vectors; every other use has one.
	DomainSampling Domain = iota
	DomainSplits          // permutes the splits of an epoch
	DomainRows            // permutes the rows of a window
	DomainFolds           // divides rows into the folds of a target encoding (sdk/targetencoding.Folding)
)

// Domains lists the uses by their domain.
var Domains = [...]string{
	DomainSampling: "sampling", DomainSplits: "splits", DomainRows: "rows", DomainFolds: "folds",
}
