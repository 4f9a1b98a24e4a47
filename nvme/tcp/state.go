package tcp

import "github.com/millrace/millrace/internal/transition"

// state says how far a connection of a target has come on its way into an association. Each state has a limit of its
// own for the connections in it, so that a connection whose host has proven nothing takes no place of those that have.
type state uint8

const (
	stateOpening         state = iota // before Connect
	stateUnauthenticated              // a queue whose host must authenticate and has not yet
	stateDiscovery                    // a queue of a discovery association, for which no host authenticates
	stateAdmitted                     // a queue of a drive that may be used
	stateEvicted                      // cut off to make room for another connection
	stateEnded                        // closed
	states
)

var stateNames = [...]string{"opening", "unauthenticated", "discovery", "admitted", "evicted", "ended"}

func (s state) String() string { return stateNames[s] }

// event is an event of a connection of a target.
type event uint8

const (
	eventConnect          event = iota // Connect to a drive that demands no authentication
	eventConnectSecured                // Connect to a drive that demands authentication
	eventConnectDiscovery              // Connect to the discovery subsystem
	eventRefuse                        // the controller does not take the queue: Connect may be tried again
	eventAuthenticated                 // the host has authenticated, for the first time or again
	eventEvict                         // the connection is chosen to make room
	eventEnd                           // the connection is closed
)

var eventNames = [...]string{
	"connect", "connect, authentication demanded", "connect to discovery", "queue refused", "authenticated", "evict",
	"end",
}

func (e event) String() string { return eventNames[e] }

// transitions is the machine of a connection of a target. docs/architecture.md shows it.
var transitions = transition.Table[state, event]{
	stateOpening: {
		eventConnect: stateAdmitted, eventConnectSecured: stateUnauthenticated, eventConnectDiscovery: stateDiscovery,
		eventEvict: stateEvicted, eventEnd: stateEnded,
	},
	stateUnauthenticated: {
		eventAuthenticated: stateAdmitted, eventRefuse: stateOpening, eventEvict: stateEvicted, eventEnd: stateEnded,
	},
	stateDiscovery: {eventRefuse: stateOpening, eventEvict: stateEvicted, eventEnd: stateEnded},
	stateAdmitted:  {eventAuthenticated: stateAdmitted, eventRefuse: stateOpening, eventEnd: stateEnded},
	stateEvicted:   {eventEnd: stateEnded},
	stateEnded:     {},
}

// transition is the only function that changes the state of a connection, and the number of connections in each state.
// It reports whether the table allows the event. mu is held.
func (t *Target) transition(c *connection, on event) bool {
	next, ok := transitions.Next(c.state, on)
	if !ok {
		return false
	}
	t.held[c.state]--
	t.held[next]++
	c.state = next
	return true
}
