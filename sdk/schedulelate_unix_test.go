//go:build unix

package sdk_test

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLateRowsAreSeen: a drive that stands still while the machine does not is late by the ruler.
func TestLateRowsAreSeen(t *testing.T) {
	s := newScheduleStage(t, scheduledJobs(t), scheduledImages(t))
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	for _, h := range s.hosts {
		working.Go(func() { h.work(ctx) })
	}
	s.awaitRuns(1)
	require.NoError(t, s.drive.cmd.Process.Signal(syscall.SIGSTOP))
	for before := s.ruler.ticks.Load(); s.ruler.ticks.Load() < before+2*lateBound; {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, s.drive.cmd.Process.Signal(syscall.SIGCONT))
	s.awaitRuns(2)
	cancel()
	working.Wait()
	for _, h := range s.hosts {
		assert.Greater(t, slices.Max(h.late), uint64(lateBound), h.name)
	}
	s.drive.end()
}
