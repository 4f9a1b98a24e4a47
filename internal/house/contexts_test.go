package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contextValues returns the calls of a file that put a value into a context or take one out, as "line N: CALL". A call
// of a method Value with one argument is taken for the latter where the file imports context.
func contextValues(set *token.FileSet, f *ast.File) (calls []string) {
	name := ""
	for _, i := range f.Imports {
		if i.Path.Value != strconv.Quote("context") {
			continue
		}
		if name = "context"; i.Name != nil {
			name = i.Name.Name
		}
	}
	if name == "" {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		called := ""
		switch fn := call.Fun.(type) {
		case *ast.Ident:
			if name == "." && fn.Name == "WithValue" {
				called = "WithValue"
			}
		case *ast.SelectorExpr:
			of, _ := fn.X.(*ast.Ident)
			switch {
			case fn.Sel.Name == "WithValue" && of != nil && of.Name == name:
				called = "context.WithValue"
			case fn.Sel.Name == "Value" && len(call.Args) == 1:
				called = "Value"
			}
		}
		if called != "" {
			calls = append(calls, "line "+strconv.Itoa(set.Position(call.Pos()).Line)+": "+called)
		}
		return true
	})
	return calls
}

// TestNoContextValues holds the drive and its protocol to arguments: what a call says is in its types.
func TestNoContextValues(t *testing.T) {
	seen := 0
	goFiles(t, func(pkg, file string) {
		if !strings.HasPrefix(pkg+"/", "nvme/") && !strings.HasPrefix(pkg+"/", "fpga/") {
			return
		}
		seen++
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, 0)
		require.NoError(t, err)
		for _, call := range contextValues(set, f) {
			t.Errorf("%s: %s: pass the value as an argument or in a struct instead", file, call)
		}
	})
	assert.Greater(t, seen, 100, "the walk found the files of nvme and fpga")
}

// TestContextValuesAreFound has the check fail where it should.
func TestContextValuesAreFound(t *testing.T) {
	for _, c := range []struct {
		imported, body string
		want           []string
	}{
		{`"context"`, `ctx = context.WithValue(ctx, key{}, 1)`, []string{"line 3: context.WithValue"}},
		{`c "context"`, `ctx = c.WithValue(ctx, key{}, 1)`, []string{"line 3: context.WithValue"}},
		{`. "context"`, `ctx = WithValue(ctx, key{}, 1)`, []string{"line 3: WithValue"}},
		{`"context"`, `n, _ := ctx.Value(key{}).(int)`, []string{"line 3: Value"}},
		{`"context"`, `n := r.context().Value(key{})`, []string{"line 3: Value"}},
		{`"context"`, `ctx, cancel := context.WithCancel(ctx); v := field.Value()`, nil},
		{`"reflect"`, `table.WithValue(1); x := column.Value(3)`, nil},
	} {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "x.go", "package x\nimport "+c.imported+"\nfunc f() {"+c.body+"}", 0)
		require.NoError(t, err, c.body)
		assert.Equal(t, c.want, contextValues(set, f), c.body)
	}
}
