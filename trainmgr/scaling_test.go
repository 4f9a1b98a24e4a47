package trainmgr

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// scalableStorage is a fakeStorage whose drives can be given up, and be others'.
type scalableStorage struct {
	*fakeStorage

	mu       sync.Mutex
	taken    map[string]int // by drive: how many calls find that another host has it; below 0: all
	released map[string]int // by drive
	busy     int            // how many calls of Release find a mini-batch that is still lent
}

func newScalable(t *testing.T, rows int64, holds ...[]int) *scalableStorage {
	return &scalableStorage{fakeStorage: newFake(t, rows, holds...), taken: map[string]int{}, released: map[string]int{}}
}

// isTaken counts a call for a drive, and returns an error if others have it.
func (s *scalableStorage) isTaken(drive string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[drive] == 0 {
		return nil
	}
	s.taken[drive]--
	return fmt.Errorf("drive %s: %w", drive, api.ErrTaken)
}

func (s *scalableStorage) Measure(ctx context.Context, job dataset.Digest, drive string) (api.Measurement, error) {
	if err := s.isTaken(drive); err != nil {
		return api.Measurement{}, err
	}
	return s.fakeStorage.Measure(ctx, job, drive)
}

func (s *scalableStorage) Acquire(_ context.Context, _ dataset.Digest, drive string) error {
	return s.isTaken(drive)
}

func (s *scalableStorage) Release(_ context.Context, _ dataset.Digest, drive string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 {
		s.busy--
		return api.ErrBusy
	}
	s.released[drive]++
	return nil
}

// given returns how often a drive was given up.
func (s *scalableStorage) given(drive string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released[drive]
}

// everyDrive holds two partitions on each of n drives.
func everyDrive(n int) (holds [][]int) {
	for range n {
		holds = append(holds, []int{0, 1})
	}
	return holds
}

func TestAutoscaleOptions(t *testing.T) {
	for says, o := range map[string]Options{
		"decide every -1ns":     {Autoscale: Autoscale{Every: -1}},
		"AllDrives":             {Autoscale: Autoscale{Every: 1}, AllDrives: true},
		"Autoscale and Offload": {Autoscale: Autoscale{Every: 1}, Offload: Offload{Local: newFake(t, 10, []int{0})}},
	} {
		o.Pipeline = spec()
		_, err := Submit(t.Context(), newFake(t, 100, []int{0}), o)
		require.ErrorIs(t, err, ErrOptions)
		require.ErrorContains(t, err, says)
	}
	j, err := Submit(t.Context(), newFake(t, 100, []int{0}), Options{Pipeline: spec()})
	require.NoError(t, err)
	require.ErrorIs(t, j.SetMaxDrives(1), ErrOptions, "the number is fixed")
	require.NoError(t, j.Close())
	j, err = Submit(t.Context(), newFake(t, 100, []int{0}), Options{Pipeline: spec(), Autoscale: Autoscale{Every: 1}})
	require.NoError(t, err)
	require.ErrorIs(t, j.SetMaxDrives(-1), ErrOptions)
	require.NoError(t, j.SetMaxDrives(0))
	require.NoError(t, j.SetMaxDrives(1))
	require.NoError(t, j.Close())
}

// TestAJobTakesDrivesAndGivesThemUp: while the trainer starves, as many drives run as the bound allows; the bound is
// raised and lowered while the job runs. Every row comes once, in both orders.
func TestAJobTakesDrivesAndGivesThemUp(t *testing.T) {
	for _, order := range []dataset.Order{dataset.Fastest, dataset.Deterministic} {
		t.Run(order.String(), func(t *testing.T) {
			const rows = 6000
			f := newScalable(t, rows, everyDrive(4)...)
			f.delay, f.busy = time.Millisecond, 1
			var records []autoscale.Record
			j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Order: order, SplitBatches: 4, RowsPerSecond: 1000,
				MaxDrives: 3, Autoscale: Autoscale{Every: 4 * time.Millisecond,
					Record: func(r autoscale.Record) { records = append(records, r) }}})
			require.NoError(t, err)
			require.Equal(t, 1, j.Allocation().Drives)
			want := allRows(f.fakeStorage, rows)
			phase := 0
			for mb, err := range j.MiniBatches(t.Context()) {
				require.NoError(t, err)
				for _, r := range mb.Values64 {
					require.True(t, want[r], "row %d came twice or from nowhere", r)
					delete(want, r)
				}
				r, err := j.Report(t.Context())
				require.NoError(t, err)
				switch {
				case phase == 0 && r.Autoscale.Drives == 3:
					require.NoError(t, j.SetMaxDrives(1))
					phase++
				case phase == 1 && r.Autoscale.Drives == 1 && f.given("drive1")+f.given("drive2")+f.given("drive0") >= 2:
					require.NoError(t, j.SetMaxDrives(0))
					phase++
				}
			}
			require.Empty(t, want)
			r, err := j.Report(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, phase, "%+v", r.Autoscale)
			assert.Equal(t, 1, r.Autoscale.Fewest)
			assert.GreaterOrEqual(t, r.Autoscale.Most, 3)
			assert.GreaterOrEqual(t, r.Autoscale.Changes, 2)
			assert.Equal(t, len(records), r.Autoscale.Decisions)
			assert.Equal(t, 3, records[0].Inputs.MaxDrives)
			assert.Equal(t, 4, records[0].Inputs.Holders)
			assert.Zero(t, r.Autoscale.Refused)
			require.NoError(t, j.Close())
			assert.Zero(t, f.alive.Load(), "mini-batches not released")
			assert.Zero(t, f.running.Load(), "streams not closed")
		})
	}
}

// TestADriveThatOthersHave: P of it is taken to be that of the job's other drives, and its splits are made elsewhere,
// or when it is free again. If others have every drive, the job is refused.
func TestADriveThatOthersHave(t *testing.T) {
	f := newScalable(t, 1000, []int{0}, []int{1}, []int{0, 1})
	f.taken["drive0"], f.taken["drive1"] = -1, 4
	f.delay = time.Millisecond
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), SplitBatches: 4, RowsPerSecond: 1e6,
		Autoscale: Autoscale{Every: 2 * time.Millisecond}})
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"drive0": 1000, "drive1": 1000, "drive2": 1000}, j.Allocation().P)
	rows, _ := take(t, j, -1)
	assert.Len(t, rows, 2000)
	r, err := j.Report(t.Context())
	require.NoError(t, err)
	assert.Positive(t, r.Autoscale.Refused)
	assert.Equal(t, 1, r.Autoscale.Taken, "drive 1, in the end")
	require.NoError(t, j.Close())

	f = newScalable(t, 100, []int{0}, []int{0})
	f.taken["drive0"], f.taken["drive1"] = -1, -1
	_, err = Submit(t.Context(), f, Options{Pipeline: spec(), RowsPerSecond: 1, Autoscale: Autoscale{Every: 1}})
	require.ErrorIs(t, err, api.ErrTaken)
	f.taken["drive0"] = 0
	_, err = Submit(t.Context(), f, Options{Pipeline: spec(), RowsPerSecond: 1})
	require.ErrorIs(t, err, api.ErrTaken, "a job whose drives are fixed wants all of them")
}
