package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Tree is the code that documents speak of.
type Tree struct {
	root     string
	packages map[string]map[string]bool // folder: names, "Type", "Type.Member"
}

// NewTree returns the tree of the repository in a folder.
func NewTree(root string) *Tree { return &Tree{root: root, packages: map[string]map[string]bool{}} }

// Declares returns an error unless the code declares a name: a package ("host/placement"), something of a package
// ("sdk/dataset.Token"), or a method or field of a type ("sdk/dataset.Token.MarshalBinary"). Names that are not
// exported count, test files do not.
func (t *Tree) Declares(name string) error {
	folder, member := name, ""
	if i := strings.IndexByte(name[strings.LastIndexByte(name, '/')+1:], '.'); i >= 0 {
		i += strings.LastIndexByte(name, '/') + 1
		folder, member = name[:i], name[i+1:]
	}
	names, err := t.load(folder)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if member != "" && !names[member] {
		return fmt.Errorf("%s: package %s declares no %s", name, folder, member)
	}
	return nil
}

// FileDeclares returns an error unless a Go file declares a name: "NewPlan", "Engine.Execute".
func FileDeclares(path, name string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, d := range f.Decls {
		collect(d, names)
	}
	if !names[name] {
		return fmt.Errorf("%s does not declare %s", path, name)
	}
	return nil
}

// load parses the Go files of a folder once.
func (t *Tree) load(folder string) (map[string]bool, error) {
	if names, ok := t.packages[folder]; ok {
		return names, nil
	}
	entries, err := os.ReadDir(filepath.Join(t.root, filepath.FromSlash(folder)))
	if err != nil {
		return nil, fmt.Errorf("there is no package %s", folder)
	}
	names := map[string]bool{}
	files := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(t.root, filepath.FromSlash(folder), e.Name()), nil,
			parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			collect(d, names)
		}
	}
	if files == 0 {
		return nil, fmt.Errorf("%s holds no Go", folder)
	}
	t.packages[folder] = names
	return names, nil
}

// collect adds the names that a declaration declares.
func collect(d ast.Decl, names map[string]bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
			return
		}
		names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				for _, member := range members(s.Type) {
					names[s.Name.Name+"."+member] = true
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names[n.Name] = true
				}
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members returns the fields of a struct and the methods of an interface.
func members(e ast.Expr) []string {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return nil
	}
	var names []string
	for _, f := range list.List {
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
	}
	return names
}
