package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheRaceTierHasAllGoroutines checks that .ci/race, which leaves out packages without goroutines of their own, has
// every package with tests in which a go statement stands.
func TestTheRaceTierHasAllGoroutines(t *testing.T) {
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	out, err := exec.Command(bash, filepath.Join(root, ".ci", "race"), "list").Output()
	require.NoError(t, err)
	raced := map[string]bool{}
	for _, path := range strings.Fields(string(out)) {
		raced[strings.TrimPrefix(path, Module+"/")] = true
	}
	assert.NotContains(t, raced, "fpga/unit/clamp", "this package is pure: the race tier would find nothing in it")
	assert.Contains(t, raced, "control/endtoend")

	tested, starting := map[string]bool{}, map[string]string{}
	goFiles(t, func(pkg, file string) {
		tested[pkg] = tested[pkg] || strings.HasSuffix(file, "_test.go")
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				starting[pkg] = file
			}
			return true
		})
	})
	require.Greater(t, len(starting), 30)
	for pkg, file := range starting {
		assert.True(t, raced[pkg] || !tested[pkg], "%s starts a goroutine, but .ci/race leaves its package out", file)
	}
}
