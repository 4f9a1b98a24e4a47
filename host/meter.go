package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/selection"
)

// meter measures P of a drive for a job.
type meter struct {
	job       *job
	drive     *Drive
	processor *driveProcessor
	least     time.Duration
	on        *api.Source // the partition that a drive of reach any is measured on; nil: any of the job
}

// measure preprocesses partitions, over and over, until enough time has passed and a mini-batch was made.
func (m *meter) measure(ctx context.Context) (api.Measurement, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts, done, err := m.partitions(ctx)
	if err != nil {
		return api.Measurement{}, err
	}
	defer done()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		rows  int64
		first error
		begin = time.Now()
	)
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return rows > 0 && time.Since(begin) >= m.least
	}
	for i := range m.drive.streams() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := m.run(ctx, parts, i, func(n int) bool {
				mu.Lock()
				rows += int64(n)
				mu.Unlock()
				return !enough()
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
	elapsed := time.Since(begin)
	switch {
	case first != nil:
		return api.Measurement{}, first
	case rows == 0:
		return api.Measurement{}, errors.New("it holds no rows")
	}
	return api.Measurement{RowsPerSecond: float64(rows) / elapsed.Seconds(), Rows: rows, Elapsed: elapsed}, nil
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
	rows     int64           // that the job's mini-batches are made of
	selected *selection.Rows // which they are; nil: all
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
