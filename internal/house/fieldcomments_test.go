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

// maxFragments is how many field comments of the program are fragments. It only goes down: a change that mends some
// lowers it.
const maxFragments = 41

// fieldFragments counts the fields of a file's structs that have a comment, and those whose comment is a fragment.
func fieldFragments(f *ast.File) (commented, fragments int) {
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
				fragments++
			}
		}
		return true
	})
	return commented, fragments
}

// TestFieldComments holds the number of field comments that are not sentences. With -v it prints the number by package,
// the worst package first.
func TestFieldComments(t *testing.T) {
	byPackage := map[string]int{}
	commented, fragments := 0, 0
	goFiles(t, func(pkg, file string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		all, bad := fieldFragments(f)
		commented, fragments, byPackage[pkg] = commented+all, fragments+bad, byPackage[pkg]+bad
	})
	packages := make([]string, 0, len(byPackage))
	for pkg := range byPackage {
		packages = append(packages, pkg)
	}
	slices.SortFunc(packages, func(a, b string) int { return byPackage[b] - byPackage[a] })
	for _, pkg := range packages {
		if byPackage[pkg] > 0 {
			t.Logf("%4d %s", byPackage[pkg], pkg)
		}
	}
	t.Logf("%d of %d field comments begin with of, that or which", fragments, commented)
	assert.Greater(t, commented, 1000, "the walk found the fields")
	assert.LessOrEqual(t, fragments, maxFragments,
		"a field's comment is a sentence, or the field's name says what it holds: see CONTRIBUTING.md, How the code reads")
}

// TestFragmentsAreFound has the count fail where it should.
func TestFragmentsAreFound(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
type a struct {
	rows int // of the split
	// that hold it
	drives []string
	bytes int // the bytes of the split
	plain int
}`, parser.ParseComments)
	require.NoError(t, err)
	commented, fragments := fieldFragments(f)
	assert.Equal(t, 3, commented)
	assert.Equal(t, 2, fragments)
}
