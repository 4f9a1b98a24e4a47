package deploy

import (
	"fmt"

	"github.com/millrace/millrace/internal/transition"
)

// State is where a drive stands in a rollout.
type State uint8

// States of a drive. From Current on, a drive stays in the state.
const (
	Waiting     State = iota // its turn has not come
	Looking                  // is asked what it runs
	Confirming               // runs the image already; the gate checks it, and its work goes on
	Draining                 // the work that uses it is ended
	Loading                  // the image is written into the free slot; the old one is active
	Testing                  // runs the new image's known answers; the old one is active
	Activating               // the new image replaces the old one
	Checking                 // the gate checks it; it has no work
	Resuming                 // has the new image, and is given work again
	Returning                // kept the old image, and is given work again
	RollingBack              // the old image replaces the new one
	Recovering               // has the old image again, and is given work again

	Current    // ran the image already
	Updated    // runs the image
	Failed     // a step failed before the new image was active: nothing changed
	RolledBack // a later step failed: the drive runs its earlier image
	Stuck      // a step failed, and so did the way back: it has no work, and an operator must look
	Untouched  // the rollout stopped before its turn
)

var stateNames = [...]string{
	"waiting", "looking", "confirming", "draining", "loading", "testing", "activating", "checking", "resuming",
	"returning",
	"rolling back", "recovering", "current", "updated", "failed", "rolled back", "stuck", "untouched",
}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Ended reports whether a drive stays in the state.
func (s State) Ended() bool { return transitions.Final(s) }

// Bad reports whether a failure ends in the state.
func (s State) Bad() bool { return s == Failed || s == RolledBack || s == Stuck }

// event is something that happened to a drive.
type event uint8

const (
	eventBegin  event = iota // the drive's turn has come
	eventSame                // looked: it runs the image
	eventOther               // looked: it runs another, or none
	eventDone                // the step succeeded
	eventFailed              // the step failed
	eventStop                // the rollout ended before its turn
)

var eventNames = [...]string{"begin", "same", "other", "done", "failed", "stop"}

func (e event) String() string { return eventNames[e] }

// effect is a step to be done with a drive. Its result is the next event.
type effect uint8

const (
	effectNone effect = iota
	effectLook
	effectDrain
	effectLoad
	effectTest
	effectActivate
	effectGate
	effectResume
	effectRollback
)

var effectNames = [...]string{"nothing", "look", "drain", "load", "test", "activate", "gate", "resume", "rollback"}

func (e effect) String() string { return effectNames[e] }

// transitions is the machine: there are no other transitions. docs/architecture.md shows it.
var transitions = transition.Table[State, event]{
	Waiting:     {eventBegin: Looking, eventStop: Untouched},
	Looking:     {eventSame: Confirming, eventOther: Draining, eventFailed: Failed},
	Confirming:  {eventDone: Current, eventFailed: Failed},
	Draining:    {eventDone: Loading, eventFailed: Returning},
	Loading:     {eventDone: Testing, eventFailed: Returning},
	Testing:     {eventDone: Activating, eventFailed: Returning},
	Activating:  {eventDone: Checking, eventFailed: RollingBack}, // a failed activation may have happened all the same
	Checking:    {eventDone: Resuming, eventFailed: RollingBack},
	Resuming:    {eventDone: Updated, eventFailed: Stuck},
	Returning:   {eventDone: Failed, eventFailed: Stuck},
	RollingBack: {eventDone: Recovering, eventFailed: Stuck},
	Recovering:  {eventDone: RolledBack, eventFailed: Stuck},
	Current:     {},
	Updated:     {},
	Failed:      {},
	RolledBack:  {},
	Stuck:       {},
	Untouched:   {},
}

// effects has the effect that follows when a drive comes into a state. The states that it lacks have no effect.
var effects = map[State]effect{
	Looking:     effectLook,
	Confirming:  effectGate,
	Draining:    effectDrain,
	Loading:     effectLoad,
	Testing:     effectTest,
	Activating:  effectActivate,
	Checking:    effectGate,
	Resuming:    effectResume,
	Returning:   effectResume,
	RollingBack: effectRollback,
	Recovering:  effectResume,
}

// next returns the state that follows, and its effect. Nothing else changes a drive's state. An event that the state
// does not take is a fault of the caller.
func next(from State, on event) (State, effect, error) {
	to, ok := transitions.Next(from, on)
	if !ok {
		return from, effectNone, fmt.Errorf("a drive that is %s takes no event %q", from, on)
	}
	return to, effects[to], nil
}
