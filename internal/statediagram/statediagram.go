package statediagram

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/transition"
)

// Picture is one state machine and its place in the documentation.
type Picture[S, E cmp.Ordered] struct {
	File  string // the document, relative to the test's directory
	Name  string // names the machine among the pictures of the document
	Table transition.Table[S, E]
	Start []S // the states in which a machine can begin
	// Label is the text beside an arrow; nil: the event's name.
	Label func(from S, on E) string
}

// Document checks the table, and compares the picture in the document with it. With MILLRACE_UPDATE=1 it writes the
// picture into the document.
func (p Picture[S, E]) Document(t *testing.T) {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatalf("the machine %q: %v", p.Name, err)
	}
	b, err := os.ReadFile(p.File)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), "<!-- states of "+p.Name+":")
	head, rest, ended := strings.Cut(rest, "-->\n")
	old, after, closed := strings.Cut(rest, "<!-- end of states -->\n")
	if !found || !ended || !closed {
		t.Fatalf("%s has no place for the states of %q: the comment of package statediagram shows one", p.File, p.Name)
	}
	if os.Getenv("MILLRACE_UPDATE") == "1" {
		whole := before + "<!-- states of " + p.Name + ":" + head + "-->\n" + p.Mermaid() + "<!-- end of states -->\n" +
			after
		if err := os.WriteFile(p.File, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != p.Mermaid() {
		t.Errorf("%s does not show the table of %q: run MILLRACE_UPDATE=1 go test in this directory\nwant:\n"+
			"%sfound:\n%s",
			filepath.Base(p.File), p.Name, p.Mermaid(), old)
	}
}

// Check returns an error where the table contradicts itself: a state follows that has no row, or a state has a row and
// cannot be reached.
func (p Picture[S, E]) Check() error {
	if len(p.Start) == 0 {
		return fmt.Errorf("no state begins it")
	}
	reached := map[S]bool{}
	pending := slices.Clone(p.Start)
	for len(pending) > 0 {
		from := pending[0]
		pending = pending[1:]
		if reached[from] {
			continue
		}
		reached[from] = true
		row, ok := p.Table[from]
		if !ok {
			return fmt.Errorf("state %v follows another and has no row", from)
		}
		pending = slices.AppendSeq(pending, maps.Values(row))
	}
	for _, s := range slices.Sorted(maps.Keys(p.Table)) {
		if !reached[s] {
			return fmt.Errorf("state %v is never reached", s)
		}
	}
	return nil
}

// Mermaid renders the table as a block of mermaid's stateDiagram-v2: states and events in the order of their values, an
// arrow from [*] to each state that begins, and an arrow from each final state to [*].
func (p Picture[S, E]) Mermaid() string {
	label := p.Label
	if label == nil {
		label = func(_ S, on E) string { return fmt.Sprint(on) }
	}
	identifier := func(s S) string { return strings.ReplaceAll(fmt.Sprint(s), " ", "_") }
	var out strings.Builder
	out.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, s := range p.Start {
		fmt.Fprintf(&out, "    [*] --> %s\n", identifier(s))
	}
	states := slices.Sorted(maps.Keys(p.Table))
	for _, from := range states {
		for _, on := range slices.Sorted(maps.Keys(p.Table[from])) {
			fmt.Fprintf(&out, "    %s --> %s: %s\n", identifier(from), identifier(p.Table[from][on]), label(from, on))
		}
	}
	for _, s := range states {
		if p.Table.Final(s) {
			fmt.Fprintf(&out, "    %s --> [*]\n", identifier(s))
		}
	}
	out.WriteString("```\n")
	return out.String()
}
