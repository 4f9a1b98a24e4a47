package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

// TestFloorsRunDown: the picture has the floors, and its arrows run down.
func TestFloorsRunDown(t *testing.T) {
	section, found := Section(read(t, "docs/architecture.md"), "## The floors")
	require.True(t, found)
	// as internal/house has them
	floors := []string{"nvme", "fpga", "sdk", "host", "trainmgr", "control", "capacity", "cmd", "bench"}
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
		"<!-- states of association:",
		"<!-- states of authentication, host:",
		"<!-- states of authentication, controller:",
		"<!-- states of a job:",
		"<!-- states of rollout of an image:",
		"<!-- states of image slot:",
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
