package vocabulary

import (
	"errors"
	"fmt"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
)

// PartitionRows are the rows of a partition that a pass saw, in the order of the data set.
type PartitionRows struct {
	Name   string
	Digest [32]byte // see dataset.Partition.Content
	Rows   int64    // Rows counts the rows that the pipeline's filter lets pass
}

// ErrNotKept says that the ids of a row were not kept: the vocabulary was built of other data.
var ErrNotKept = errors.New("vocabulary: the ids of these rows were not kept")

// keptIDs are the ids of all rows of the pass that built a vocabulary, so that another pass over the same rows neither
// reads the keys nor looks them up.
type keptIDs struct {
	partitions map[string]keptPartition
	columns    []heldColumn // whose blocks hold ids, less the base
}

// keptPartition says which of the kept rows a partition has.
type keptPartition struct {
	digest      [32]byte
	first, rows uint64
}

// newKeptIDs returns the ids of columns, or nil if they are not those of all rows of the partitions.
func newKeptIDs(columns []heldColumn, partitions []PartitionRows) *keptIDs {
	k := &keptIDs{partitions: make(map[string]keptPartition, len(partitions)), columns: columns}
	rows := uint64(0)
	for _, p := range partitions {
		k.partitions[p.Name] = keptPartition{p.Digest, rows, uint64(p.Rows)}
		rows += uint64(p.Rows)
	}
	for i := range columns {
		if !columns[i].holdsAllRows(rows) {
			return nil
		}
	}
	return k
}

// Rows says which rows of a partition a mini-batch has.
type Rows struct {
	Partition string
	Digest    [32]byte // Digest names the contents of the partition
	First     int64    // among those that the pipeline's filter lets pass
}

// firstRowOf returns the number of a mini-batch's first row among all kept rows.
func (k *keptIDs) firstRowOf(at Rows, rows int) (uint64, error) {
	p, ok := k.partitions[at.Partition]
	first := uint64(at.First)
	if !ok || p.digest != at.Digest || first > p.rows || uint64(rows) > p.rows-first {
		return 0, fmt.Errorf("%w: rows %d to %d of %q: build the vocabulary again", ErrNotKept, at.First,
			at.First+int64(rows), at.Partition)
	}
	return p.first + first, nil
}

// keptColumn are the kept ids of one column.
type keptColumn struct {
	*keptIDs
	column int
}

// appendIDs appends the ids of rows that were found.
func appendIDs[To unit.ID](c *keptColumn, ids []To, first uint64, rows int, base To) []To {
	if column := &c.columns[c.column]; column.isWide {
		return appendKept(&column.wide, ids, first, rows, base)
	}
	return appendKept(&c.columns[c.column].narrow, ids, first, rows, base)
}

// appendKept is appendIDs of ids of one width.
func appendKept[To unit.ID, K unit.EncodedKey](h *heldKeys[K], ids []To, first uint64, rows int, base To) []To {
	for _, s := range h.sequences {
		for rows > 0 && first >= s.first && first < s.end {
			at := int(first - s.first)
			block := s.blocks[at/heldBlockKeys[K]()][at%heldBlockKeys[K]():]
			block = block[:min(len(block), rows)]
			begin := len(ids)
			ids = ids[:begin+len(block)]
			to := ids[begin:][:len(block)]
			for i, id := range block {
				to[i] = To(id) + base
			}
			first, rows = first+uint64(len(block)), rows-len(block)
		}
	}
	return ids
}
