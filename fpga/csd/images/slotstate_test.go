package images

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/internal/statediagram"
)

// TestSlotTransitionsAreDocumented holds the table against docs/architecture.md, and against what must never happen: an
// image that executes is neither replaced nor removed, and no image executes that has not passed its self-test.
func TestSlotTransitionsAreDocumented(t *testing.T) {
	statediagram.Picture[slotState, slotEvent]{
		File: "../../../docs/architecture.md", Name: "image slot", Table: slotTransitions, Start: []slotState{slotEmpty},
	}.Document(t)
	for state, row := range slotTransitions {
		for on, next := range row {
			if state.executes() {
				assert.NotContains(t, []slotEvent{slotLoad, slotUnload}, on, "%s on %s", state, on)
			} else if next.executes() {
				assert.True(t, state.hasPassedTest(), "%s on %s", state, on)
			}
		}
	}
}

// TestAnEventOutOfPlaceChangesNothing: a slot that is empty can be neither tested nor activated.
func TestAnEventOutOfPlaceChangesNothing(t *testing.T) {
	s, err := Open(Options{
		Logger: slog.New(slog.DiscardHandler), Step: func(string) {}, Kept: make([]Kept, 1), RegionWeights: []int{1},
		ThreadsPerWeight: 1, LocalMemoryBytes: 1 << 20,
	})
	require.NoError(t, err)
	s.mu.Lock()
	before := s.changes
	for _, on := range []slotEvent{slotPass, slotFail, slotActivate, slotDeactivate, slotUnload} {
		s.transition(1, on)
	}
	require.Equal(t, slotEmpty, s.slots[1].state)
	require.Equal(t, before, s.changes)
	s.mu.Unlock()
	page := s.Page()
	require.Equal(t, image.Slot{Role: image.RoleField, Slot: 1}, page.Slots[1])
	require.True(t, page.Slots[0].Active && page.Slots[0].Tested)
}
