package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/statediagram"
)

// TestScenarios runs the scripts in testdata. A line is an event, "rollout NAME... [failures=N]" or "end"; the indented
// lines below it are the machine's answer. MILLRACE_UPDATE=1 writes the answers.
func TestScenarios(t *testing.T) { goldenfile.Scripts(t, play) }

// play runs a script and returns it with the answers.
func play(t *testing.T, script string) string {
	var out strings.Builder
	var r *rollout
	var names []string
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue // an old answer
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		var before []State
		var a action
		var err error
		switch words[0] {
		case "rollout":
			r, names = &rollout{}, nil
			for _, w := range words[1:] {
				if n, err := fmt.Sscanf(w, "failures=%d", &r.allowed); n == 1 && err == nil {
					continue
				}
				names = append(names, w)
				r.states = append(r.states, Waiting)
			}
			before = slices.Clone(r.states)
			a, err = r.start()
		case "end":
			r.end()
			continue
		default:
			i := slices.Index(eventNames[:], words[0])
			require.GreaterOrEqual(t, i, 0, line)
			before = slices.Clone(r.states)
			a, err = r.next(event(i))
		}
		if err != nil {
			fmt.Fprintf(&out, "  refused: %v\n", err)
		}
		for i, s := range r.states {
			if s != before[i] {
				fmt.Fprintf(&out, "  %s: %s -> %s\n", names[i], before[i], s)
			}
		}
		if err == nil && a.effect == effectNone {
			fmt.Fprintln(&out, "  over")
		} else if err == nil {
			fmt.Fprintf(&out, "  do %s %s\n", a.effect, names[a.drive])
		}
	}
	return out.String()
}

// TestTransitionsAreDocumented holds the table against the picture in docs/architecture.md.
func TestTransitionsAreDocumented(t *testing.T) {
	statediagram.Picture[State, event]{
		File: "../../docs/architecture.md", Name: "rollout of an image", Table: transitions, Start: []State{Waiting},
		Label: func(from State, on event) string {
			if _, effect, err := next(from, on); err == nil && effect != effectNone {
				return on.String() + " / " + effect.String()
			}
			return on.String()
		},
	}.Document(t)
}

// TestTheTableIsWhole checks that every state has a name and a row, that a state that is not final has an effect, and
// that such a state takes every event that its effect can have.
func TestTheTableIsWhole(t *testing.T) {
	assert.Len(t, transitions, len(stateNames))
	for s := range transitions {
		if s == Waiting || s.Ended() {
			assert.NotContains(t, effects, s)
			continue
		}
		results := []event{eventDone, eventFailed}
		if assert.Contains(t, effects, s); effects[s] == effectLook {
			results = []event{eventSame, eventOther, eventFailed}
		}
		for _, on := range results {
			_, _, err := next(s, on)
			assert.NoError(t, err, "%s takes %s", s, on)
		}
	}
	_, _, err := next(Stuck, eventBegin)
	require.Error(t, err)
	assert.Equal(t, "state 99", State(99).String())
	for s := range State(len(stateNames)) {
		assert.Equal(t, s >= Current, s.Ended(), "%s", s)
	}
}

// TestNoDriveIsLeftWithoutWorkUnnoticed checks that from where a drive was drained every way leads through a resume, or
// to stuck.
func TestNoDriveIsLeftWithoutWorkUnnoticed(t *testing.T) {
	type position struct {
		state   State
		drained bool
	}
	pending, seen := []position{{Waiting, false}}, map[position]bool{}
	for len(pending) > 0 {
		p := pending[0]
		pending = pending[1:]
		if seen[p] {
			continue
		}
		seen[p] = true
		for on, to := range transitions[p.state] {
			follower := position{to, p.drained || effects[to] == effectDrain}
			if effects[p.state] == effectResume {
				follower.drained = on != eventDone
			}
			if to.Ended() {
				assert.Equal(t, to == Stuck, follower.drained, "%s on %s", p.state, on)
			}
			pending = append(pending, follower)
		}
	}
}
