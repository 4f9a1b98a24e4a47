package selection

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// Reducer makes a selection: it tests rows, by the mini-batches of a pass over the columns of a filter or by the names
// and numbers of rows alone.
type Reducer struct {
	Progress func(rows int64) // Progress, if it is not nil, is called with the rows that were tested.

	*Builder
	manifest  *dataset.Manifest
	condition *Condition
}

// NewReducer begins a selection of the rows of a manifest. filter is the digest of the filter's canonical form.
func NewReducer(m *dataset.Manifest, filter dataset.Digest, c *Condition) (*Reducer, error) {
	b, err := NewBuilder(m, filter)
	return &Reducer{Builder: b, manifest: m, condition: c}, err
}

// Add tests the rows of a mini-batch. The mini-batches of a partition come in their order.
func (r *Reducer) Add(at dataset.Fragment, mb *tensor.MiniBatch) error {
	if err := r.AddRows(at.Partition, at.First, at.Rows, mb); err != nil {
		return fmt.Errorf("%s: %w", r.manifest.Partitions[at.Partition].Name, err)
	}
	return nil
}

// AddRows tests the next rows of a partition. mb holds their values; nil: the condition needs none.
func (r *Reducer) AddRows(partition int, first int64, rows int, mb *tensor.MiniBatch) error {
	passes, err := r.condition.Evaluate(&Block{Partition: r.manifest.Partitions[partition].Name, First: first, Rows: rows,
		MiniBatch: mb})
	if err != nil {
		return err
	}
	if r.Progress != nil {
		r.Progress(int64(rows))
	}
	return r.Builder.Add(partition, first, passes)
}

// numberedRows is how many rows AddNumbers tests at once.
const numberedRows = 1 << 13

// AddNumbers tests every row by its partition's name and its number alone.
func (r *Reducer) AddNumbers(ctx context.Context) error {
	for i := range r.manifest.Partitions {
		all := r.manifest.Partitions[i].Rows
		for first := int64(0); first < all; first += numberedRows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := r.AddRows(i, first, int(min(all-first, numberedRows)), nil); err != nil {
				return err
			}
		}
	}
	return nil
}
