package presence

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// begin is the moment at which every test begins. No test reads a clock.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at returns the time that is the given number of milliseconds after begin.
func at(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }

func tracker() *Tracker {
	return New(Options{Silence: 10 * time.Second, Grace: 250 * time.Millisecond})
}

var rank0, rank1 = Rank{"ads", 0}, Rank{"ads", 1}

// TestAKilledLauncherIsMissedWithinTheGrace: its connections close, and it does not call again.
func TestAKilledLauncherIsMissedWithinTheGrace(t *testing.T) {
	p := tracker()
	p.Attach(rank0, 1, at(0))
	p.Call(rank0, 2, at(100))
	p.Closed(1, at(200))
	assert.Empty(t, p.Tick(at(5000)), "another connection is open")
	p.Call(rank0, 2, at(5000))
	p.Closed(2, at(5100))
	assert.Empty(t, p.Tick(at(5349)))
	assert.True(t, p.Of(rank0).Attached)
	gone := p.Tick(at(5350))
	assert.Equal(t, []Departure{{Rank: rank0,
		Why: "its launcher has closed its connections: it has ended, or was killed", Last: at(5000)}}, gone)
	assert.Equal(t, State{Last: at(5000), Why: gone[0].Why}, p.Of(rank0))
	assert.Empty(t, p.Tick(at(9000)), "it is told once")
}

// TestALauncherThatConnectsAnewStays: a pool closes a connection and opens another.
func TestALauncherThatConnectsAnewStays(t *testing.T) {
	p := tracker()
	p.Attach(rank0, 1, at(0))
	for i := range 50 {
		p.Closed(Conn(i+1), at(200*i+100))
		p.Call(rank0, Conn(i+2), at(200*i+300))
		assert.Empty(t, p.Tick(at(200*i+300)))
	}
	p.Closed(7, at(20000)) // long closed
	assert.True(t, p.Of(rank0).Attached)
}

// TestASilentLauncherIsMissed: a launcher that has not called for ten seconds counts as gone, although its connection
// was not closed, as after a loss of power.
func TestASilentLauncherIsMissed(t *testing.T) {
	p := tracker()
	p.Attach(rank0, 1, at(0))
	p.Attach(rank1, 0, at(5000)) // on a connection that is not watched
	assert.Empty(t, p.Tick(at(9999)))
	gone := p.Tick(at(10000))
	assert.Equal(t, []Departure{{Rank: rank0, Why: "its launcher has not called for 10s", Last: at(0)}}, gone)
	assert.Empty(t, p.Tick(at(14999)))
	assert.Len(t, p.Tick(at(15000)), 1)
	p.Call(rank0, 1, at(16000))
	assert.Equal(t, State{Attached: true, Last: at(16000)}, p.Of(rank0), "it is there again")
	p.Closed(1, at(16000))
	assert.Len(t, p.Tick(at(16250)), 1)
}

// TestALauncherThatLeavesIsMissedAtOnce: the rank is detached at once, and its connections have no effect any more.
func TestALauncherThatLeavesIsMissedAtOnce(t *testing.T) {
	p := tracker()
	p.Attach(rank0, 1, at(0))
	p.Leave(rank0, at(10))
	p.Leave(rank0, at(20))
	p.Leave(rank1, at(20)) // never came
	p.Closed(1, at(30))
	assert.Equal(t, []Departure{{Rank: rank0, Why: "its launcher has ended", Last: at(10)}}, p.Tick(at(40)))
	assert.Empty(t, p.Tick(at(20000)))
	assert.Zero(t, p.Of(rank1))

	p.Call(rank0, 2, at(30000))
	p.Leave(rank0, at(30000))
	p.Call(rank0, 2, at(30001))
	assert.Empty(t, p.Tick(at(30002)), "it has come back")
	assert.True(t, p.Of(rank0).Attached)
}

// TestWhoAttachesTakesTheRankOver: the end of the former launcher's connections does not detach the new launcher.
func TestWhoAttachesTakesTheRankOver(t *testing.T) {
	p := tracker()
	p.Attach(rank0, 1, at(0))
	p.Attach(rank0, 2, at(100))
	p.Closed(1, at(200))
	assert.Empty(t, p.Tick(at(1000)))
	assert.True(t, p.Of(rank0).Attached)
	p.Closed(2, at(1000))
	assert.Len(t, p.Tick(at(1250)), 1)
}

// TestSeveralRanksOnOneConnection: one process serves several ranks, also of several jobs.
func TestSeveralRanksOnOneConnection(t *testing.T) {
	p := tracker()
	other := Rank{"news", 0}
	for _, r := range []Rank{rank1, other, rank0} {
		p.Attach(r, 1, at(0))
	}
	p.Call(rank1, 2, at(10))
	p.Closed(1, at(100))
	var gone []Rank
	for _, d := range p.Tick(at(400)) {
		gone = append(gone, d.Rank)
	}
	assert.Equal(t, []Rank{rank0, other}, gone)
	p.Attach(rank0, 3, at(500))
	p.Leave(rank0, at(500))
	p.Forget("ads", 2)
	assert.Empty(t, p.Tick(at(60000)), "the job has ended")
	assert.Zero(t, p.Of(rank1))
	p.Closed(2, at(60000))
}

// TestNothingIsKept checks that the Tracker keeps no connection and no rank that has ended, after any order of events.
func TestNothingIsKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := tracker()
	now := 0
	for range 20_000 {
		now += rng.IntN(300)
		r, c := Rank{fmt.Sprint(rng.IntN(3)), uint32(rng.IntN(3))}, Conn(rng.IntN(6))
		switch rng.IntN(6) {
		case 0:
			p.Attach(r, c, at(now))
		case 1, 2:
			p.Call(r, c, at(now))
		case 3:
			p.Closed(c, at(now))
		case 4:
			p.Leave(r, at(now))
		case 5:
			for _, d := range p.Tick(at(now)) {
				assert.NotEmpty(t, d.Why)
			}
		}
		for r, l := range p.ranks {
			assert.Equal(t, l.Attached, l.Why == "")
			for c := range l.conns {
				assert.True(t, l.Attached)
				assert.Contains(t, p.conns[c], r)
			}
		}
		for c, ranks := range p.conns {
			assert.NotEmpty(t, ranks)
			for r := range ranks {
				assert.Contains(t, p.ranks[r].conns, c)
			}
		}
	}
	for c := range Conn(6) {
		p.Closed(c, at(now))
	}
	for j := range 3 {
		p.Forget(fmt.Sprint(j), 3)
	}
	assert.Empty(t, p.ranks)
	assert.Empty(t, p.conns)
	assert.Empty(t, p.Tick(at(now+1e6)))
}
