package drives

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
)

func TestUtilization(t *testing.T) {
	var u utilization
	now := time.Unix(1, 0)
	_, ok := u.add(5*time.Second, now)
	assert.False(t, ok, "there is no interval yet")
	threads, ok := u.add(6*time.Second, now.Add(2*time.Second))
	assert.True(t, ok)
	assert.InDelta(t, 0.5, threads, 1e-9)
	_, ok = u.add(0, now.Add(3*time.Second))
	assert.False(t, ok, "the drive was reset")
	threads, ok = u.add(2*time.Second, now.Add(4*time.Second))
	assert.True(t, ok)
	assert.InDelta(t, 2, threads, 1e-9)
}

func TestQuestionsDrive(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("connection reset"):                         true,
		fmt.Errorf("split: %w", processor.ErrPanic):            true,
		splits.ErrStopped:                                      false,
		splits.ErrDraining:                                     false,
		fmt.Errorf("d0: %w: x", errorcode.ErrUnavailable):      false,
		fmt.Errorf("d0: %w", host.ErrSuspended):                false,
		fmt.Errorf("d0: %w", sdk.ErrRegionOwned):               false,
		fmt.Errorf("page 3: %w", partition.ErrData):            false,
		fmt.Errorf("%w", context.Canceled):                     false,
		fmt.Errorf("the drive has no stream: %w", api.ErrBusy): false,
	} {
		assert.Equal(t, want, questionsDrive(err), "%v", err)
	}
}

// TestADriveThatDoesNotOpen checks what a Set says of a drive before it was tried, and after it has failed.
func TestADriveThatDoesNotOpen(t *testing.T) {
	manager, err := host.NewManager(host.Options{})
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	changed := make(chan struct{}, 10)
	s := New(Options{
		Node: "n0", Drives: []Config{{Name: "d0", URI: "file:/nonexistent/flash"}}, Manager: manager, Log: log,
		Splits:  splits.New(splits.Options{Log: log, Fence: func() uint64 { return 0 }}),
		Owner:   func(string) *csd.Owner { return nil },
		Changed: func() { changed <- struct{}{} },
	})
	assert.Equal(t, "drive d0 is being opened", s.Unready())
	assert.Equal(t, "d0", s.NotOpen())
	ctx, stop := context.WithCancel(t.Context())
	s.Start(ctx)
	<-changed
	assert.Contains(t, s.Unready(), "none of 1 drives is ready: d0 is failed: ")
	_, err = s.Drive("d0")
	require.ErrorIs(t, err, errorcode.ErrUnavailable)
	_, err = s.Drive("d1")
	require.ErrorIs(t, err, api.ErrUnknownDrive)
	require.ErrorIs(t, s.SetDrained("d1", true), api.ErrUnknownDrive)
	require.NoError(t, s.Known("d0"))
	stop()
	s.Wait()
	require.NoError(t, manager.Close())
}

// TestAReadyDriveTakesSplits checks that a drive takes splits by the time at which it is called ready, and refuses them
// if it was drained before.
func TestAReadyDriveTakesSplits(t *testing.T) {
	for _, drained := range []bool{false, true} {
		manager, err := host.NewManager(host.Options{})
		require.NoError(t, err)
		log := slog.New(slog.DiscardHandler)
		errOpened := errors.New("the split was opened")
		table := splits.New(splits.Options{
			Log: log, Fence: func() uint64 { return 0 }, Failed: func(string, error) {},
			Open: func(context.Context, api.SplitRequest) (api.Stream, error) { return nil, errOpened },
		})
		ready := make(chan error, 1)
		var s *Set
		s = New(Options{
			Node: "n0", Drives: []Config{{Name: "d0", URI: "mem:?size=1MiB&slm=32MiB"}}, Manager: manager, Log: log,
			Splits: table, Owner: func(string) *csd.Owner { return nil },
			Changed: func() {
				if s.Statuses()[0].Ready() {
					request := splits.Request{Key: splits.Key{Drive: "d0"}, Split: dataset.Split{Fragments: 1}, Until: 1}
					_, err := table.Get(t.Context(), request, func() {})
					ready <- err
				}
			},
		})
		if drained {
			require.NoError(t, s.SetDrained("d0", true))
		}
		ctx, stop := context.WithCancel(t.Context())
		s.Start(ctx)
		want := errOpened
		if drained {
			want = splits.ErrDraining
		}
		require.ErrorIs(t, <-ready, want)
		stop()
		s.Wait()
		table.Close()
		require.NoError(t, manager.Close())
	}
}
