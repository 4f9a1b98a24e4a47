// Command codesize prints how much Go a checkout has, which its packages of more than 3,500 lines are, and which its
// functions of more than 120.
//
//	codesize FOLDER
//
// FOLDER is the root of the checkout; the files are those that git does not ignore. A line is a line of a file,
// comments and blank lines included. Lines by hand are those of files that are neither generated ("// Code generated
// ... DO NOT EDIT.") nor tests. Tests are files whose name ends in _test.go, all of a folder testdata, and packages
// whose name ends in test, which exist for tests alone. A file belongs to the module whose go.mod is nearest above it.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const (
	// mostPackageLines is from how many lines by hand on a package is to be divided.
	mostPackageLines = 3500
	// mostFunctionLines is from how many lines on a function is to be divided.
	mostFunctionLines = 120
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "codesize:", err)
		os.Exit(1)
	}
}

func run(args []string, to io.Writer) error {
	if len(args) != 1 {
		return errors.New("want the root of the checkout")
	}
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
		"*.go", "go.mod", "*/go.mod")
	list.Dir, list.Stderr = args[0], os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	counts := newCounts()
	files := strings.Split(strings.Trim(string(out), "\x00"), "\x00")
	for _, file := range files {
		if path.Base(file) == "go.mod" {
			counts.modules[path.Dir(file)] = &moduleLines{}
		}
	}
	if counts.modules["."] == nil {
		return fmt.Errorf("%s has no go.mod: name the root of the checkout", args[0])
	}
	for _, file := range files {
		if path.Base(file) == "go.mod" {
			continue
		}
		source, err := os.ReadFile(filepath.Join(args[0], filepath.FromSlash(file)))
		if errors.Is(err, os.ErrNotExist) {
			continue // git knows the file, and the working tree has it no more
		}
		if err != nil {
			return err
		}
		if err := counts.add(file, source); err != nil {
			return err
		}
	}
	counts.write(to)
	return nil
}

// moduleLines is how many lines of each kind a module has.
type moduleLines struct {
	byHand, generated, tests int
}

// long is a package or a function with too many lines.
type long struct {
	name  string
	lines int
}

// counts is what is counted of a checkout. Names are paths with slashes, relative to its root.
type counts struct {
	modules   map[string]*moduleLines
	packages  map[string]int
	functions []long
}

func newCounts() *counts {
	return &counts{modules: map[string]*moduleLines{}, packages: map[string]int{}}
}

// add counts a file.
func (c *counts) add(file string, source []byte) error {
	lines := bytes.Count(source, []byte("\n"))
	module := c.modules[c.moduleOf(file)]
	if isTest(file) {
		module.tests += lines
		return nil
	}
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(parsed) {
		module.generated += lines
		return nil
	}
	module.byHand += lines
	c.packages[path.Dir(file)] += lines
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		begin, end := positions.Position(function.Pos()).Line, positions.Position(function.End()).Line
		if lines := end - begin + 1; lines > mostFunctionLines {
			c.functions = append(c.functions, long{fmt.Sprintf("%s:%d %s", file, begin, function.Name.Name), lines})
		}
	}
	return nil
}

// moduleOf returns the folder of the module that a file belongs to.
func (c *counts) moduleOf(file string) string {
	folder := path.Dir(file)
	for c.modules[folder] == nil {
		folder = path.Dir(folder)
	}
	return folder
}

// isTest reports whether a file is there for tests alone.
func isTest(file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return true
	}
	for part := range strings.SplitSeq(path.Dir(file), "/") {
		if part == "testdata" || strings.HasSuffix(part, "test") {
			return true
		}
	}
	return false
}

// write writes the figures.
func (c *counts) write(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "by hand\tgenerated\ttests\t  lines of Go in module")
	var all moduleLines
	names := make([]string, 0, len(c.modules))
	for name, lines := range c.modules {
		all.byHand, all.generated, all.tests = all.byHand+lines.byHand, all.generated+lines.generated, all.tests+lines.tests
		if *lines != (moduleLines{}) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(c.modules[b].byHand, c.modules[a].byHand) })
	for _, name := range names {
		lines := c.modules[name]
		if name == "." {
			name = "the product"
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t  %s\n", lines.byHand, lines.generated, lines.tests, name)
	}
	fmt.Fprintf(table, "%d\t%d\t%d\t  all modules\n", all.byHand, all.generated, all.tests)
	table.Flush()

	var packages []long
	for name, lines := range c.packages {
		if lines > mostPackageLines {
			packages = append(packages, long{name, lines})
		}
	}
	writeLong(to, fmt.Sprintf("packages of more than %d lines by hand", mostPackageLines), packages)
	writeLong(to, fmt.Sprintf("functions of more than %d lines by hand", mostFunctionLines), c.functions)
}

// writeLong writes how many packages or functions are too long, and each with its lines, the longest first.
func writeLong(to io.Writer, what string, list []long) {
	slices.SortFunc(list, func(a, b long) int {
		return cmp.Or(cmp.Compare(b.lines, a.lines), cmp.Compare(a.name, b.name))
	})
	fmt.Fprintf(to, "%s: %d\n", what, len(list))
	for _, l := range list {
		fmt.Fprintf(to, "%8d  %s\n", l.lines, l.name)
	}
}
