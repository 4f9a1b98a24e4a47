package deploy

import "fmt"

// State is where a drive stands in a rollout.
type State uint8

const (
	Waiting     State = iota // its turn has not come
	Looking                  // being asked what it runs
	Confirming               // runs the image already; the gate checks it, with its work going on
	Draining                 // what uses it is being brought to an end
	Loading                  // the image is on its way into the free slot; the old one is active
	Testing                  // runs the new image's known answers; the old one is active
	Activating               // the new image takes the old one's place
	Checking                 // the gate checks it; it has no work
	Resuming                 // has the new image, is given work again
	Returning                // kept the old image, is given work again
	RollingBack              // the old image takes the new one's place
	Recovering               // has the old image again, is given work again

	// States that a drive stays in.
	Current    // ran the image already
	Updated    // runs the image
	Failed     // a step failed before the new image was active: nothing changed
	RolledBack // a step failed after that: it runs what it ran before
	Stuck      // a step failed, and so did the way back: it has no work, somebody must look
	Untouched  // the rollout stopped before its turn
)

var stateNames = [...]string{"waiting", "looking", "confirming", "draining", "loading", "testing", "activating", "checking", "resuming",
	"returning", "rolling back", "recovering", "current", "updated", "failed", "rolled back", "stuck", "untouched"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Ended tells whether a drive stays in the state.
func (s State) Ended() bool { return s >= Current }

// Bad tells whether the state is how a failure ends.
func (s State) Bad() bool { return s == Failed || s == RolledBack || s == Stuck }

// event is what happened.
type event uint8

const (
	begin  event = iota // the drive's turn has come
	same                // looked: it runs the image
	other               // looked: it runs another, or none
	done                // the step is done
	failed              // the step failed
	stop                // the rollout ends before its turn
)

var eventNames = [...]string{"begin", "same", "other", "done", "failed", "stop"}

func (e event) String() string { return eventNames[e] }

// effect is what is to be done. Its end is the next event.
type effect uint8

const (
	nothing effect = iota
	look
	drain
	load
	test
	activate
	gate
	resume
	rollback
)

var effectNames = [...]string{"nothing", "look", "drain", "load", "test", "activate", "gate", "resume", "rollback"}

func (e effect) String() string { return effectNames[e] }

// row says which state follows which.
type row struct {
	from State
	on   event
	to   State
	do   effect
}

// table is the machine: there are no other transitions. docs/images.md shows it.
var table = []row{
	{Waiting, begin, Looking, look},
	{Waiting, stop, Untouched, nothing},
	{Looking, same, Confirming, gate},
	{Looking, other, Draining, drain},
	{Looking, failed, Failed, nothing},
	{Confirming, done, Current, nothing},
	{Confirming, failed, Failed, nothing},
	{Draining, done, Loading, load},
	{Draining, failed, Returning, resume},
	{Loading, done, Testing, test},
	{Loading, failed, Returning, resume},
	{Testing, done, Activating, activate},
	{Testing, failed, Returning, resume},
	{Activating, done, Checking, gate},
	{Activating, failed, RollingBack, rollback}, // it may have happened all the same
	{Checking, done, Resuming, resume},
	{Checking, failed, RollingBack, rollback},
	{Resuming, done, Updated, nothing},
	{Resuming, failed, Stuck, nothing},
	{Returning, done, Failed, nothing},
	{Returning, failed, Stuck, nothing},
	{RollingBack, done, Recovering, resume},
	{RollingBack, failed, Stuck, nothing},
	{Recovering, done, RolledBack, nothing},
	{Recovering, failed, Stuck, nothing},
}

// transition is the only function that changes a state. An event that the state does not know is a fault of the caller.
func transition(from State, on event) (State, effect, error) {
	for _, r := range table {
		if r.from == from && r.on == on {
			return r.to, r.do, nil
		}
	}
	return from, nothing, fmt.Errorf("a drive that is %s takes no event %q", from, on)
}
