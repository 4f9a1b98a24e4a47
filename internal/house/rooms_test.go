package house

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

// TestArchitectureNamesEveryPackage: a package that the table of rooms in docs/architecture.md leaves out cannot be
// found by its purpose. A room that ends in "/..." stands for the packages below it. Package documents holds the other
// direction: every room exists.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	_, rooms, found := strings.Cut(string(text), "\n## The rooms\n")
	require.True(t, found, "docs/architecture.md has no section The rooms")
	rooms, _, _ = strings.Cut(rooms, "\n## ")
	var named, parents []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(rooms, -1) {
		if parent, ok := strings.CutSuffix(m[1], "/..."); ok {
			parents = append(parents, parent)
			continue
		}
		named = append(named, m[1])
	}
	var packages []string
	goFiles(t, func(pkg, _ string) { packages = append(packages, pkg) })
	slices.Sort(packages)
	packages = slices.Compact(packages)
	require.Greater(t, len(packages), 90)
	for _, p := range packages {
		below := func(parent string) bool { return p == parent || strings.HasPrefix(p, parent+"/") }
		assert.True(t, slices.Contains(named, p) || slices.ContainsFunc(parents, below),
			"docs/architecture.md does not say what lives in %s: add a line to its table of rooms", p)
	}
}
