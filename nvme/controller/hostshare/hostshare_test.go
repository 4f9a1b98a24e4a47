package hostshare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestTheBudgetOfHosts holds the rule from both sides of each limit, with times that the test makes up.
func TestTheBudgetOfHosts(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }
	b := New(0.25, at(0))
	assert.False(t, b.LimitsCommands(at(0)), "no region has computed yet")
	assert.Zero(t, b.TimeToWait(at(0)))
	b.PayForCommand(50 * ms)
	assert.Zero(t, b.TimeToWait(at(0)), "time that was used while no region computed is not owed")

	b.BeginExecution()
	b.BeginExecution()
	b.EndExecution(at(ms))
	assert.True(t, b.LimitsCommands(at(time.Hour)), "one region computes still")
	assert.Zero(t, b.TimeToWait(at(time.Hour)))
	b.PayForCommand(burst)
	assert.Zero(t, b.TimeToWait(at(time.Hour)), "the burst is used up, and nothing is owed")
	b.PayForCommand(ms)
	hour := time.Hour
	assert.Equal(t, 4*ms+1, b.TimeToWait(at(hour)), "at a quarter of the time, a millisecond costs four")
	assert.Positive(t, b.TimeToWait(at(hour+4*ms-2)))
	assert.Zero(t, b.TimeToWait(at(hour+4*ms+4)), "parts of a nanosecond are not kept")
	b.PayForCommand(2 * ms)
	assert.Positive(t, b.TimeToWait(at(hour+11*ms)))
	assert.Zero(t, b.TimeToWait(at(hour+13*ms)))
	assert.Zero(t, b.TimeToWait(at(2*hour)), "an hour without commands saves up")
	b.PayForCommand(burst + 4)
	assert.Equal(t, time.Duration(17), b.TimeToWait(at(2*hour)), "no more than the burst")

	b.EndExecution(at(2 * hour))
	assert.True(t, b.LimitsCommands(at(2*hour+Linger-1)), "the next slice of a job may follow")
	assert.Positive(t, b.TimeToWait(at(2*hour)))
	assert.False(t, b.LimitsCommands(at(2*hour+Linger)))
	assert.Zero(t, b.TimeToWait(at(2*hour+Linger)))
}
