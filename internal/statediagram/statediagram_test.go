package statediagram_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/statediagram"
	"github.com/millrace/millrace/internal/transition"
)

type picture = statediagram.Picture[string, string]

var door = transition.Table[string, string]{
	"closed":    {"open": "open", "lock": "locked up"},
	"open":      {"close": "closed", "break": "broken"},
	"broken":    {},
	"locked up": {"unlock": "closed"},
}

const doorDrawn = "```mermaid\nstateDiagram-v2\n" +
	"    [*] --> closed\n" +
	"    closed --> locked_up: lock\n" +
	"    closed --> open: open\n" +
	"    locked_up --> closed: unlock\n" +
	"    open --> broken: break\n" +
	"    open --> closed: close\n" +
	"    broken --> [*]\n" +
	"```\n"

func TestMermaid(t *testing.T) {
	assert.Equal(t, doorDrawn, picture{Table: door, Start: []string{"closed"}}.Mermaid())
	labelled := picture{
		Table: transition.Table[string, string]{"a": {"go": "b"}, "b": {}}, Start: []string{"a"},
		Label: func(from, on string) string { return on + " / from " + from },
	}
	assert.Contains(t, labelled.Mermaid(), "a --> b: go / from a\n")
}

func TestCheck(t *testing.T) {
	require.NoError(t, picture{Table: door, Start: []string{"closed"}}.Check())
	for want, p := range map[string]picture{
		"no state begins it": {Table: door},
		"state roof follows another and has no row": {
			Table: transition.Table[string, string]{"floor": {"climb": "roof"}}, Start: []string{"floor"},
		},
		"state cellar is never reached": {
			Table: transition.Table[string, string]{"floor": {}, "cellar": {"climb": "floor"}},
			Start: []string{"floor"},
		},
	} {
		assert.EqualError(t, p.Check(), want)
	}
}

func TestDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doors.md")
	const head, tail = "# Doors\n\n<!-- states of door: written by a test -->\n", "<!-- end of states -->\n\nThe end.\n"
	require.NoError(t, os.WriteFile(file, []byte(head+tail), 0o644))
	p := picture{File: file, Name: "door", Table: door, Start: []string{"closed"}}
	t.Setenv("MILLRACE_UPDATE", "1")
	p.Document(t)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, head+doorDrawn+tail, string(written))
	t.Setenv("MILLRACE_UPDATE", "")
	p.Document(t)
}
