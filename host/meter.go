package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/steadyrate"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/selection"
)

// meter measures P of a drive for a job: the steady rate, without the opening, the windows whose sizes are learned, and
// the first touch of memory.
type meter struct {
	job       *job
	drive     *Drive
	processor *driveProcessor
	least     time.Duration
	on        *api.Source      // the partition that a drive of reach any is measured on; nil: any of the job
	clock     func() time.Time // time.Now, but for tests
	jobRows   int64            // jobRows is how many of the job's rows the drive makes; 0 means that it is not known.
}

// shortShare is the part of the least time after which a measurement may find that its job is too short for it.
const shortShare = 10

// tooShort reports whether the job is too short to go on measuring, by the rate so far.
func (m *meter) tooShort(elapsed time.Duration, steady *steadyrate.Meter) bool {
	if m.jobRows == 0 || elapsed < m.least/shortShare {
		return false
	}
	r := steady.Rate()
	return r.Count > 0 && float64(m.jobRows) < r.PerSecond*api.ShortJob*m.least.Seconds()
}

// measure preprocesses partitions, over and over, for the least time and until the rate has settled or the limit of
// package steadyrate is reached. made is how many rows were made, with those that do not count.
func (m *meter) measure(ctx context.Context) (p api.Measurement, made int64, err error) {
	parts, done, err := m.partitions(ctx)
	if err != nil {
		return p, 0, err
	}
	defer done()
	return m.measureOn(ctx, parts, m.drive.streams())
}

// measureOn measures with a number of streams over partitions.
func (m *meter) measureOn(ctx context.Context, parts []meteredPartition,
	streams int) (p api.Measurement, made int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // guards all below
		first   error
		settled bool
		short   bool
		steady  = steadyrate.New(m.least, streams)
		begin   = m.clock()
	)
	for i := range streams {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := m.run(ctx, parts, i, func(n int) bool {
				mu.Lock()
				defer mu.Unlock()
				made += int64(n)
				if !settled { // the last mini-batches of the other streams do not count
					elapsed := m.clock().Sub(begin)
					settled = !steady.Add(elapsed, int64(n))
					short = !settled && m.tooShort(elapsed, steady)
					settled = settled || short
				}
				return !settled
			})
			if err != nil {
				mu.Lock()
				if first == nil { // the others end because of it
					first = err
				}
				mu.Unlock()
				cancel()
			}
		}()
	}
	wg.Wait()
	r := steady.Rate()
	switch {
	case first != nil:
		return p, made, first
	case r.Count == 0:
		return p, made, errors.New("it holds no rows")
	}
	return api.Measurement{RowsPerSecond: r.PerSecond, Rows: r.Count, Elapsed: r.Elapsed, Spread: r.Spread,
		Settled: r.Settled, Short: short}, made, nil
}

// run preprocesses partitions, from the i-th on, until more reports false.
func (m *meter) run(ctx context.Context, parts []meteredPartition, i int, more func(rows int) bool) error {
	batch := m.job.Plan.Batch
	if len(parts) == 0 {
		return nil
	}
	for turn := 0; ; turn++ {
		part := parts[(i+turn)%len(parts)]
		s, err := m.processor.Open(ctx, processor.Run{Partition: part.Partition, Rows: part.rows, Batch: batch,
			Selected: part.selected})
		if err != nil {
			return err
		}
		for {
			mb, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return errors.Join(err, s.Close())
			}
			// As a stream of the job does: deduplicating is a part of the work, and has its part in P.
			unique, err := mb.Deduplicate()
			if err != nil {
				mb.Release()
				return errors.Join(err, s.Close())
			}
			n := unique.Rows
			unique.Release()
			if !more(n) {
				return s.Close()
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
}

// meteredPartition is a partition that P is measured on.
type meteredPartition struct {
	*partition.Partition
	rows     int64           // rows is how many the job's mini-batches are made of.
	selected *selection.Rows // selected says which rows these are; nil means all.
}

// partitions returns the job's partitions on the drive that have rows for the job; of a drive of reach any, one. done
// ends their use.
func (m *meter) partitions(ctx context.Context) (list []meteredPartition, done func(), err error) {
	if m.drive.elsewhere != nil {
		return m.partitionElsewhere(ctx)
	}
	for i := range m.job.Manifest.Partitions {
		p, err := m.job.partition(m.drive, i)
		if rows, selected := m.job.rows(i); err == nil && rows > 0 {
			list = append(list, meteredPartition{p, rows, selected})
		}
	}
	return list, func() {}, nil
}

// partitionElsewhere opens the partition that the measurement was asked for on, or the first one with rows.
func (m *meter) partitionElsewhere(ctx context.Context) (list []meteredPartition, done func(), err error) {
	index := -1
	if m.on != nil {
		index = m.job.Manifest.Find(m.on.Partition)
		if index >= 0 {
			m.drive.elsewhere.from.Learn(m.job.Digest, []api.Source{*m.on})
		}
	}
	for i := 0; index < 0 && i < len(m.job.Manifest.Partitions); i++ {
		if rows, _ := m.job.rows(i); rows > 0 {
			index = i
		}
	}
	if index < 0 {
		return nil, func() {}, nil
	}
	part, err := m.job.openPartition(ctx, m.drive, index)
	if err != nil {
		return nil, nil, err
	}
	rows, selected := m.job.rows(index)
	return []meteredPartition{{part.Partition, rows, selected}}, part.done, nil
}
