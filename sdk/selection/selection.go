package selection

import (
	"sort"

	"github.com/millrace/millrace/sdk/dataset"
)

// Selection says which rows of a data set pass a filter. Builder.Finish, Read and Load make one.
type Selection struct {
	Manifest dataset.Digest // The manifest of the data set.
	Filter   dataset.Digest // The filter's canonical form.
	Digest   dataset.Digest // SHA-256 of the selection's file

	partitions []Rows
}

// Rows are the rows of one partition that pass.
type Rows struct {
	rows   int64
	chunks []chunk
	before []int64 // by chunk: how many rows pass before it; one more at the end
}

// Partitions returns how many partitions the selection has: those of its manifest.
func (s *Selection) Partitions() int { return len(s.partitions) }

// Rows returns the passing rows of a partition, by its index in the manifest.
func (s *Selection) Rows(partition int) *Rows { return &s.partitions[partition] }

// Counts returns how many rows of each partition pass.
func (s *Selection) Counts() []int64 {
	counts := make([]int64, len(s.partitions))
	for i := range s.partitions {
		counts[i] = s.partitions[i].Passing()
	}
	return counts
}

// Passing returns how many rows of all partitions pass.
func (s *Selection) Passing() (n int64) {
	for i := range s.partitions {
		n += s.partitions[i].Passing()
	}
	return n
}

// Tested returns how many rows the partition has.
func (r *Rows) Tested() int64 { return r.rows }

// Passing returns how many rows pass.
func (r *Rows) Passing() int64 { return r.before[len(r.before)-1] }

// Row returns the number in the partition of the n-th passing row, counted from 0; n must be less than Passing.
func (r *Rows) Row(n int64) int64 {
	i := sort.Search(len(r.chunks), func(i int) bool { return r.before[i+1] > n })
	return int64(i)*chunkRows + int64(r.chunks[i].row(int(n-r.before[i])))
}

// AppendPassing appends the passing ones of count rows from first on, each as its distance from first. Rows behind the
// partition's last do not pass.
func (r *Rows) AppendPassing(list []uint32, first int64, count int) []uint32 {
	end := min(first+int64(count), r.rows)
	for i := int(first / chunkRows); i < len(r.chunks); i++ {
		begin := int64(i) * chunkRows
		if begin >= end {
			break
		}
		list = r.chunks[i].appendRows(list, int(max(first-begin, 0)), int(min(end-begin, chunkRows)), first-begin)
	}
	return list
}

// finish sets the ranks of the chunks from the passing rows of each.
func (r *Rows) finish(passing []int) {
	r.before = make([]int64, 1, len(passing)+1)
	for i, n := range passing {
		r.before = append(r.before, r.before[i]+int64(n))
	}
}
