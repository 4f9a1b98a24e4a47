package autoscale

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// poolSim is a pool under the law, with a clock that the test moves. Workers join some seconds after they were started.
type poolSim struct {
	state    PoolState
	in       PoolInputs
	joins    []float64 // when started workers join
	delay    float64
	last     PoolDecision
	changes  int
	reversed int // changes in the opposite direction of the previous change
	sign     int
}

func (p *poolSim) pass(seconds float64) {
	for range int(seconds) {
		p.in.Seconds++
		waiting := p.joins[:0]
		for _, at := range p.joins {
			if at <= p.in.Seconds {
				p.in.Live++
			} else {
				waiting = append(waiting, at)
			}
		}
		p.joins = waiting
		p.in.Starting = len(p.joins)
		p.in.Idle, p.in.Pooled = DefaultPoolIdle, p.in.Live
		p.last = DecidePool(p.state, p.in)
		p.state = p.last.After
		for range p.last.Start {
			p.joins = append(p.joins, p.in.Seconds+p.delay)
		}
		p.in.Live -= p.last.Stop
		for _, sign := range []int{p.last.Start, -p.last.Stop} {
			if sign != 0 {
				p.changes++
				if p.sign*sign < 0 {
					p.reversed++
				}
				p.sign = sign
			}
		}
	}
}

func TestThePoolGrowsAndShrinks(t *testing.T) {
	p := &poolSim{delay: 4, in: PoolInputs{Wanted: 12, Most: 20}}
	p.pass(2)
	assert.Zero(t, p.changes, "not at once")
	p.pass(40)
	assert.Equal(t, 12, p.in.Live)
	assert.Zero(t, p.reversed)
	began := p.changes
	assert.Greater(t, began, 2, "by doubling, not all at once")

	p.in.Wanted = 40
	p.pass(40)
	assert.Equal(t, 20, p.in.Live, "no more than the most")

	p.in.Wanted = 3
	p.pass(20)
	assert.Equal(t, 20, p.in.Live, "not at once")
	p.pass(120)
	assert.Equal(t, 3, p.in.Live)
	p.in.Wanted = 0
	p.pass(120)
	assert.Zero(t, p.in.Live)
	assert.Equal(t, 1, p.reversed)
}

// TestAWantThatSwingsChangesLittle checks the hysteresis of the law.
func TestAWantThatSwingsChangesLittle(t *testing.T) {
	p := &poolSim{delay: 1, in: PoolInputs{Wanted: 8, Most: 20}}
	p.pass(60)
	before := p.changes
	for range 100 {
		p.in.Wanted = 6
		p.pass(5)
		p.in.Wanted = 9
		p.pass(2)
	}
	assert.Equal(t, before, p.changes, "a want that lasts for a moment changes nothing")
}

func TestThePoolLooksAtItsMachines(t *testing.T) {
	idle := &poolSim{in: PoolInputs{Wanted: 8, Live: 4, Most: 20, CPU: 0.2, Buffered: 5}}
	idle.pass(30)
	assert.Equal(t, 4, idle.in.Live, "they idle, and mini-batches wait in them")
	assert.Contains(t, idle.last.Why, "something else holds the trainers up")
	assert.True(t, idle.last.Held)
	idle.in.Buffered = 0
	idle.pass(30)
	assert.Equal(t, 8, idle.in.Live, "they idle since they wait for their sources: more of them read more")

	for _, c := range []PoolInputs{{CPU: 0.9}, {Memory: 0.9}, {Network: 0.9}} {
		c.Wanted, c.Live, c.Most = 2, 8, 20
		busy := &poolSim{in: c}
		busy.pass(300)
		assert.Equal(t, 8, busy.in.Live, "seven would be more than 95 % busy: %+v", c)
		assert.True(t, busy.last.Held)
		assert.Contains(t, busy.last.Why, "use 90% of their machines")
	}
	lowered := &poolSim{in: PoolInputs{Wanted: 8, Live: 8, Most: 2, CPU: 1}}
	lowered.pass(60)
	assert.Equal(t, 2, lowered.in.Live, "the operator's bound holds, however busy they are")

	least := &poolSim{in: PoolInputs{Least: 3, Most: 20}}
	least.pass(2)
	assert.Equal(t, 3, least.in.Live+least.in.Starting+least.last.Start, "kept whatever is wanted, and at once")
	least.in.Wanted = 1
	least.pass(300)
	assert.Equal(t, 3, least.in.Live)
}

// TestWorkersThatNoJobWantsEnd checks that all of them end together after the idle time, however busy their machines
// are, except for the least number.
func TestWorkersThatNoJobWantsEnd(t *testing.T) {
	for least := range 3 {
		p := &poolSim{in: PoolInputs{Live: 8, Most: 20, Least: least, CPU: 1, Memory: 1, Network: 1}}
		p.pass(DefaultPoolIdle)
		assert.Equal(t, 8, p.in.Live, "not at once")
		assert.False(t, p.last.Held)
		p.pass(1)
		assert.Equal(t, least, p.in.Live)
		assert.Equal(t, "no job has wanted a worker for 30 s, and there are 8", p.last.Why)
	}
	d := DecidePool(PoolState{Begun: true}, PoolInputs{Seconds: 60, Live: 2, Pooled: 2, Starting: 3, Least: 1,
		Idle: 30})
	assert.Equal(t, 1, d.Stop, "a worker that is starting is not one of the least number yet")

	d = DecidePool(PoolState{Begun: true}, PoolInputs{Seconds: 60, Live: 2, Most: 20, Idle: 30})
	assert.Zero(t, d.Stop)
	assert.Equal(t, "no job has wanted a worker for 60 s, and there are 2, of which the pool started none", d.Why)
	assert.True(t, d.Held)

	p := &poolSim{in: PoolInputs{Wanted: 2, Live: 8, Most: 20, CPU: 1}}
	p.pass(300)
	p.in.Wanted = 0
	p.pass(DefaultPoolIdle - 1)
	assert.Equal(t, 8, p.in.Live, "the time in which a job wanted some does not count")
	p.pass(1)
	assert.Zero(t, p.in.Live)
}

// TestThePoolStaysWithinItsBounds holds for all inputs.
func TestThePoolStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s PoolState
		in := PoolInputs{}
		for range rapid.IntRange(1, 60).Draw(t, "decisions") {
			in.Seconds += rapid.Float64Range(-1, 20).Draw(t, "seconds")
			in.Wanted = rapid.IntRange(-1, 30).Draw(t, "wanted")
			in.Live = rapid.IntRange(0, 30).Draw(t, "live")
			in.Pooled = rapid.IntRange(0, in.Live).Draw(t, "pooled")
			in.Starting = rapid.IntRange(0, 4).Draw(t, "starting")
			in.Least, in.Most = rapid.IntRange(0, 3).Draw(t, "least"), rapid.IntRange(0, 25).Draw(t, "most")
			in.CPU = rapid.Float64().Draw(t, "cpu")
			in.Memory = rapid.Float64().Draw(t, "memory")
			in.Buffered = rapid.Float64().Draw(t, "buffered")
			d := DecidePool(s, in)
			require.Equal(t, d, DecidePool(s, in), "it is a function")
			have := in.Live + in.Starting
			require.False(t, d.Start > 0 && d.Stop > 0)
			require.GreaterOrEqual(t, d.Start, 0)
			require.GreaterOrEqual(t, d.Stop, 0)
			require.LessOrEqual(t, d.Stop, in.Pooled)
			if d.Start > 0 {
				require.LessOrEqual(t, have+d.Start, max(in.Most, in.Least))
			}
			require.GreaterOrEqual(t, have-d.Stop, min(have, in.Least))
			require.NotEmpty(t, d.Why)
			s = d.After
		}
	})
}
