package documents

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecipesListTheirFiles: each recipe of CONTRIBUTING.md names the files to change, as links, which
// TestLinksLeadSomewhere follows.
func TestRecipesListTheirFiles(t *testing.T) {
	text := read(t, "CONTRIBUTING.md")
	for heading, least := range map[string]int{
		"## Add an operator": 12, "## Add a unit": 10, "## Add a command": 6, "## Add a wire field": 8,
	} {
		section, found := Section(text, heading)
		require.True(t, found, heading)
		assert.GreaterOrEqual(t, len(Links(section)), least, heading)
	}
}

// TestTheTiersAreThoseOfCI: CONTRIBUTING.md describes each tier that .ci/test runs or misses, and no other.
func TestTheTiersAreThoseOfCI(t *testing.T) {
	section, found := Section(read(t, "CONTRIBUTING.md"), "## Run the tests")
	require.True(t, found)
	described := map[string]bool{}
	for _, row := range Rows(section) {
		described[row[0]] = true
	}
	script := read(t, ".ci/test")
	mentioned := map[string]bool{}
	for line := range strings.Lines(script) {
		fields := strings.Fields(line)
		if len(fields) > 1 && slices.Contains([]string{"tier", "scripted", "beside", "missing", "forbidden"}, fields[0]) {
			mentioned[strings.Trim(fields[1], `"`)] = true
		}
	}
	delete(mentioned, "$1") // a function of the script
	assert.Equal(t, mentioned, described)
}
