// Operatorlists writes the lists of operators from the folders of operators. An operator is a folder NAME with its
// parameters, and the packages kernel and reference below it. A folder that is there is in the lists, so that adding an
// operator edits no other file.
//
// Run it as `go generate ./fpga/operator`. With -check it compares the lists with the folders and writes nothing.
//
//	operatorlists [-check] DIRECTORY
//
// DIRECTORY has the folders. NAME is the name of the operator's unit without underscores. A list is a file of a package
// below DIRECTORY. It has a variable for each kind of operator, in the order of the folders' names:
//
//	package         declares                 variable
//	NAME            Definition               definitions []Definition
//	                Entry                    documented []Entry
//	                Answers                  answers []Answers
//	NAME/kernel     Unit and Compile         steps map[program.Unit]StepCompiler
//	                Unit and CompileCombiner combiners map[program.Unit]CombinerCompiler
//	NAME/reference  Unit and New             constructors map[program.Unit]Constructor
//
// The lists are operators.go of package operator, kernels/kernels_list.go of package kernels, and
// references/references_list.go of package references.
//
// A package of an operator must declare the names of one line at its top level: Unit is the program's number of the
// unit, as `const Unit = clamp.Unit`. The type of a variable's elements (Definition, StepCompiler, ...) is
// declared by hand in the package of the list, as a type to which the declared name can be assigned; that package also
// has the functions that read the variable. A list without a package has no file. Subfolders other than kernel and
// reference are not read.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// list is one generated file.
type list struct {
	packages string // The subfolder of an operator that is listed; empty: the operator's folder itself.
	file     string
	kinds    []kind
}

// kind is one variable of a list: the packages that declare a name.
type kind struct {
	name, variable, element string
	byUnit                  bool
}

// lists are the generated files, relative to the folder of operators.
var lists = []list{
	{"", "operators.go", []kind{
		{"Definition", "definitions", "Definition", false},
		{"Entry", "documented", "Entry", false},
		{"Answers", "answers", "Answers", false},
	}},
	{"kernel", "kernels/kernels_list.go", []kind{
		{"Compile", "steps", "StepCompiler", true},
		{"CompileCombiner", "combiners", "CombinerCompiler", true},
	}},
	{"reference", "references/references_list.go", []kind{{"New", "constructors", "Constructor", true}}},
}

// notOperators are folders that hold lists.
var notOperators = []string{"kernels", "references"}

// importRoot is the import path of the folder of operators.
const importRoot = "github.com/millrace/millrace/fpga/operator"

// programPath is the import path of the package that numbers units.
const programPath = "github.com/millrace/millrace/fpga/program"

func main() {
	check := flag.Bool("check", false, "compare the lists with the folders and write nothing")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: operatorlists [-check] DIRECTORY: writes the lists of the operators in DIRECTORY")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "operatorlists:", err)
		os.Exit(1)
	}
}

// run writes or checks every list of the operators in a folder.
func run(root string, check bool) error {
	names, err := folders(root)
	if err != nil {
		return err
	}
	var all error
	for _, l := range lists {
		text, err := l.text(root, names)
		if err == nil {
			err = store(filepath.Join(root, l.file), text, check)
		}
		all = errors.Join(all, err)
	}
	return all
}

// folders returns the names of the operators' folders, sorted.
func folders(root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(notOperators, e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// text returns the list's file for the operators with the given names; nothing if no operator has such a package.
func (l list) text(root string, names []string) ([]byte, error) {
	entries := make([][]string, len(l.kinds)) // by kind
	var listed []string
	for _, name := range names {
		declared, err := declarations(filepath.Join(root, name, l.packages), path.Base(path.Join(name, l.packages)))
		if err != nil {
			return nil, err
		}
		if declared == nil {
			continue
		}
		found := false
		for i, k := range l.kinds {
			if !declared[k.name] || k.byUnit && !declared["Unit"] {
				continue
			}
			found = true
			entry := name + "." + k.name
			if k.byUnit {
				entry = name + ".Unit: " + entry
			}
			entries[i] = append(entries[i], entry)
		}
		if !found {
			return nil, fmt.Errorf("%s declares none of %s: declare what tools/operatorlists lists",
				path.Join(name, l.packages), l.wanted())
		}
		listed = append(listed, name)
	}
	if len(listed) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by tools/operatorlists from the folders of operators; DO NOT EDIT.\n\n")
	fmt.Fprintf(&b, "package %s\n\n", l.packageName())
	fmt.Fprintln(&b, "import (")
	for _, name := range listed {
		alias := ""
		if l.packages != "" {
			alias = name + " "
		}
		fmt.Fprintf(&b, "%s%q\n", alias, path.Join(importRoot, name, l.packages))
	}
	if l.kinds[0].byUnit {
		fmt.Fprintf(&b, "%q\n", programPath)
	}
	fmt.Fprintln(&b, ")")
	for i, k := range l.kinds {
		of := "[]" + k.element
		if k.byUnit {
			of = "map[program.Unit]" + k.element
		}
		fmt.Fprintf(&b, "\n// %s lists %s of every operator that declares it, by the names of the folders.\n",
			k.variable, k.name)
		fmt.Fprintf(&b, "var %s = %s{\n", k.variable, of)
		for _, entry := range entries[i] {
			fmt.Fprintf(&b, "%s,\n", entry)
		}
		fmt.Fprintln(&b, "}")
	}
	return format.Source(b.Bytes())
}

// packageName returns the name of the package that the list belongs to.
func (l list) packageName() string {
	if dir := path.Dir(l.file); dir != "." {
		return dir
	}
	return path.Base(importRoot)
}

// wanted names what a package of the list may declare.
func (l list) wanted() string {
	var names []string
	for _, k := range l.kinds {
		if k.byUnit {
			names = append(names, "Unit and "+k.name)
		} else {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, " or ")
}

// declarations returns the exported names that the package in a folder declares at its top level; nil if the folder has
// no Go file that is not a test. The package must have the given name.
func declarations(dir, packageName string) (map[string]bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names map[string]bool
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		at := filepath.Join(dir, e.Name())
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if file.Name.Name != packageName {
			return nil, fmt.Errorf("%s is of package %s, want %s: name the package as its folder", at, file.Name.Name,
				packageName)
		}
		if names == nil {
			names = map[string]bool{}
		}
		for _, d := range file.Decls {
			addNames(names, d)
		}
	}
	return names, nil
}

// addNames adds the names that a declaration declares.
func addNames(names map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				for _, n := range v.Names {
					names[n.Name] = true
				}
			}
		}
	}
}

// store makes text the content of a file, and removes the file if there is not text. With check it only compares.
func store(file string, text []byte, check bool) error {
	old, err := os.ReadFile(file)
	switch missing := errors.Is(err, os.ErrNotExist); {
	case err != nil && !missing:
		return err
	case missing && text == nil, !missing && text != nil && bytes.Equal(old, text):
		return nil
	case check:
		return fmt.Errorf("%s is not what the folders make: go generate ./fpga/operator writes it", file)
	case text == nil:
		return os.Remove(file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
