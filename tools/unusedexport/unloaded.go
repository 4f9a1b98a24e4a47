package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// exampleFunction finds files with an Example, which shows users how they call a package.
var exampleFunction = regexp.MustCompile(`(?m)^func Example`)

// unloadedUses returns the package-level names that files without types refer to: the Examples of a package, which
// call it as its users do, and its files for other systems. short makes PACKAGE of an import path.
func unloadedUses(p *packages.Package, short func(string) string) (map[string]bool, error) {
	used := map[string]bool{}
	tests, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range append(tests, p.IgnoredFiles...) {
		isTest := strings.HasSuffix(name, "_test.go")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(name, ".go") || isTest && !exampleFunction.Match(text) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		own := short(p.PkgPath)
		if isTest {
			own = ""
		}
		imported := importedPackages(file, short)
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); isTest && (!ok || !strings.HasPrefix(f.Name.Name, "Example")) {
				continue
			}
			noteSyntax(declaration, own, imported, used)
		}
	}
	return used, nil
}

// importedPackages returns PACKAGE by the names that the file calls packages by.
func importedPackages(file *ast.File, short func(string) string) map[string]string {
	imported := map[string]string{}
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = short(path)
	}
	return imported
}

// noteSyntax notes the names that a declaration refers to: those of imported packages, and those of the package own,
// except the names that the declaration declares. No unqualified name counts where own is empty.
func noteSyntax(declaration ast.Decl, own string, imported map[string]string, used map[string]bool) {
	declared := declaredNames(declaration)
	selected := map[*ast.Ident]bool{}
	ast.Inspect(declaration, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			selected[n.Sel] = true
			if x, ok := n.X.(*ast.Ident); ok && imported[x.Name] != "" {
				used[imported[x.Name]+"."+n.Sel.Name] = true
			}
		case *ast.Ident:
			if own != "" && !selected[n] && !declared[n.Name] {
				used[own+"."+n.Name] = true
			}
		}
		return true
	})
}

// declaredNames returns the functions, types, variables and constants that a declaration declares, and the type of a
// method's receiver.
func declaredNames(declaration ast.Decl) map[string]bool {
	names := map[string]bool{}
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		names[d.Name.Name] = true
		if d.Recv != nil {
			ast.Inspect(d.Recv, func(n ast.Node) bool {
				if identifier, ok := n.(*ast.Ident); ok {
					names[identifier.Name] = true
				}
				return true
			})
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names[name.Name] = true
				}
			}
		}
	}
	return names
}
