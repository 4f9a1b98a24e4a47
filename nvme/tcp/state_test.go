package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/internal/statediagram"
)

// TestTransitionsAreDocumented compares the table with docs/architecture.md, and checks what admission relies on: the
// connection of an admitted host is never closed to make room, and every other open connection can be.
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
