package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

func TestPace(t *testing.T) {
	var p Pace
	begin := time.Unix(1000, 0)
	status := func(epoch, delivered uint64) *apiv1.JobStatus {
		return &apiv1.JobStatus{Spec: &apiv1.JobSpec{Epochs: 2}, Epoch: epoch, Minibatches: 100, Delivered: delivered,
			Rows: 1000}
	}
	_, ok := p.RowsPerSecond()
	assert.False(t, ok, "nothing was seen")
	p.Observe(begin, status(0, 0))
	_, ok = p.RowsPerSecond()
	assert.False(t, ok, "one status has no pace")
	p.Observe(begin.Add(10*time.Second), status(0, 50))
	rate, ok := p.RowsPerSecond()
	assert.True(t, ok)
	assert.InDelta(t, 50, rate, 1e-9)
	left, ok := p.Remaining(status(0, 50))
	assert.True(t, ok)
	assert.Equal(t, 30*time.Second, left, "1,500 rows at 50 a second")

	p.Observe(begin.Add(20*time.Second), status(1, 0))
	rate, _ = p.RowsPerSecond()
	assert.InDelta(t, 50, rate, 1e-9, "the pace goes on across epochs")
	for i := range 10 { // nothing moves any more
		p.Observe(begin.Add(time.Duration(30+10*i)*time.Second), status(1, 0))
	}
	rate, ok = p.RowsPerSecond()
	assert.True(t, ok)
	assert.Zero(t, rate, "what is older than the window does not count")
	_, ok = p.Remaining(status(1, 0))
	assert.False(t, ok)

	follow := status(1, 50)
	follow.Spec.Follow = true
	p.Observe(begin.Add(200*time.Second), follow)
	_, ok = p.Remaining(follow)
	assert.False(t, ok, "nobody knows how much is still to come")
	p.Observe(begin.Add(201*time.Second), status(0, 10))
	_, ok = p.RowsPerSecond()
	assert.False(t, ok, "a job that went back begins again")
}
