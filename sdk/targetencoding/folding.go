package targetencoding

import (
	"cmp"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

// Bounds of the folds of a Folding.
const (
	MinFolds = 2
	MaxFolds = 16
)

// Folding divides rows into folds. With h the hash of SigridHash before its modulus, and the row's key h(number of the
// row, XXH3_64bits(name of the partition)), as in a sampling of rows, the fold of a row is the integer part of
// h(h(key, dataset.DomainFolds), Seed) / 2^64 * Folds, h as an unsigned number.
type Folding struct {
	Folds int
	Seed  int64
}

// Partition names the rows of a partition.
type Partition struct{ hash uint64 }

// NewPartition returns the names of the rows of a partition.
func NewPartition(name string) (Partition, error) {
	hash, err := selection.HashName(name)
	return Partition{uint64(hash)}, err
}

// compare orders partitions by hash.
func (p Partition) compare(q Partition) int { return cmp.Compare(p.hash, q.hash) }

// Fold returns the fold of the row of a number in the partition.
func (f Folding) Fold(p Partition, row int64) int {
	key := sigridhash.Combine(sigridhash.Combine(row, int64(p.hash)), int64(dataset.DomainFolds))
	fold, _ := bits.Mul64(uint64(sigridhash.Combine(key, f.Seed)), uint64(f.Folds))
	return int(fold)
}
