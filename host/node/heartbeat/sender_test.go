package heartbeat

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestClocksThatAreApart checks that the log says so once, and again after the clocks agreed for a while.
func TestClocksThatAreApart(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	now := time.Unix(1_700_000_000, 0)
	warned := func(theirs float64) bool {
		log.Reset()
		s.compareClocks(theirs, now)
		return log.Len() > 0
	}
	assert.False(t, warned(0), "it says nothing")
	assert.False(t, warned(1_700_000_009))
	assert.True(t, warned(1_700_000_011))
	assert.False(t, warned(1_700_000_300))
	assert.False(t, warned(1_700_000_001))
	assert.True(t, warned(1_699_999_000))
}

// TestMembersAreLearned checks that a member named by another is remembered once, up to a bound.
func TestMembersAreLearned(t *testing.T) {
	s := New(Options{Members: []string{"http://a:1", "nothing", "unix:/run/m.sock"},
		Log: slog.New(slog.DiscardHandler)})
	assert.Len(t, s.members, 2, "what is no URL is left out")
	assert.Equal(t, 0, s.memberIndex("http://a:1"))
	assert.Equal(t, 1, s.memberIndex("unix:/run/m.sock"))
	assert.Equal(t, -1, s.memberIndex("nothing"))
	assert.Equal(t, 2, s.memberIndex("http://b:1"))
	assert.Equal(t, 2, s.memberIndex("http://b:1"))
	for i := range 2 * maxMembers {
		s.memberIndex(fmt.Sprintf("http://c:%d", i+1))
	}
	assert.Len(t, s.members, maxMembers)
	assert.Equal(t, 0, s.memberIndex("http://a:1"))
}

// TestProblemsAreLoggedOnce checks that a problem is logged once, and its end once.
func TestProblemsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Members: []string{"http://a:1"}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range []struct {
		what string
		want string
	}{{"", ""}, {"refused", "no heartbeat"}, {"refused", ""}, {"away", "away"}, {"", "registered"}, {"", ""}} {
		log.Reset()
		s.logProblem(c.what)
		if c.want == "" {
			assert.Empty(t, log.String())
		} else {
			assert.Contains(t, log.String(), c.want)
		}
	}
}
