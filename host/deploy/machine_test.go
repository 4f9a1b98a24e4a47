package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestScenarios runs the scripts in testdata: a line is an event, "rollout NAME... [failures=N]" or "end"; below it, indented, is what
// the machine answered. MILLRACE_UPDATE=1 writes the answers anew.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			got := play(t, string(b))
			if os.Getenv("MILLRACE_UPDATE") != "" {
				require.NoError(t, os.WriteFile(f, []byte(got), 0o644))
				return
			}
			assert.Equal(t, string(b), got)
		})
	}
}

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
		var o order
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
			o, err = r.start()
		case "end":
			r.end()
			continue
		default:
			i := slices.Index(eventNames[:], words[0])
			require.GreaterOrEqual(t, i, 0, line)
			before = slices.Clone(r.states)
			o, err = r.next(event(i))
		}
		if err != nil {
			fmt.Fprintf(&out, "  refused: %v\n", err)
		}
		for i, s := range r.states {
			if s != before[i] {
				fmt.Fprintf(&out, "  %s: %s -> %s\n", names[i], before[i], s)
			}
		}
		if err == nil && o.do == nothing {
			fmt.Fprintln(&out, "  over")
		} else if err == nil {
			fmt.Fprintf(&out, "  do %s %s\n", o.do, names[o.drive])
		}
	}
	return out.String()
}

// TestTheTableIsWhole: every state that is not an end takes done and failed (or what its look says), every end takes nothing, no row is
// there twice, and every state is reached.
func TestTheTableIsWhole(t *testing.T) {
	reached := map[State]bool{Waiting: true}
	seen := map[string]bool{}
	for _, r := range table {
		key := fmt.Sprint(r.from, r.on)
		assert.False(t, seen[key], "two rows for %s on %s", r.from, r.on)
		seen[key] = true
		reached[r.to] = true
		assert.False(t, r.from.Ended(), "%s is an end", r.from)
		assert.Equal(t, r.to.Ended(), r.do == nothing, "%s on %s: something is to be done, or it is the end", r.from, r.on)
	}
	for s := range stateNames {
		s := State(s)
		assert.True(t, reached[s], "%s is never reached", s)
		if s == Waiting || s.Ended() {
			continue
		}
		_, _, err := transition(s, failed)
		assert.NoError(t, err, "%s takes a failure", s)
		if s != Looking {
			_, _, err = transition(s, done)
			assert.NoError(t, err, "%s takes its end", s)
		}
	}
	_, _, err := transition(Stuck, begin)
	require.Error(t, err)
	assert.Equal(t, "state 99", State(99).String())
}

// TestADriveIsNeverLeftWithoutWorkUnnoticed: from where a drive was drained, every way leads through a resume, or to stuck.
func TestADriveIsNeverLeftWithoutWorkUnnoticed(t *testing.T) {
	type at struct {
		s       State
		drained bool
	}
	todo, seen := []at{{Waiting, false}}, map[at]bool{}
	for len(todo) > 0 {
		a := todo[0]
		todo = todo[1:]
		if seen[a] {
			continue
		}
		seen[a] = true
		for _, r := range table {
			if r.from != a.s {
				continue
			}
			next := at{r.to, a.drained}
			if r.do == drain {
				next.drained = true
			}
			if a.s == Resuming || a.s == Returning || a.s == Recovering {
				next.drained = r.on != done
			}
			if next.s.Ended() {
				assert.Equal(t, next.s == Stuck, next.drained, "%s on %s", r.from, r.on)
			}
			todo = append(todo, next)
		}
	}
}

const diagramFile = "../../docs/images.md"

// TestTheDiagramIsTheTable holds the diagram in docs/images.md against the table.
func TestTheDiagramIsTheTable(t *testing.T) {
	const head, tail = "<!-- states: written by MILLRACE_UPDATE=1 go test ./host/deploy -->\n", "<!-- end of states -->\n"
	var want strings.Builder
	want.WriteString("```mermaid\nstateDiagram-v2\n")
	id := func(s State) string { return strings.ReplaceAll(s.String(), " ", "_") }
	for _, r := range table {
		what := r.on.String()
		if r.do != nothing {
			what += " / " + r.do.String()
		}
		fmt.Fprintf(&want, "    %s --> %s: %s\n", id(r.from), id(r.to), what)
	}
	want.WriteString("```\n")
	b, err := os.ReadFile(diagramFile)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(b), head)
	require.True(t, ok, "docs/images.md has no place for the diagram")
	got, after, ok := strings.Cut(rest, tail)
	require.True(t, ok)
	if os.Getenv("MILLRACE_UPDATE") != "" {
		require.NoError(t, os.WriteFile(diagramFile, []byte(before+head+want.String()+tail+after), 0o644))
		return
	}
	assert.Equal(t, want.String(), got, "run MILLRACE_UPDATE=1 go test ./host/deploy")
}
