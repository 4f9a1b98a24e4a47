package autoscale

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestHoldersComeFirst: if there are fewer holders than T/P wants, workers of any reach make up the difference.
func TestHoldersComeFirst(t *testing.T) {
	for name, c := range map[string]struct {
		in              Inputs
		drives, workers int
	}{
		"holders are enough":        {Inputs{T: 300, P: 100, Holders: 4, Workers: 9}, 3, 0},
		"just enough":               {Inputs{T: 300, P: 100, Holders: 3, Workers: 9}, 3, 0},
		"two are missing":           {Inputs{T: 500, P: 100, Holders: 3, Workers: 9}, 3, 2},
		"more than there are":       {Inputs{T: 5000, P: 100, Holders: 3, Workers: 9}, 3, 9},
		"nobody holds anything":     {Inputs{T: 500, P: 100, Workers: 9}, 1, 5},
		"no worker":                 {Inputs{T: 500, P: 100, Holders: 3}, 3, 0},
		"T is not known":            {Inputs{P: 100, Holders: 3, Workers: 9}, 3, 0},
		"T is not known, no holder": {Inputs{P: 100, Workers: 9}, 1, 9},
		"some can be started":       {Inputs{T: 900, P: 100, Holders: 3, Workers: 1, Startable: 4}, 3, 5},
		"start with one":            {Inputs{P: 100, Startable: 4}, 1, 1},
		"start with what lives":     {Inputs{P: 100, Workers: 2, Startable: 4}, 1, 2},
		"the job allows four":       {Inputs{T: 900, P: 100, Holders: 3, Workers: 9, MaxDrives: 4}, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Options{}).Decide(c.in).Decision
			assert.Equal(t, c.drives, d.Drives)
			assert.Equal(t, c.workers, d.Workers)
		})
	}
}

// TestAStarvingTrainerGetsWorkers checks that a trainer that starves gets workers although the holders suffice by T/P,
// and gives them up when its queue is full and they idle.
func TestAStarvingTrainerGetsWorkers(t *testing.T) {
	c := New(Options{})
	in := Inputs{T: 200, P: 100, Holders: 2, Workers: 4, Running: 2, QueueLimit: 32, Busy: 1}
	var log []Record
	decide := func(seconds float64) Decision {
		in.Seconds += seconds
		log = append(log, c.Decide(in))
		return log[len(log)-1].Decision
	}
	assert.Zero(t, decide(1).Workers)
	for range 10 { // the trainer takes more than it said
		in.StallSeconds += 0.5
		in.Rows += 200
		decide(1)
	}
	last := log[len(log)-1].Decision
	assert.Equal(t, 2, last.Drives)
	assert.Positive(t, last.Workers, last.Why)
	in.Running, in.Busy, in.Blocked, in.QueueBatches = 2+last.Workers, 0.2, true, 32
	for range 60 {
		in.Rows += 200
		decide(1)
	}
	assert.Zero(t, log[len(log)-1].Decision.Workers, log[len(log)-1].Decision.Why)
	require.NoError(t, replay(log))
}

// TestNoMoreThanThereAre checks that no decision exceeds the drives and workers that can run, for all inputs.
func TestNoMoreThanThereAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Options{})
		in := Inputs{T: rapid.Float64Range(0, 1e4).Draw(t, "T"), P: rapid.Float64Range(0, 1e3).Draw(t, "P")}
		for range rapid.IntRange(1, 40).Draw(t, "decisions") {
			in.Seconds += rapid.Float64Range(0, 5).Draw(t, "seconds")
			in.Holders = rapid.IntRange(0, 5).Draw(t, "holders")
			in.Workers = rapid.IntRange(0, 5).Draw(t, "workers")
			in.Startable = rapid.IntRange(0, 3).Draw(t, "startable")
			in.MaxDrives = rapid.IntRange(0, 6).Draw(t, "most")
			in.StallSeconds += rapid.Float64Range(0, 2).Draw(t, "stall")
			in.Rows += rapid.Float64Range(0, 1e4).Draw(t, "rows")
			d := c.Decide(in).Decision
			require.LessOrEqual(t, d.Workers, in.Workers+in.Startable)
			require.LessOrEqual(t, d.Drives, max(in.Holders, 1))
			require.Positive(t, d.Drives)
			if d.Workers > 0 && in.Holders > 0 {
				require.Equal(t, in.Holders, d.Drives, "workers only beside all holders")
			}
			if in.MaxDrives > 0 && in.Holders > 0 {
				require.LessOrEqual(t, d.Drives+d.Workers, in.MaxDrives)
			}
		}
	})
}
