package images

import "github.com/millrace/millrace/internal/transition"

// slotState says what an image slot holds, and whether its image executes.
type slotState uint8

const (
	slotEmpty   slotState = iota
	slotLoaded            // holds an image that has not passed its self-test since it was loaded
	slotTested            // holds an image that has passed its self-test
	slotActive            // its image executes in a region, or in several
	slotSuspect           // its image executes, and has failed a self-test since it was activated
)

var slotStateNames = [...]string{"empty", "loaded", "tested", "active", "suspect"}

func (s slotState) String() string { return slotStateNames[s] }

// slotEvent is an event of an image slot.
type slotEvent uint8

const (
	slotLoad       slotEvent = iota // an image that the drive takes is stored in the slot
	slotUnload                      // the image is removed
	slotPass                        // the image has passed its self-test
	slotFail                        // the image has failed its self-test
	slotActivate                    // the image becomes the one that a region executes
	slotDeactivate                  // no region executes the image any more
)

var slotEventNames = [...]string{"load", "unload", "pass", "fail", "activate", "deactivate"}

func (e slotEvent) String() string { return slotEventNames[e] }

// slotTransitions is the machine of each image slot. docs/architecture.md shows it.
var slotTransitions = transition.Table[slotState, slotEvent]{
	slotEmpty:  {slotLoad: slotLoaded},
	slotLoaded: {slotLoad: slotLoaded, slotUnload: slotEmpty, slotPass: slotTested, slotFail: slotLoaded},
	slotTested: {
		slotLoad: slotLoaded, slotUnload: slotEmpty, slotPass: slotTested, slotFail: slotLoaded, slotActivate: slotActive,
	},
	slotActive:  {slotPass: slotActive, slotFail: slotSuspect, slotDeactivate: slotTested},
	slotSuspect: {slotPass: slotActive, slotFail: slotSuspect, slotDeactivate: slotLoaded},
}

// executes reports whether the image of a slot in this state executes.
func (s slotState) executes() bool { return s == slotActive || s == slotSuspect }

// hasPassedTest reports whether the image of a slot in this state has passed its last self-test.
func (s slotState) hasPassedTest() bool { return s == slotTested || s == slotActive }

// transition is the only function that changes a slot's state. An event that the table does not know is a fault of the
// caller: it is logged, and the state stays. s.mu is held.
func (s *Slots) transition(i int, on slotEvent) {
	next, ok := slotTransitions.Next(s.slots[i].state, on)
	if !ok {
		s.opt.Logger.Error("image slot: the event does not belong to the state", "slot", i, "state", s.slots[i].state,
			"event", on)
		return
	}
	s.slots[i].state = next
	s.changes++
}
