package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logMethods are the methods of slog.Logger whose first argument is the message and whose further arguments are keys
// and values.
var logMethods = map[string]bool{"Debug": true, "Info": true, "Warn": true, "Error": true}

// logKeys reads the table of keys under "## The log" of docs/operations.md.
func logKeys(t *testing.T) map[string]bool {
	b, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(b), "\n## The log\n")
	require.True(t, found, "docs/operations.md has no section The log")
	section, _, _ = strings.Cut(section, "\n## ")
	keys := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			keys[m[1]] = true
		}
	}
	return keys
}

// logProblems says what is wrong with the log calls of a file: a key that is not in the table, or an error under
// another key than "error".
func logProblems(f *ast.File, known, used map[string]bool) (problems []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 || len(call.Args)%2 == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !logMethods[method.Sel.Name] {
			return true
		}
		if message, ok := call.Args[0].(*ast.BasicLit); !ok || message.Kind != token.STRING {
			return true
		}
		for i := 1; i+1 < len(call.Args); i += 2 {
			literal, ok := call.Args[i].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			key, err := strconv.Unquote(literal.Value)
			if err != nil {
				problems = append(problems, literal.Value+" is not a string")
				continue
			}
			used[key] = true
			if !known[key] {
				problems = append(problems, "the key "+strconv.Quote(key)+
					" is not in the table of docs/operations.md, The log")
			}
			value, isName := call.Args[i+1].(*ast.Ident)
			if isName && (value.Name == "err" || strings.HasSuffix(value.Name, "err")) && key != "error" {
				problems = append(problems, "an error is logged as "+strconv.Quote(key)+", not as \"error\"")
			}
		}
		return true
	})
	return problems
}

// TestLogKeys holds every log call of the program to one set of keys, which docs/operations.md lists, and that list to
// the calls.
func TestLogKeys(t *testing.T) {
	known, used := logKeys(t), map[string]bool{}
	goFiles(t, func(_, file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, problem := range logProblems(f, known, used) {
			t.Errorf("%s: %s", file, problem)
		}
	})
	assert.True(t, used["error"], "the walk found no log call")
	for key := range known {
		assert.True(t, used[key], "docs/operations.md lists the key %s, which nothing logs", key)
		assert.Regexp(t, `^[a-z][a-z0-9_]*$`, key)
	}
}

// TestLogProblemsAreFound has the check fail where it should.
func TestLogProblemsAreFound(t *testing.T) {
	known := map[string]bool{"error": true, "drive": true}
	for source, want := range map[string]int{
		`l.Warn("failed", "drive", d, "error", err)`: 0,
		`l.Warn("failed", "err", err)`:               2,
		`l.Info("failed", "drive", cerr)`:            1,
		`l.Error("failed", "next try", d)`:           1,
		`t.Error("failed", err)`:                     0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {"+source+"}", 0)
		require.NoError(t, err)
		assert.Len(t, logProblems(f, known, map[string]bool{}), want, source)
	}
}

// TestOneLogFormat: handlers, which choose the format, are made in one file of the command line only.
func TestOneLogFormat(t *testing.T) {
	handlers := 0
	goFiles(t, func(pkg, file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, maker := range []string{"slog.NewTextHandler(", "slog.NewJSONHandler("} {
			if !strings.Contains(string(b), maker) {
				continue
			}
			handlers++
			assert.Equal(t, "cmd/millrace/logger.go", pkg+"/"+filepath.Base(file), "%s makes a log of its own", file)
		}
	})
	assert.Equal(t, 2, handlers)
}
