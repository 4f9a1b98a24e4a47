package sdk_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	scheduleRegions = 4 // of the drive
	scheduleHosts   = 3 // each with a job in a region of its own
	scheduleImages  = 3 // beside the stock image
)

// eventKind is what happens at one moment of a schedule.
type eventKind int

const (
	loadEvent     eventKind = iota // a host puts an image into a slot
	activateEvent                  // a host activates an image in any region, also in that of another host's job
	switchEvent                    // a host activates an image in its own region, beside its job
	moveEvent                      // a host's job goes on in the region that no job has
	resetEvent                     // a host resets its controller
	lossEvent                      // a host's connections are cut
	killEvent                      // the process of the drive is killed with SIGKILL, and started again
	eventKinds
)

var eventNames = [eventKinds]string{"load", "activate", "switch", "move", "reset", "host loss", "kill"}

func (k eventKind) String() string { return eventNames[k] }

// scheduledEvent is an event of a schedule.
type scheduledEvent struct {
	kind   eventKind
	after  int // mini-batches of all hosts between the event before and this one
	host   int
	region int // of activateEvent and moveEvent
	image  int // of loadEvent, activateEvent and switchEvent; scheduleImages is the stock image
}

func (e scheduledEvent) String() string {
	s := fmt.Sprintf("after %d mini-batches %v", e.after, e.kind)
	switch e.kind {
	case killEvent:
		return s
	case loadEvent, switchEvent:
		return fmt.Sprintf("%s, host %d, image %d", s, e.host, e.image)
	case activateEvent:
		return fmt.Sprintf("%s, host %d, image %d, region %d", s, e.host, e.image, e.region)
	case moveEvent:
		return fmt.Sprintf("%s, host %d, region %d", s, e.host, e.region)
	}
	return fmt.Sprintf("%s, host %d", s, e.host)
}

// newSchedule returns the schedule of a seed. The job of host h begins in region h.
func newSchedule(seed uint64) []scheduledEvent {
	rng := rand.New(rand.NewPCG(seed, 1))
	free := scheduleRegions - 1
	var regionOf [scheduleHosts]int
	for h := range regionOf {
		regionOf[h] = h
	}
	events := make([]scheduledEvent, 6+rng.IntN(7))
	for i := range events {
		e := &events[i]
		e.kind = eventKind(rng.IntN(int(eventKinds)))
		e.host, e.image = rng.IntN(scheduleHosts), rng.IntN(scheduleImages+1)
		// Half of the events come at once, so that they meet what the one before has begun.
		if rng.IntN(2) == 0 {
			e.after = 1 + rng.IntN(24)
		}
		switch e.kind {
		case activateEvent:
			e.region = rng.IntN(scheduleRegions)
		case moveEvent:
			e.region, free, regionOf[e.host] = free, regionOf[e.host], free
		}
	}
	return events
}

// TestSchedulesOfSeeds: a seed always gives the same schedule, seeds give different ones, no two jobs are sent into one
// region, and few seeds have every kind of event.
func TestSchedulesOfSeeds(t *testing.T) {
	seen, kinds := map[string]bool{}, map[eventKind]int{}
	atOnce := 0
	for seed := range uint64(shortSchedules) {
		events := newSchedule(seed)
		require.Equal(t, events, newSchedule(seed))
		seen[scheduleText(events)] = true
		regionOf := [scheduleHosts]int{0, 1, 2}
		for _, e := range events {
			kinds[e.kind]++
			if e.after == 0 {
				atOnce++
			}
			require.Less(t, e.host, scheduleHosts)
			require.Less(t, e.region, scheduleRegions)
			require.LessOrEqual(t, e.image, scheduleImages)
			if e.kind == moveEvent {
				require.NotContains(t, regionOf, e.region, "seed %d: %v", seed, e)
				regionOf[e.host] = e.region
			}
		}
	}
	assert.Len(t, seen, shortSchedules)
	for k := range eventKinds {
		assert.GreaterOrEqual(t, kinds[k], 3, "%v", k)
	}
	assert.Positive(t, atOnce)
}

func scheduleText(events []scheduledEvent) string {
	var b strings.Builder
	for i, e := range events {
		fmt.Fprintf(&b, "%d: %v\n", i, e)
	}
	return b.String()
}
