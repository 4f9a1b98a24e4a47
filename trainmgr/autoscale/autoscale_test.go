package autoscale

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func drives(n int, p float64) []float64 { return slices.Repeat([]float64{p}, n) }

// TestConverges looks for the fewest drives that keep the queue above zero, from a good start, a start with too few,
// and one with too many.
func TestConverges(t *testing.T) {
	for _, c := range []struct {
		name    string
		t, p    float64
		knownT  float64
		knownP  float64
		max     int
		noBusy  bool
		want    int
		changes int // at most, after two minutes
	}{
		{name: "what was measured holds", t: 2500, p: 1000, knownT: 2500, knownP: 1000, want: 3},
		{name: "one drive is plenty", t: 300, p: 1000, knownT: 300, knownP: 1000, want: 1},
		{name: "nothing is known: from all down", t: 2500, p: 1000, want: 3},
		{name: "T was underestimated", t: 4500, p: 1000, knownT: 1000, knownP: 1000, want: 5},
		{name: "P was overestimated", t: 2500, p: 1000, knownT: 2500, knownP: 3000, want: 3},
		{name: "P was underestimated", t: 2500, p: 1000, knownT: 2500, knownP: 400, want: 3},
		{name: "the job's bound", t: 4500, p: 1000, knownT: 4500, knownP: 1000, max: 2, want: 2},
		{name: "fewer drives than are needed", t: 20000, p: 1000, knownT: 20000, knownP: 1000, want: 10},
		{name: "utilisation is not known", t: 2500, p: 1000, knownT: 2500, knownP: 1000, noBusy: true, want: 3,
			changes: 6},
		{name: "P was underestimated, utilisation is not known", t: 2500, p: 1000, knownT: 2500, knownP: 400,
			noBusy: true, want: 3, changes: 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newCluster(c.t, drives(10, c.p)...)
			s.known, s.noBusy = Inputs{T: c.knownT, P: c.knownP, MaxDrives: c.max}, c.noBusy
			s.run(600, nil)
			tail := s.history[300:]
			count := 0
			for _, n := range tail {
				if n == c.want {
					count++
				}
			}
			assert.GreaterOrEqual(t, count, len(tail)*9/10, "drives: %v", s.history)
			assert.LessOrEqual(t, s.changes(120, 600), c.changes, "it swings: %v", s.history)
			if c.max == 0 && c.want < 10 {
				assert.LessOrEqual(t, s.starvation(120, 600), 2*c.changes, "the trainer waits: %v", s.starved)
			}
			require.NoError(t, replay(s.log))
		})
	}
}

// TestTDoubles makes the trainer take twice as many rows from one second to the next.
func TestTDoubles(t *testing.T) {
	s := newCluster(2400, drives(10, 1000)...)
	s.run(300, map[int]func(){100: func() { s.t *= 2 }})
	assert.Equal(t, 3, s.history[99])
	assert.GreaterOrEqual(t, s.history[115], 5, "%v", s.history)
	assert.Equal(t, 0, s.starvation(125, 300))
	assert.Less(t, s.history[299], 8, "%v", s.history)
	assert.LessOrEqual(t, s.changes(150, 300), 1, "%v", s.history)

	// And half as much again.
	s.run(700, map[int]func(){400: func() { s.t /= 2 }})
	assert.Equal(t, 3, s.history[699], "%v", s.history[400:])
	assert.Equal(t, 0, s.starvation(450, 700))
}

// TestDriveDies: another drive takes the place of a drive that died, without a change of the number. When no spare
// drive is left, the decision names that as the reason; when drives come back, three run again.
func TestDriveDies(t *testing.T) {
	s := newCluster(2500, drives(4, 1000)...)
	s.run(200, map[int]func(){100: func() { s.dead[0] = true }})
	assert.Equal(t, 0, s.changes(1, 200), "%v", s.history)
	assert.Equal(t, 3, s.history[199])

	s.run(300, map[int]func(){201: func() { s.dead[1] = true }})
	assert.Equal(t, 2, s.history[299])
	assert.Contains(t, s.log[299].Decision.Why, "all 2 drives that hold rows run")

	s.run(400, map[int]func(){301: func() { s.dead[0], s.dead[1] = false, false }})
	assert.Equal(t, 3, s.history[310])
	assert.Equal(t, 0, s.starvation(330, 400))
}

// TestUnlikeDrives gives the law drives of different speeds, of which it knows P of the first.
func TestUnlikeDrives(t *testing.T) {
	s := newCluster(3000, 1500, 400, 400, 400, 400, 400, 400)
	s.run(600, nil)
	assert.Equal(t, 5, s.history[599], "1500 + 4 x 400 is the least above 3000: %v", s.history)
	assert.Equal(t, 0, s.starvation(200, 600))
	assert.Equal(t, 0, s.changes(200, 600))
}

// TestPause checks that a trainer that evaluates for two minutes has as many drives afterwards as before.
func TestPause(t *testing.T) {
	s := newCluster(2500, drives(10, 1000)...)
	s.run(300, map[int]func(){100: func() { s.paused = true }, 220: func() { s.resume() }})
	assert.Equal(t, 0, s.changes(1, 300), "%v", s.history)
	assert.Equal(t, "the trainer takes nothing", s.log[200].Decision.Why)
}

// TestStepsLongerThanADecision has a trainer that takes mini-batches every seven seconds from a full queue, while the
// law decides every second: drives that it does not need are given up.
func TestStepsLongerThanADecision(t *testing.T) {
	c := New(Options{})
	drives := 0
	for second := range 300 {
		drives = c.Decide(Inputs{Seconds: float64(second), T: 3500, P: 1000, Holders: 4, Running: 4, QueueBatches: 100,
			QueueLimit: 100, Blocked: true, Rows: float64(700 * (second / 7))}).Decision.Drives
		if second == 10 {
			assert.Equal(t, 4, drives, "T/P, before the trainer is seen")
		}
	}
	assert.Equal(t, 1, drives)
}

// TestDecisions checks single steps of the law, with the words of their decisions.
func TestDecisions(t *testing.T) {
	settled := State{Target: 4, Drives: 4, Seconds: 100, Stall: 5, Rows: 1e6, T: 4000, P: 1000}
	for _, c := range []struct {
		name   string
		before State
		in     Inputs
		want   int
		why    string
	}{
		{"the start", State{}, Inputs{T: 4100, P: 1000, Holders: 9}, 5, "T/P = 4100/1000"},
		{"the start, exactly", State{}, Inputs{T: 4000, P: 1000, Holders: 9}, 4, "T/P = 4000/1000"},
		{"the start, few holders", State{}, Inputs{T: 4100, P: 1000, Holders: 2}, 2, "T/P = 4100/1000; 2 can run"},
		{"the start, T not known", State{}, Inputs{P: 1000, Holders: 9}, 9, "T or P is not known: every holder runs"},
		{"no holder at all", State{}, Inputs{P: 1000}, 1, "T or P is not known: every holder runs"},
		{"hostile numbers", State{}, Inputs{T: math.Inf(1), P: math.NaN(), Seconds: -1, Holders: -3}, 1,
			"T or P is not known: every holder runs"},
		{"time stands still", settled, Inputs{Seconds: 100, Holders: 9}, 4, "no time has passed"},
		{"just changed", func() State { s := settled; s.Changed = 99; return s }(), Inputs{Seconds: 101,
			Rows: 1e6 + 4000, StallSeconds: 5.5, Holders: 9}, 4, "2.0 s since the last change: let it settle"},
		{"near empty, not for long", settled, Inputs{Seconds: 101, Rows: 1e6 + 4000, StallSeconds: 5, Holders: 9}, 4,
			"the queue has been near empty for 1.0 s"},
		{"starves", settled, Inputs{Seconds: 102, Rows: 1e6 + 7000, StallSeconds: 5.25, Holders: 9, Running: 4}, 5,
			"the trainer starved for 2.0 s: 4 drives become 5 (T 4000, P 892)"},
		{"starves, drives idle", settled, Inputs{Seconds: 102, Rows: 1e6 + 4000, StallSeconds: 6, Holders: 9,
			Running: 4, Busy: 0.2}, 4,
			"the trainer starves while the drives are 20% busy: something else holds them up"},
		{"starves, the bound", settled, Inputs{Seconds: 102, Rows: 1e6 + 4000, StallSeconds: 6, Holders: 9,
			MaxDrives: 4, Running: 4}, 4, "the trainer starves, and the job allows 4 drives at once"},
		{"full for long, busy", settled, Inputs{Seconds: 112, Rows: 1e6 + 48000, StallSeconds: 5, QueueBatches: 32,
			QueueLimit: 32, Holders: 9, Busy: 0.8}, 4, "the queue is full, and 3 drives would be 107% busy"},
		{"full for long", settled, Inputs{Seconds: 112, Rows: 1e6 + 12000, StallSeconds: 5, QueueBatches: 32,
			QueueLimit: 32, Holders: 9, Busy: 0.3}, 2,
			"the queue was full for 12.0 s and 4 drives 30% busy: 2 are enough"},
		{"full for long, utilisation not known", settled, Inputs{Seconds: 112, Rows: 1e6 + 12000, StallSeconds: 5,
			QueueBatches: 32, QueueLimit: 32, Holders: 9}, 3,
			"the queue was full for 12.0 s: 2 drives are enough (T 1149, P 1000)"},
		{"one drive", State{Target: 1, Drives: 1, Seconds: 100, Rows: 1e6}, Inputs{Seconds: 200, Rows: 2e6,
			QueueBatches: 32, QueueLimit: 32, Holders: 9}, 1, "the queue has been full for 100.0 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decide(Options{}.withDefaults(), c.before, c.in.known())
			assert.Equal(t, c.want, d.Drives)
			assert.Equal(t, c.why, d.Why)
		})
	}
}

// TestReplay writes a log as JSON, reads it, and computes its decisions again. The decisions of a changed log do not
// follow from its inputs.
func TestReplay(t *testing.T) {
	s := newCluster(3700, drives(6, 1000)...)
	s.known.T = 1000
	s.run(200, map[int]func(){60: func() { s.t = 1500 }})
	b, err := json.Marshal(s.log)
	require.NoError(t, err)
	var log []Record
	require.NoError(t, json.Unmarshal(b, &log))
	require.Equal(t, s.log, log)
	require.NoError(t, replay(log))
	require.NoError(t, replay(log[50:100]), "it may begin anywhere")

	changed := slices.Clone(log)
	changed[40].Decision.Drives++
	assert.ErrorIs(t, replay(changed), errReplay)
	changed = slices.Clone(log)
	changed[40].Inputs.StallSeconds += 100
	assert.ErrorIs(t, replay(changed), errReplay)
	assert.ErrorIs(t, replay(slices.Delete(slices.Clone(log), 40, 41)), errReplay)
}

// FuzzDecide checks that any inputs lead to a number of drives within the bounds, to a record that JSON can represent,
// and to a log that replays.
func FuzzDecide(f *testing.F) {
	f.Add(1.0, 4000.0, 1000.0, 5, 3, 2, 1.0, 32.0, 0.5, 100.0, 0.7, true, 2)
	f.Add(math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat64, math.MaxInt, 0, math.MaxInt, 0.0, 0.0,
		math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, false, 9)
	f.Add(1.0, 1e300, 1e-300, math.MaxInt, 0, 1, 0.0, 1.0, 1e-9, 1e300, 0.0, false, 9)
	f.Fuzz(func(t *testing.T, dt, T, P float64, holders, bound, running int, queue, limit, stall, rows, busy float64,
		blocked bool, steps int) {
		c := New(Options{})
		in := Inputs{T: T, P: P, Holders: holders, MaxDrives: bound, Running: running, QueueBatches: queue,
			QueueLimit: limit, Busy: busy, Blocked: blocked}
		var log []Record
		for range min(max(steps, 1), 20) {
			r := c.Decide(in)
			require.GreaterOrEqual(t, r.Decision.Drives, 1)
			require.LessOrEqual(t, r.Decision.Drives, r.Inputs.bound())
			_, err := json.Marshal(r)
			require.NoError(t, err)
			log = append(log, r)
			in.Seconds += dt
			in.StallSeconds += stall
			in.Rows += rows
		}
		require.NoError(t, replay(log))
	})
}

// TestTheLawsTimesAreOptions: where every time is a thousandth, as of a job of a few milliseconds, the decisions are
// the same. With the default time constant they are not.
func TestTheLawsTimesAreOptions(t *testing.T) {
	s := newCluster(2400, drives(10, 1000)...)
	s.noBusy, s.known = true, Inputs{T: 1000, P: 1000}
	s.run(300, map[int]func(){100: func() { s.t *= 2 }, 200: func() { s.t /= 4 }})
	require.Greater(t, s.changes(0, 300), 3)
	const unit = 1.0 / 1024 // a power of two: the sums are the same to the bit
	o := Options{Up: DefaultUp * unit, Down: DefaultDown * unit, Probe: DefaultProbe * unit,
		Settle: DefaultSettle * unit, Smooth: DefaultSmooth * unit}
	differ := func(o Options) (n int) {
		c := New(o)
		for _, r := range s.log {
			in := r.Inputs
			in.Seconds, in.StallSeconds, in.T, in.P = in.Seconds*unit, in.StallSeconds*unit, in.T/unit, in.P/unit
			if c.Decide(in).Decision.Drives != r.Decision.Drives {
				n++
			}
		}
		return n
	}
	assert.Zero(t, differ(o))
	o.Smooth = math.Inf(1) // as 0, the default
	assert.Positive(t, differ(o))
	b, err := json.Marshal(New(Options{}).Decide(Inputs{}))
	require.NoError(t, err)
	assert.NotContains(t, string(b), "smooth", "records of jobs without it are as before")
}
