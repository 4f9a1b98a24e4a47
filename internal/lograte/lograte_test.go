package lograte

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAllow(t *testing.T) {
	now := time.Unix(1, 0)
	l := Limiter{Every: time.Second, Now: func() time.Time { return now }}
	for range DefaultBurst {
		n, ok := l.Allow()
		assert.True(t, ok)
		assert.Zero(t, n)
	}
	for range 1000 {
		_, ok := l.Allow()
		assert.False(t, ok)
	}
	now = now.Add(time.Second)
	n, ok := l.Allow()
	assert.True(t, ok, "a second has passed")
	assert.Equal(t, uint64(1000), n)
	_, ok = l.Allow()
	assert.False(t, ok)
	now = now.Add(time.Hour)
	n, ok = l.Allow()
	assert.True(t, ok)
	assert.Equal(t, uint64(1), n)
	allowed := 1
	for range 100 {
		if _, ok := l.Allow(); ok {
			allowed++
		}
	}
	assert.Equal(t, DefaultBurst, allowed, "an hour of quiet is no larger a burst")
}

func TestZeroValue(t *testing.T) {
	var l Limiter
	_, ok := l.Allow()
	assert.True(t, ok)
}

// TestBurst checks a Limiter that allows one line at a time.
func TestBurst(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := Limiter{Burst: 1, Now: func() time.Time { return now }}
	n, ok := l.Allow()
	assert.True(t, ok)
	assert.Zero(t, n)
	now = now.Add(DefaultEvery - time.Millisecond)
	for range 5 {
		_, ok = l.Allow()
		assert.False(t, ok)
	}
	now = now.Add(time.Millisecond)
	n, ok = l.Allow()
	assert.True(t, ok)
	assert.Equal(t, uint64(5), n)
}
