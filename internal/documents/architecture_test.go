package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// packages returns the folders of the tree that hold Go, except generators, which are modules of their own.
func packages(t *testing.T) []string {
	t.Helper()
	var list []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			rel, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			list = append(list, filepath.ToSlash(rel))
		}
		return nil
	}))
	slices.Sort(list)
	list = slices.Compact(list)
	require.Greater(t, len(list), 90)
	return list
}

// TestArchitectureNamesEveryPackage: a package that the table of rooms leaves out cannot be found by its purpose. A
// room ending in "/..." stands for the packages below it.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	section, found := Section(read(t, "docs/architecture.md"), "## The rooms")
	require.True(t, found)
	named := map[string]bool{}
	var below []string
	for _, span := range CodeSpans(section) {
		if parent, ok := strings.CutSuffix(span, "/..."); ok {
			below = append(below, parent)
			continue
		}
		named[span] = true
	}
	for _, p := range packages(t) {
		if named[p] || slices.ContainsFunc(below, func(b string) bool { return p == b || strings.HasPrefix(p, b+"/") }) {
			continue
		}
		assert.Fail(t, "a package without a line", "docs/architecture.md does not say what lives in %s", p)
	}
}

// TestArchitectureNamesWhatThereIs: every room of the tables exists.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	section, _ := Section(read(t, "docs/architecture.md"), "## The rooms")
	rooms := 0
	for _, row := range Rows(section) {
		for _, room := range CodeSpans(row[1]) {
			rooms++
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(room, "/..."))))
			assert.NoError(t, err, room)
		}
	}
	assert.Greater(t, rooms, 70)
}

// TestFloorsRunDown: the picture has the seven floors, and its arrows run down.
func TestFloorsRunDown(t *testing.T) {
	section, found := Section(read(t, "docs/architecture.md"), "## The floors")
	require.True(t, found)
	floors := []string{"nvme", "fpga", "sdk", "host", "trainmgr", "bench", "cmd"} // as internal/house has them
	for _, f := range floors {
		assert.Contains(t, section, "    "+f+"[", "the picture has no floor %s", f)
	}
	arrows := regexp.MustCompile(`(?m)^    (\w+) --> (\w+)$`).FindAllStringSubmatch(section, -1)
	assert.GreaterOrEqual(t, len(arrows), len(floors)-1)
	for _, a := range arrows {
		assert.Greater(t, slices.Index(floors, a[1]), slices.Index(floors, a[2]), "%s --> %s", a[1], a[2])
		assert.NotEqual(t, -1, slices.Index(floors, a[2]), a[2])
	}
}

// TestTheWayOfAMiniBatch: the eight files are there, in the order of the numbers, and each declares its function.
func TestTheWayOfAMiniBatch(t *testing.T) {
	section, found := Section(read(t, "docs/architecture.md"), "## A mini-batch's way")
	require.True(t, found)
	rows := Rows(section)
	require.Len(t, rows, 8)
	for i, row := range rows {
		assert.Equal(t, string(rune('1'+i)), row[0])
		link := regexp.MustCompile(`^\[(.+)\]\(\.\./(.+)\)$`).FindStringSubmatch(row[1])
		require.NotNil(t, link, row[1])
		assert.Equal(t, link[1], link[2])
		names := CodeSpans(row[2])
		require.Len(t, names, 1, row[2])
		assert.NoError(t, FileDeclares(filepath.Join(root, filepath.FromSlash(link[2])), names[0]))
	}
}

// statePictures are the state machines of the tree, each in the document that shows it. A test of the machine's own
// package draws the picture from the table, or from what the machine is seen to do, and compares it
// (internal/statediagram).
var statePictures = map[string][]string{
	"docs/architecture.md": {
		"<!-- states of controller:",
		"<!-- states of authentication, host:",
		"<!-- states of authentication, controller:",
		"<!-- states of a job:",
		"<!-- states of rollout of an image:",
		"<!-- states of an image slot:",
		"<!-- states of a lease:",
	},
}

// TestEveryStateMachineIsDrawn: a picture that is taken out of a document takes its test along; this one stays.
func TestEveryStateMachineIsDrawn(t *testing.T) {
	for document, marks := range statePictures {
		text := read(t, document)
		for _, mark := range marks {
			_, after, found := strings.Cut(text, mark)
			if assert.True(t, found, "%s does not show %s", document, mark) {
				picture, _, ended := strings.Cut(after, "<!-- end of states -->")
				assert.True(t, ended && strings.Contains(picture, "stateDiagram-v2") && strings.Contains(picture, "-->"),
					"%s: %s is empty", document, mark)
			}
		}
	}
}
