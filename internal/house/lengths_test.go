package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	longestFunction = 120 // lines from brace to brace
	longestRun      = 40  // of a function literal that runs a command
)

// longFunctions returns the functions of a file that have too many lines, as "line N: NAME has M lines".
func longFunctions(set *token.FileSet, f *ast.File) (long []string) {
	check := func(name string, body *ast.BlockStmt, most int) {
		first := set.Position(body.Pos()).Line
		if lines := set.Position(body.End()).Line - first; lines > most {
			long = append(long, fmt.Sprintf("line %d: %s has %d lines, at most %d", first, name, lines, most))
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				check(n.Name.Name, n.Body, longestFunction)
			}
		case *ast.KeyValueExpr:
			key, _ := n.Key.(*ast.Ident)
			if run, ok := n.Value.(*ast.FuncLit); ok && key != nil && key.Name == "RunE" {
				check("RunE", run.Body, longestRun)
			}
		}
		return true
	})
	return long
}

// TestNoLongFunctions holds functions to what a reader can keep in mind. A command's function reads flags and calls
// packages: what is longer becomes a method of the command's flags.
func TestNoLongFunctions(t *testing.T) {
	seen := 0
	goFiles(t, func(_, file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(f) {
			return
		}
		seen++
		for _, long := range longFunctions(set, f) {
			t.Errorf("%s: %s", file, long)
		}
	})
	assert.Greater(t, seen, 500, "the walk found the files of the module")
}

// TestLongFunctionsAreFound has the check fail one line above each bound, and pass at the bound.
func TestLongFunctionsAreFound(t *testing.T) {
	file := func(function, run int) string {
		return "package p\n\nfunc f() {" + strings.Repeat("\n", function) + "}\n\nvar c = command{RunE: func() {" +
			strings.Repeat("\n", run) + "}}\n"
	}
	for _, c := range []struct {
		function, run int
		want          []string
	}{
		{longestFunction, longestRun, nil},
		{longestFunction + 1, longestRun, []string{"line 3: f has 121 lines, at most 120"}},
		{longestFunction, longestRun + 1, []string{"line 125: RunE has 41 lines, at most 40"}},
	} {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "p.go", file(c.function, c.run), 0)
		require.NoError(t, err)
		assert.Equal(t, c.want, longFunctions(set, f))
	}
}
