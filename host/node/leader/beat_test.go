package leader

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestClocksThatAreApart are told of once, when they are apart, and again when they were not for a while.
func TestClocksThatAreApart(t *testing.T) {
	var log bytes.Buffer
	b := NewBeater(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	now := time.Unix(1_700_000_000, 0)
	told := func(theirs float64) bool {
		log.Reset()
		b.clock(theirs, now)
		return log.Len() > 0
	}
	assert.False(t, told(0), "it says nothing")
	assert.False(t, told(1_700_000_009))
	assert.True(t, told(1_700_000_011))
	assert.False(t, told(1_700_000_300))
	assert.False(t, told(1_700_000_001))
	assert.True(t, told(1_699_999_000))
}

// TestMembersAreLearned, up to a bound, and none twice.
func TestMembersAreLearned(t *testing.T) {
	b := NewBeater(Options{Members: []string{"http://a:1", "nothing", "unix:/run/m.sock"}, Log: slog.New(slog.DiscardHandler)})
	assert.Len(t, b.urls, 2, "what is no URL is left out")
	assert.Equal(t, 0, b.find("http://a:1"))
	assert.Equal(t, 1, b.find("unix:/run/m.sock"))
	assert.Equal(t, -1, b.find("nothing"))
	assert.Equal(t, 2, b.find("http://b:1"))
	assert.Equal(t, 2, b.find("http://b:1"))
	for i := range 2 * maxMembers {
		b.find(fmt.Sprintf("http://c:%d", i+1))
	}
	assert.Len(t, b.urls, maxMembers)
	assert.Equal(t, 0, b.find("http://a:1"))
}

// TestWhatIsWrongIsSaidOnce, and that it has ended.
func TestWhatIsWrongIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	b := NewBeater(Options{Members: []string{"http://a:1"}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range []struct {
		what string
		want string
	}{{"", ""}, {"refused", "no heartbeat"}, {"refused", ""}, {"away", "away"}, {"", "registered"}, {"", ""}} {
		log.Reset()
		b.say(c.what)
		if c.want == "" {
			assert.Empty(t, log.String())
		} else {
			assert.Contains(t, log.String(), c.want)
		}
	}
}
