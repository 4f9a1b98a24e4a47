package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/internal/statediagram"
)

// TestTransitionsAreDocumented holds the table against docs/architecture.md, and against what admission promises: a
// connection of a host that may use a drive never makes room, and every other one that is open can.
func TestTransitionsAreDocumented(t *testing.T) {
	statediagram.Picture[state, event]{
		File: "../../docs/architecture.md", Name: "association", Table: transitions, Start: []state{stateOpening},
	}.Document(t)
	assert.Len(t, transitions, int(states))
	assert.Len(t, stateNames, int(states))
	for s, row := range transitions {
		_, evictable := row[eventEvict]
		assert.Equal(t, s < stateAdmitted, evictable, s)
		_, endable := row[eventEnd]
		assert.Equal(t, s != stateEnded, endable, s)
	}
}

// TestTransitionCountsConnections: the number of connections in a state follows the transitions, and an event that the
// table does not know changes neither.
func TestTransitionCountsConnections(t *testing.T) {
	target := &Target{}
	c := &connection{target: target}
	target.held[stateOpening] = 1
	for _, step := range []struct {
		on   event
		want state
		ok   bool
	}{
		{eventAuthenticated, stateOpening, false},
		{eventConnectSecured, stateUnauthenticated, true},
		{eventRefuse, stateOpening, true},
		{eventConnectSecured, stateUnauthenticated, true},
		{eventAuthenticated, stateAdmitted, true},
		{eventAuthenticated, stateAdmitted, true},
		{eventEvict, stateAdmitted, false},
		{eventEnd, stateEnded, true},
		{eventEnd, stateEnded, false},
	} {
		assert.Equal(t, step.ok, target.transition(c, step.on), step.on)
		var want [states]int
		want[step.want] = 1
		assert.Equal(t, want, target.held, step.on)
		assert.Equal(t, step.want, c.state)
	}
}
