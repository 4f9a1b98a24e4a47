package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "testdata/module"

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestUnusedNames(t *testing.T) {
	found, err := unusedNames(module, nil)
	if err != nil {
		t.Fatal(err)
	}
	names, forTests := found.unused, found.forTests
	got := slices.Sorted(maps.Keys(names))
	want := []string{"shape.Alone", "shape.Lonely", "shape.Tested", "shape.Unused"}
	if !slices.Equal(got, want) {
		t.Errorf("unused names %v, want %v", got, want)
	}
	if !forTests["shapetest"] || !forTests["helpers"] || forTests["shape"] {
		t.Errorf("packages for tests: %v", forTests)
	}
	for _, name := range []string{"shape.Shown", "shape.Elsewhere"} {
		if !found.usedUnloaded[name] {
			t.Errorf("an Example, or a file for another system, refers to %s", name)
		}
	}
	if at := names["shape.Unused"]; !strings.HasPrefix(at, "shape/shape.go:") {
		t.Errorf("shape.Unused is at %s", at)
	}
}

func TestExceptions(t *testing.T) {
	all := "shape.Alone kept\nshape.Lonely* kept\nshape.Tested kept\nshape.Unused kept\n"
	for _, c := range []struct {
		exceptions string
		reported   int
	}{
		{"# nothing\n", 4},
		{all, 0},
		{all + "shape.Used not needed\n", 1},
		{"shape.* everything\n", 0},
		{"shape/shape.go everything\n", 0},
		{"shape/shape.go everything\nshape/other.go nothing\n", 1},
	} {
		reported, err := run(module, nil, write(t, c.exceptions), "")
		if err != nil || reported != c.reported {
			t.Errorf("%q: reported %d, want %d; %v", c.exceptions, reported, c.reported, err)
		}
	}
	if _, err := run(module, nil, write(t, "shape.Alone\n"), ""); err == nil {
		t.Error("an exception without a reason was taken")
	}
}

func TestDeadcode(t *testing.T) {
	dead := write(t, "shape/shape.go:29:18: unreachable func: Lonely.Self\n"+
		"shapetest/shapetest.go:5:6: unreachable func: Helper\n")
	names, err := readDead(module, dead, map[string]bool{"shapetest": true})
	if err != nil || len(names) != 1 || names["shape.Lonely.Self"] != "shape/shape.go:29" {
		t.Errorf("dead %v, %v", names, err)
	}
	if _, err := readDead(module, write(t, "something else\n"), nil); err == nil {
		t.Error("a line that deadcode does not write was taken")
	}
}
