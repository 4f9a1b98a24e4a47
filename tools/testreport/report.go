package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is an event of go test -json, as go doc test2json describes it.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// timedTest is a test with the tests right within it, its parts.
type timedTest struct {
	name, pkg string
	seconds   float64
	parts     []timedTest
}

// report collects the events of go test, and prints what they say of each package.
type report struct {
	to       io.Writer
	packages int // with tests
	ended    int
	failed   int // packages
	skipped  int // tests
	tests    []timedTest
	parts    map[string][]timedTest // The key is a package, a space, and a test that has not ended.
	running  map[string]*packageOutput
	// reasonGiven reports whether the comment of a test says why it takes long.
	reasonGiven func(pkg, test string) bool
}

// packageOutput is what a package that runs has printed: by test, under "" what belongs to none, and the names in the
// order of their first lines.
type packageOutput struct {
	output map[string]*strings.Builder
	order  []string
	failed map[string]bool
	cached bool
}

// slowest is how many tests the end of a report names, and more if more take long.
const slowest = 10

// slowestParts is how many parts of a long test the end of a report names.
const slowestParts = 5

func newReport(to io.Writer, packages int, reasonGiven func(pkg, test string) bool) *report {
	return &report{to: to, packages: packages, parts: map[string][]timedTest{}, running: map[string]*packageOutput{},
		reasonGiven: reasonGiven}
}

// read reads all events. Lines that are not events are printed as they are.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &e) == nil {
			r.add(e)
		} else {
			r.to.Write(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add adds an event.
func (r *report) add(e event) {
	if e.Action == "build-output" {
		io.WriteString(r.to, e.Output)
	}
	if e.Package == "" {
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &packageOutput{output: map[string]*strings.Builder{}, failed: map[string]bool{}}
		r.running[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.print(e.Test, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e, p)
			return
		}
		p.failed[e.Test] = e.Action == "fail"
		if e.Action == "skip" {
			r.skipped++
		}
		if !p.cached {
			r.addTime(e)
		}
		if e.Action != "fail" {
			delete(p.output, e.Test)
		}
	}
}

// addTime adds the time of a test, or of a part of one.
func (r *report) addTime(e event) {
	whole, part, isPart := strings.Cut(e.Test, "/")
	key := e.Package + " " + whole
	switch {
	case !isPart:
		t := timedTest{name: whole, pkg: e.Package, seconds: e.Elapsed, parts: r.parts[key]}
		r.tests = append(r.tests, t)
		delete(r.parts, key)
	case !strings.Contains(part, "/"):
		r.parts[key] = append(r.parts[key], timedTest{name: part, seconds: e.Elapsed})
	}
}

// print adds to what a test printed.
func (p *packageOutput) print(test, text string) {
	if test == "" && strings.HasSuffix(text, "(cached)\n") {
		p.cached = true
	}
	b := p.output[test]
	if b == nil {
		b = &strings.Builder{}
		p.output[test] = b
		if !slices.Contains(p.order, test) {
			p.order = append(p.order, test)
		}
	}
	b.WriteString(text)
}

// endPackage prints a package that has ended: a line if it passed, and what its failed tests printed if it did not.
// Tests that had not ended, as after a panic, count as failed.
func (r *report) endPackage(e event, p *packageOutput) {
	delete(r.running, e.Package)
	if e.Action == "skip" { // it has no tests
		return
	}
	r.ended++
	took := fmt.Sprintf("%.1f s", e.Elapsed)
	if p.cached {
		took = "cached"
	}
	result := "ok  "
	if e.Action == "fail" {
		result = "FAIL"
		r.failed++
		for _, test := range p.order {
			failed, ended := p.failed[test]
			if b := p.output[test]; b != nil && (failed || !ended) {
				io.WriteString(r.to, b.String())
			}
		}
	}
	fmt.Fprintf(r.to, "[%d/%d] %s %s, %s\n", r.ended, max(r.packages, r.ended), result, shortName(e.Package), took)
}

// finish prints the counts and the slowest tests.
func (r *report) finish() {
	sortByTime(r.tests)
	fmt.Fprintf(r.to, "%d tests ran in %d packages; %d skipped; %d packages failed\n", len(r.tests), r.ended, r.skipped,
		r.failed)
	for i, t := range r.tests {
		if i >= slowest && t.seconds <= longSeconds {
			break
		}
		if i == 0 {
			fmt.Fprintf(r.to, "The slowest tests:\n")
		}
		note := ""
		if t.seconds > longSeconds && !r.reasonGiven(t.pkg, t.name) {
			note = "; its comment does not say: It takes ..., because ..."
		}
		fmt.Fprintf(r.to, "%8.1f s  %s, %s%s\n", t.seconds, t.name, shortName(t.pkg), note)
		if t.seconds > longSeconds {
			r.printParts(t)
		}
	}
}

// printParts prints the slowest parts of a long test that take a second or more.
func (r *report) printParts(t timedTest) {
	sortByTime(t.parts)
	for _, part := range t.parts[:min(slowestParts, len(t.parts))] {
		if part.seconds >= 1 {
			fmt.Fprintf(r.to, "    %8.1f s  %s\n", part.seconds, part.name)
		}
	}
}

// sortByTime sorts tests, those that took longest first.
func sortByTime(tests []timedTest) {
	slices.SortStableFunc(tests, func(a, b timedTest) int { return cmp.Compare(b.seconds, a.seconds) })
}

// shortName returns the name of a package without its module's.
func shortName(pkg string) string {
	return strings.TrimPrefix(pkg, "github.com/millrace/millrace/")
}
