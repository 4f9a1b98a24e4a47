package house

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A unit of fpga/unit has a reference, which reads like the unit's definition, and a kernel, which is fast. The two
// share types, constants and error values, so that no fault of one can hide behind the same fault of the other. The
// reference is a package named reference or the files of a package whose names begin with reference; the rest of the
// unit is the kernel. A package named format holds what the two may share.

// unitLoader type-checks packages of the module from their source. Packages from outside the module are left empty: the
// rule is about functions of the module only.
type unitLoader struct {
	root   string // the folder that the module's path stands for
	fset   *token.FileSet
	loaded map[string]*unitPackage
}

// unitPackage is a package with what its identifiers mean.
type unitPackage struct {
	types *types.Package
	files []*ast.File
	info  types.Info
}

func newUnitLoader(root string) *unitLoader {
	return &unitLoader{root: root, fset: token.NewFileSet(), loaded: map[string]*unitPackage{}}
}

// Import loads a package for the type checker.
func (l *unitLoader) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	inside, found := strings.CutPrefix(importPath, Module+"/")
	if !found {
		p := types.NewPackage(importPath, path.Base(importPath))
		p.MarkComplete()
		return p, nil
	}
	p, err := l.load(inside)
	if err != nil {
		return nil, err
	}
	return p.types, nil
}

// load parses and checks the package of a folder relative to the root, without its tests.
func (l *unitLoader) load(folder string) (*unitPackage, error) {
	if p := l.loaded[folder]; p != nil {
		return p, nil
	}
	listed, err := build.Default.ImportDir(filepath.Join(l.root, folder), 0)
	if err != nil {
		return nil, err
	}
	p := &unitPackage{info: types.Info{Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	for _, name := range listed.GoFiles {
		f, err := parser.ParseFile(l.fset, filepath.Join(listed.Dir, name), nil, 0)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	// What the empty packages from outside lack are errors of the checker; what is declared inside is resolved all the
	// same.
	config := types.Config{Importer: l, Error: func(error) {}}
	p.types, _ = config.Check(Module+"/"+folder, l.fset, p.files, &p.info)
	l.loaded[folder] = p
	return p, nil
}

// side is the part of a unit that a file belongs to.
type side int

const (
	kernelSide side = iota
	referenceSide
	sharedSide
)

// sideOf tells the side of a file by its package's folder and its own name.
func sideOf(file string) side {
	switch folder := filepath.Base(filepath.Dir(file)); {
	case folder == "format":
		return sharedSide
	case folder == "reference", strings.HasPrefix(filepath.Base(file), "reference"):
		return referenceSide
	}
	return kernelSide
}

// crossings lists the places of a package at which a reference uses a function or a variable of a kernel, or a kernel
// one of a reference. units is the folder whose packages the rule is about.
func (l *unitLoader) crossings(units, folder string) ([]string, error) {
	p, err := l.load(folder)
	if err != nil {
		return nil, err
	}
	under := filepath.Join(l.root, units) + string(filepath.Separator)
	problems := map[string]bool{}
	for _, f := range p.files {
		from := sideOf(l.fset.Position(f.Pos()).Filename)
		if from == sharedSide {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			name, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			object := p.info.Uses[name]
			if object == nil || object.Pkg() == nil || !holdsCode(object) {
				return true
			}
			declared := l.fset.Position(object.Pos()).Filename
			if !strings.HasPrefix(declared, under) {
				return true
			}
			if to := sideOf(declared); to != from && to != sharedSide {
				place := l.fset.Position(name.Pos())
				problems[fmt.Sprintf("%s:%d uses %s of %s", place.Filename, place.Line, object.Name(),
					filepath.Base(declared))] = true
			}
			return true
		})
	}
	var sorted []string
	for problem := range problems {
		sorted = append(sorted, problem)
	}
	sort.Strings(sorted)
	return sorted, nil
}

// holdsCode reports whether an object is a function, a method, or a package's variable that is not an error value.
// Types, constants, fields and error values may be shared.
func holdsCode(object types.Object) bool {
	switch o := object.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return !o.IsField() && o.Parent() == o.Pkg().Scope() && !strings.HasPrefix(o.Name(), "Err")
	}
	return false
}

// unitFolders lists the units: the folders of fpga/unit, less those that hold none.
func unitFolders(t *testing.T, root string) []string {
	entries, err := os.ReadDir(filepath.Join(root, "fpga/unit"))
	require.NoError(t, err)
	var folders []string
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && name != "internal" && name != "testdata" && !strings.HasPrefix(name, "_") {
			folders = append(folders, "fpga/unit/"+name)
		}
	}
	return folders
}

// definedByTests are the folders of fpga/unit that have no reference of their own: they are steps of other units, and
// their tests compute what they must give, value by value.
var definedByTests = map[string]bool{"fpga/unit/encoding": true, "fpga/unit/rowmajor": true, "fpga/unit/snappy": true}

// TestReferencesShareOnlyTypes holds every unit to the rule, and the references of operators, which are made of those
// of units.
func TestReferencesShareOnlyTypes(t *testing.T) {
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	l := newUnitLoader(absolute)
	folders := unitFolders(t, absolute)
	require.Greater(t, len(folders), 10)
	for _, folder := range folders {
		inner := filepath.Join(absolute, folder, "reference")
		packages := []string{folder}
		if _, err := os.Stat(inner); err == nil {
			packages = []string{folder + "/format", folder + "/decoder", folder + "/reference"}
		} else {
			_, err := os.Stat(filepath.Join(absolute, folder, "reference.go"))
			assert.Equal(t, definedByTests[folder], err != nil,
				"%s: a unit has a reference, or is listed as one without", folder)
		}
		for _, pkg := range packages {
			problems, err := l.crossings("fpga/unit", pkg)
			require.NoError(t, err)
			for _, problem := range problems {
				t.Errorf("%s: reference and kernel share only types, constants and errors", problem)
			}
		}
	}
	made, err := filepath.Glob(filepath.Join(absolute, "fpga/operator/*/reference"))
	require.NoError(t, err)
	require.Greater(t, len(made), 30)
	for _, folder := range append(made, filepath.Join(absolute, "fpga/engine/reference")) {
		inside, err := filepath.Rel(absolute, folder)
		require.NoError(t, err)
		problems, err := l.crossings("fpga/unit", inside)
		require.NoError(t, err)
		assert.Empty(t, problems, "the references of operators use references of units, no kernel")
	}
}

// TestReferenceRuleFindsSharedCode gives the rule a unit that breaks it in every way.
func TestReferenceRuleFindsSharedCode(t *testing.T) {
	absolute, err := filepath.Abs("testdata/units")
	require.NoError(t, err)
	l := newUnitLoader(absolute)
	for folder, want := range map[string][]string{
		"fpga/unit/parted": nil,
		"fpga/unit/mixed": {
			"kernel.go:6 uses Reference", "reference.go:6 uses double", "reference.go:7 uses table",
			"reference.go:8 uses Twice",
		},
		"fpga/unit/several/decoder":   {"decoder.go:6 uses Value"},
		"fpga/unit/several/reference": {"reference.go:10 uses Double"},
	} {
		problems, err := l.crossings("fpga/unit", folder)
		require.NoError(t, err)
		require.Len(t, problems, len(want), "%s: %v", folder, problems)
		for i, problem := range problems {
			require.Contains(t, problem, want[i])
		}
	}
}
