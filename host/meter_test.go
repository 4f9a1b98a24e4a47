package host

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/steadyrate"
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

// timedProcessor is a processor, and its only stream, that yields mini-batches of 100 rows for ever. Each takes the
// time that took returns, on the processor's own clock.
type timedProcessor struct {
	processor.Processor
	now    time.Time
	opened time.Duration // that opening takes
	took   func(batch int) time.Duration
	made   int
	rows   int64 // of the job; 0: not known
	err    error // of the 1000th mini-batch and of later ones; nil: none
}

// Open implements processor.Processor.
func (p *timedProcessor) Open(context.Context, processor.Run) (processor.Stream, error) {
	p.now = p.now.Add(p.opened)
	return p, nil
}

// Next implements processor.Stream.
func (p *timedProcessor) Next(context.Context) (*tensor.MiniBatch, error) {
	p.now = p.now.Add(p.took(p.made))
	if p.made++; p.made >= 1000 && p.err != nil {
		return nil, p.err
	}
	return tensor.New(&tensor.Schema{}, 100, nil), nil
}

// Close implements processor.Stream.
func (p *timedProcessor) Close() error { return nil }

// measure measures P on one stream.
func (p *timedProcessor) measure(t *testing.T, least time.Duration) (api.Measurement, int64, time.Duration, error) {
	t.Helper()
	begin := p.now
	m := meter{job: &job{Job: api.Job{Plan: dataset.Options{Batch: 100}}}, least: least,
		processor: &driveProcessor{Processor: p}, clock: func() time.Time { return p.now }, jobRows: p.rows}
	parts := []meteredPartition{{&partition.Partition{Rows: 1 << 40}, 1 << 40, nil}}
	rate, made, err := m.measureOn(t.Context(), parts, 1)
	return rate, made, p.now.Sub(begin), err
}

// TestPIsThatOfTheSteadyState checks that a slow opening and slow first slices do not count, and that a short
// measurement agrees with a long one.
func TestPIsThatOfTheSteadyState(t *testing.T) {
	for _, least := range []time.Duration{500 * time.Millisecond, 5 * time.Second} {
		p := &timedProcessor{opened: 200 * time.Millisecond, took: func(batch int) time.Duration {
			slower := max(0, 10-batch) // the first ten learn
			return time.Duration(40+15*slower+batch%3) * time.Millisecond
		}}
		rate, made, took, err := p.measure(t, least)
		require.NoError(t, err)
		assert.InEpsilon(t, 100/0.041, rate.RowsPerSecond, 0.05, "%v", least)
		assert.True(t, rate.Settled)
		assert.Positive(t, rate.Spread)
		assert.LessOrEqual(t, rate.Spread, steadyrate.Goal)
		assert.Greater(t, made, rate.Rows, "the slow rows were made and do not count")
		assert.GreaterOrEqual(t, took, least)
		assert.Less(t, took, steadyrate.Limit(least))
	}
}

// TestPOfAShortJob checks that P of a job that is shorter than five measurements is that of its first mini-batches, and
// that the measurement of a longer one goes on.
func TestPOfAShortJob(t *testing.T) {
	const least = 500 * time.Millisecond
	for rows, short := range map[int64]bool{1: true, 12_000: true, 13_000: false, 0: false} {
		p := &timedProcessor{rows: rows, took: func(int) time.Duration { return 20 * time.Millisecond }}
		rate, made, took, err := p.measure(t, least)
		require.NoError(t, err)
		assert.Equal(t, short, rate.Short, "%d rows", rows)
		assert.InEpsilon(t, 5000, rate.RowsPerSecond, 1e-9)
		if short {
			assert.LessOrEqual(t, took, 2*least/shortShare)
			assert.LessOrEqual(t, made, int64(500))
		} else {
			assert.GreaterOrEqual(t, took, least)
			assert.True(t, rate.Settled)
		}
	}
}

// TestPThatDoesNotSettle checks that the measurement ends at its limit and tells the spread.
func TestPThatDoesNotSettle(t *testing.T) {
	const least = 500 * time.Millisecond
	p := &timedProcessor{took: func(batch int) time.Duration {
		if batch*batch%11 == 5 { // every now and then
			return 400 * time.Millisecond
		}
		return 20 * time.Millisecond
	}}
	rate, made, took, err := p.measure(t, least)
	require.NoError(t, err)
	assert.False(t, rate.Settled)
	assert.Greater(t, rate.Spread, steadyrate.Goal)
	assert.LessOrEqual(t, rate.Rows, made)
	assert.GreaterOrEqual(t, took, steadyrate.Limit(least))
	assert.Less(t, took, steadyrate.Limit(least)+time.Second, "the mini-batch that passes the limit is the last one")
}

// TestPOfAProcessorThatFails checks that its error is returned, however late it comes.
func TestPOfAProcessorThatFails(t *testing.T) {
	broken := errors.New("broken")
	p := &timedProcessor{err: broken, took: func(int) time.Duration { return time.Millisecond }}
	_, _, _, err := p.measure(t, 2*time.Second)
	require.ErrorIs(t, err, broken)
	_, _, _, err = (&timedProcessor{took: p.took}).measure(t, 2*time.Second)
	require.NoError(t, err)
}
