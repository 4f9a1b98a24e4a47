package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// A watch shows rows/s, T, P, drives, each rank's queue and stall, and the time left.
func TestWatchShowsPaceAndTimeLeft(t *testing.T) {
	status := &apiv1.JobStatus{
		Id: "j-1", Spec: &apiv1.JobSpec{Name: "ads", Epochs: 1, TRowsPerSecond: 5000},
		State:       "waiting: no drive holds day_7.parquet",
		Minibatches: 100, Rows: 100_000, PRowsPerSecond: 2500, Drives: 2, DrivesWanted: 3,
		Ranks: []*apiv1.RankStatus{{
			Attached: true, Minibatches: 100, Delivered: 50, QueueBatches: 3.5, StallSeconds: 1.25,
		}},
	}
	var pace remote.Pace
	begin := time.Unix(0, 0)
	pace.Observe(begin, status)
	status.Delivered = 50
	pace.Observe(begin.Add(10*time.Second), status)
	v := viewWatch(status, &pace)

	var drawn strings.Builder
	drawWatch(&drawn, v)
	for _, want := range []string{
		"ads (j-1)", "waiting: no drive holds day_7.parquet", "[###############...............] 50.0%, 50 of 100",
		"rows/s\t5000 rows/s", "T\t5000 rows/s", "P\t2500 rows/s a drive", "2 at once, T/P wants 3", "time left\t10s",
		"0\ttrue\t50 of 100\t3.5\t1.2 s",
	} {
		assert.Contains(t, drawn.String(), want)
	}
	var line strings.Builder
	lineWatch(&line, v)
	assert.Contains(t, line.String(), "epoch 1 of 1, 50.0% delivered, 5000 rows/s, 2 drives (3 wanted), 10s left")
	assert.Equal(t, 1, strings.Count(line.String(), "\n"))

	fresh := viewWatch(status, &remote.Pace{})
	assert.Equal(t, "-", fresh.formatRate())
	assert.Equal(t, "-", fresh.formatRemaining())
	assert.Equal(t, "[....]", progressBar(7, 0, 4), "a plan that is not known yet")
	assert.Equal(t, "[####]", progressBar(9, 7, 4))
}
