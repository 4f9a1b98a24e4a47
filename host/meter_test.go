package host

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// oneBatch is a processor, and its only stream, which yields one mini-batch.
type oneBatch struct {
	processor.Processor
	batch *tensor.MiniBatch
	taken bool
}

// Open implements processor.Processor.
func (o *oneBatch) Open(context.Context, processor.Run) (processor.Stream, error) {
	o.taken = false
	return o, nil
}

// Next implements processor.Stream.
func (o *oneBatch) Next(context.Context) (*tensor.MiniBatch, error) {
	if o.taken {
		return nil, io.EOF
	}
	o.taken = true
	return o.batch, nil
}

// Close implements processor.Stream.
func (o *oneBatch) Close() error { return nil }

// TestMeasuringDeduplicates checks that P counts the work of deduplicating, as the job's streams do it: a mini-batch
// whose keys are deduplicated must be valid to be measured, and one without sets is not looked at.
func TestMeasuringDeduplicates(t *testing.T) {
	measure := func(set int, values []int64) (rows, released int, err error) {
		schema := &tensor.Schema{Keys: []tensor.Key{{Name: "a", Set: set}}, IDs: tensor.Int64}
		b := tensor.New(schema, 4, func() { released++ })
		b.Values64 = values
		m := meter{job: &job{Job: api.Job{Plan: dataset.Options{Batch: 4}}},
			processor: &driveProcessor{Processor: &oneBatch{batch: b}}}
		err = m.run(t.Context(), []meteredPartition{{&partition.Partition{Rows: 4}, 4, nil}}, 0, func(n int) bool {
			rows += n
			return false
		})
		return rows, released, err
	}
	rows, released, err := measure(1, []int64{7, 7, 8, 7})
	require.NoError(t, err)
	assert.Equal(t, 4, rows, "rows are those of the mini-batch, not the different ones")
	assert.Equal(t, 1, released)
	_, released, err = measure(1, []int64{7})
	require.ErrorIs(t, err, tensor.ErrShape)
	assert.Equal(t, 1, released)
	_, _, err = measure(0, []int64{7})
	require.NoError(t, err)
}
