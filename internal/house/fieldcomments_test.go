package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fragmentWords begin the comment of a field whose subject is missing: "of the split", "that hold it".
var fragmentWords = []string{"of", "that", "which"}

// fieldFragments counts the fields of a file's structs that have a comment, and returns the positions of those whose
// comment is a fragment.
func fieldFragments(fset *token.FileSet, f *ast.File) (commented int, fragments []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range s.Fields.List {
			comment := field.Doc.Text()
			if comment == "" {
				comment = field.Comment.Text()
			}
			if comment == "" {
				continue
			}
			commented++
			if first, _, _ := strings.Cut(comment, " "); slices.Contains(fragmentWords, first) {
				fragments = append(fragments, fset.Position(field.Pos()).String())
			}
		}
		return true
	})
	return commented, fragments
}

// TestFieldComments refuses field comments that are not sentences.
func TestFieldComments(t *testing.T) {
	commented := 0
	goFiles(t, func(_, file string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			return
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		require.NoError(t, err)
		all, fragments := fieldFragments(fset, f)
		commented += all
		assert.Empty(t, fragments, "a field's comment is a sentence, or the field's name says what it holds: see "+
			"CONTRIBUTING.md, How the code reads")
	})
	assert.Greater(t, commented, 1000, "the walk found the fields")
}

// TestFragmentsAreFound has the count fail where it should.
func TestFragmentsAreFound(t *testing.T) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", `package x
type a struct {
	rows int // of the split
	// that hold it
	drives []string
	bytes int // the bytes of the split
	plain int
}`, parser.ParseComments)
	require.NoError(t, err)
	commented, fragments := fieldFragments(fset, f)
	assert.Equal(t, 3, commented)
	assert.Equal(t, []string{"x.go:3:2", "x.go:5:2"}, fragments)
}
