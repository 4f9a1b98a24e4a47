package profilepass

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The bounds of a pass that trainmgr takes.
const (
	steps = 50
	least = time.Second
)

// TestProfileMeasuresFiftySteps checks FastFlow 5.1: "FastFlow executes only a few iterations and estimates the metrics
// without processing the entire data. We empirically found that profiling 50 ~ 100 steps (batches) leads to high
// accuracy with small overheads". Steps that are shorter than the paper's are counted for a second.
func TestProfileMeasuresFiftySteps(t *testing.T) {
	for name, c := range map[string]struct {
		step            time.Duration
		warmup, counted int
	}{
		"steps of the paper":            {100 * time.Millisecond, 4, 50},
		"as long as the time":           {20 * time.Millisecond, 14, 50},
		"steps of a millisecond":        {time.Millisecond, 251, 1000},
		"steps that outlast the window": {2 * time.Second, 3, 50},
		"a clock that stands still":     {0, mostSteps * steps, mostSteps * steps},
	} {
		w := newWindow(steps, 3, least)
		begun := time.Now()
		for !w.whole() {
			w.count(10, begun.Add(time.Duration(w.seen)*c.step), time.Duration(w.seen)*c.step/2)
		}
		assert.Equal(t, c.warmup, w.begunAt, name)
		assert.Equal(t, c.warmup+c.counted, w.seen, name)
		assert.EqualValues(t, 10*c.counted, w.rows, name)
		if c.step > 0 {
			assert.InEpsilon(t, 10/c.step.Seconds(), w.measured().RowsPerSecond, 1e-9, name)
			assert.InEpsilon(t, c.step.Seconds()/20, w.measured().CPUPerRow, 1e-9, name)
		}
	}
}

// TestABufferThatWasFullIsNotMeasured profiles a side whose first mini-batches come from a buffer at once: they do not
// count.
func TestABufferThatWasFullIsNotMeasured(t *testing.T) {
	w := newWindow(steps, 3, least)
	at := time.Now()
	for !w.whole() {
		if w.seen >= 40 {
			at = at.Add(5 * time.Millisecond)
		}
		w.count(10, at, 0)
	}
	assert.InEpsilon(t, 2000, w.measured().RowsPerSecond, 1e-9)
}
