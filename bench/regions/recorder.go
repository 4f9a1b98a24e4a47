package regions

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

// recorder is a compute device that notes when a region executed last, and when it accepts a slice again. It watches
// one region.
type recorder struct {
	controller.Compute
	region int

	mu    sync.Mutex
	ended time.Time // when the last slice ended
	armed bool      // the next slice is the first of its image

	accepted chan time.Time // when the first slice after arm was accepted
}

func newRecorder(region int) *recorder {
	return &recorder{region: region, accepted: make(chan time.Time, 1)}
}

// wrapCompute puts the recorder around a compute device.
func (r *recorder) wrapCompute(c controller.Compute) controller.Compute {
	r.Compute = c
	return r
}

// InputRange implements controller.InputReader, so that blocks are lent as without a recorder.
func (r *recorder) InputRange() int { return r.Compute.(controller.InputReader).InputRange() }

// Execute implements controller.Compute. A slice was accepted before its blocks were moved.
func (r *recorder) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	if x.Region != r.region {
		return r.Compute.Execute(ctx, x)
	}
	r.sliceAccepted(time.Now().Add(-x.Moved))
	defer r.sliceEnded()
	return r.Compute.Execute(ctx, x)
}

func (r *recorder) sliceAccepted(accepted time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.armed {
		r.armed = false
		r.accepted <- accepted
	}
}

func (r *recorder) sliceEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = time.Now()
}

// awaitNextSlice asks for the time at which the next slice is accepted.
func (r *recorder) awaitNextSlice() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed = true
}

// lastSliceEnd returns when the last slice ended.
func (r *recorder) lastSliceEnd() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}
