package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestImageExplore: the table, JSON and the picture are of one report, and the same each time.
func TestImageExplore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	explore := func(picture string, more ...string) (string, string) {
		path := filepath.Join(dir, picture)
		text := must(t, append([]string{"image", "explore", "--model", "rm5", "--elements", "4", "--svg", path},
			more...)...)
		drawn, err := os.ReadFile(path)
		require.NoError(t, err)
		return text, string(drawn)
	}
	text, drawn := explore("a.svg", "--output", "json")
	r := decode[exploredDesigns](t, text)
	assert.Equal(t, "rm5", r.Model)
	assert.Equal(t, "best", r.Best.Name)
	assert.Equal(t, r.PreSto.RowsPerSecond, r.Best.RowsPerSecond, "both are bound by moving")
	assert.Equal(t, 4*4*4*4*4, r.Designs)
	assert.NotContains(t, text, "watt")
	again, drawnAgain := explore("b.svg", "--output", "json")
	assert.Equal(t, text, again)
	assert.Equal(t, drawn, drawnAgain)
	assert.Contains(t, drawn, "PreSto: bound by move")
	table, _ := explore("c.svg")
	for _, want := range []string{"best", "PreSto", "PreSto's counts", "frontier", "54.02 %",
		"designs fit the SmartSSD"} {
		assert.Contains(t, table, want)
	}

}
