package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMakeHelp: `make help` lists every target, and every target that README and docs name is one.
func TestMakeHelp(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindSubmatch(makefile)
	require.NotNil(t, phony)
	targets := map[string]bool{}
	for _, name := range strings.Fields(string(phony[1])) {
		targets[name] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllSubmatch(makefile, -1) {
		assert.True(t, targets[string(m[1])], ".PHONY does not name %s", m[1])
	}

	help, err := exec.Command("make", "-s", "-C", root, "help").Output()
	require.NoError(t, err)
	listed := map[string]bool{}
	for line := range strings.Lines(string(help)) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.NotEmpty(t, strings.TrimSpace(what), name)
		listed[name] = true
	}
	for name := range targets {
		assert.True(t, listed[name] || name == "all", "make help does not list %s: say above the target what it does",
			name)
	}

	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	named := regexp.MustCompile("`(?:[A-Z]+=\\S+ )?make ([a-z][a-z-]*)|(?m)^    make ([a-z][a-z-]*)")
	found := 0
	for _, file := range append(docs, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range named.FindAllSubmatch(text, -1) {
			name := string(m[1]) + string(m[2])
			assert.True(t, targets[name], "%s names `make %s`, which is not a target", file, name)
			found++
		}
	}
	assert.Greater(t, found, 5)
}
