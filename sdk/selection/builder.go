package selection

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/sdk/dataset"
)

// ErrRows says that a Builder was not given every row once and in order.
var ErrRows = errors.New("selection: rows")

// Builder makes a selection. It takes the rows of each partition in order; the partitions may take turns.
type Builder struct {
	selection  *Selection
	partitions []openPartition
}

// openPartition is a partition on its way through a builder.
type openPartition struct {
	bitmap  []byte // The bits of the chunk in the making.
	rows    int64  // taken so far
	passing []int  // by finished chunk
}

// NewBuilder begins a selection of the rows of a manifest. filter is the digest of the filter's canonical form.
func NewBuilder(m *dataset.Manifest, filter dataset.Digest) (*Builder, error) {
	digest, err := m.Digest()
	if err != nil {
		return nil, err
	}
	if len(m.Partitions) > maxPartitions {
		return nil, fmt.Errorf("%w: %d partitions, at most %d", ErrRows, len(m.Partitions), maxPartitions)
	}
	b := &Builder{
		selection:  &Selection{Manifest: digest, Filter: filter, partitions: make([]Rows, len(m.Partitions))},
		partitions: make([]openPartition, len(m.Partitions)),
	}
	for i := range m.Partitions {
		b.selection.partitions[i].rows = m.Partitions[i].Rows
	}
	return b, nil
}

// Add takes the outcome of the next rows of a partition, which begin at row first. The error wraps ErrRows.
func (b *Builder) Add(partition int, first int64, passes []bool) error {
	if partition < 0 || partition >= len(b.partitions) {
		return fmt.Errorf("%w: partition %d of %d", ErrRows, partition, len(b.partitions))
	}
	open, rows := &b.partitions[partition], &b.selection.partitions[partition]
	if first != open.rows || int64(len(passes)) > rows.rows-first {
		return fmt.Errorf("%w: rows %d+%d of partition %d, which has %d: want those from row %d on", ErrRows, first,
			len(passes), partition, rows.rows, open.rows)
	}
	for _, pass := range passes {
		at := int(open.rows % chunkRows)
		if at == 0 {
			open.bitmap = make([]byte, bitmapBytes(int(min(rows.rows-open.rows, chunkRows))))
		}
		if pass {
			open.bitmap[at/8] |= 1 << (at % 8)
		}
		if open.rows++; open.rows%chunkRows == 0 || open.rows == rows.rows {
			c, passing := makeChunk(open.bitmap, at+1)
			rows.chunks, open.passing, open.bitmap = append(rows.chunks, c), append(open.passing, passing), nil
		}
	}
	return nil
}

// Finish returns the selection. It wraps ErrRows if rows are missing. The builder must not be used afterwards.
func (b *Builder) Finish() (*Selection, error) {
	for i := range b.partitions {
		open, rows := &b.partitions[i], &b.selection.partitions[i]
		if open.rows != rows.rows {
			return nil, fmt.Errorf("%w: %d of the %d rows of partition %d were tested", ErrRows, open.rows, rows.rows, i)
		}
		rows.finish(open.passing)
	}
	b.selection.Digest = digestOf(b.selection.Encode())
	return b.selection, nil
}
