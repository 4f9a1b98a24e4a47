// Unusedexport lists the declarations of a Go module that only its tests, or nothing at all, use: exported names of
// every kind by their references, and functions and methods because deadcode cannot reach them. What an Example calls
// is used: it is for users. So is what a file for another system calls.
//
//	unusedexport [-exceptions FILE] [-dead FILE] FOLDER [PACKAGE...]
//
// FOLDER is the root of the module, and the packages are ./... unless others are named; in a workspace they may be of
// other modules below it, too. The file of -dead holds the output of deadcode over the module's programs. The file of
// -exceptions has lines "PACKAGE.NAME reason", "PACKAGE.* reason" or "PACKAGE/FILE.go reason"; a method is
// PACKAGE.TYPE.NAME. An exception that nothing needs is reported too, so that the list stays short. The last line has
// the number of names. The exit status is 1 if anything is reported.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	exceptions := flag.String("exceptions", "", "file of names that stay, each with a reason")
	dead := flag.String("dead", "", "file with the output of deadcode")
	flag.Parse()
	reported, err := run(flag.Arg(0), flag.Args()[min(1, flag.NArg()):], *exceptions, *dead)
	if err != nil {
		fmt.Fprintln(os.Stderr, "unusedexport:", err)
		os.Exit(2)
	}
	if reported > 0 {
		os.Exit(1)
	}
}

func run(folder string, patterns []string, exceptionsFile, deadFile string) (reported int, err error) {
	kept, err := readExceptions(exceptionsFile)
	if err != nil {
		return 0, err
	}
	found, err := unusedNames(folder, patterns)
	if err != nil {
		return 0, err
	}
	unused := found.unused
	unreachable, err := readDead(folder, deadFile, found.forTests)
	if err != nil {
		return 0, err
	}
	for name, at := range unreachable {
		if _, known := unused[name]; !known && !found.usedUnloaded[name] {
			unused[name] = at
		}
	}
	names := make([]string, 0, len(unused))
	for name := range unused {
		names = append(names, name)
	}
	sort.Strings(names)
	stay := 0
	for _, name := range names {
		if kept.keeps(name, unused[name]) {
			stay++
		} else {
			fmt.Printf("%s: %s is used by tests only, or by nothing: remove it, unexport it, or move it to a _test.go file\n",
				unused[name], name)
			reported++
		}
	}
	for _, e := range kept {
		if !e.needed {
			fmt.Printf("%s:%d: nothing needs the exception %s any more: remove the line\n", exceptionsFile, e.line, e.pattern)
			reported++
		}
	}
	fmt.Printf("%d names are used by tests only, or by nothing; exceptions keep %d of them\n", len(names), stay)
	return reported, nil
}

// exception is a name, all names of a package, or all of a file, that may be unused.
type exception struct {
	pattern string
	line    int
	needed  bool
}

type exceptionList []*exception

// keeps reports whether an exception covers a name or the file that declares it, and notes that the exception is
// needed.
func (l exceptionList) keeps(name, at string) bool {
	kept := false
	file, _, _ := strings.Cut(at, ":")
	for _, e := range l {
		prefix, whole := strings.CutSuffix(e.pattern, "*")
		if e.pattern == name || e.pattern == file || whole && strings.HasPrefix(name, prefix) {
			e.needed, kept = true, true
		}
	}
	return kept
}

func readExceptions(file string) (exceptionList, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list exceptionList
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, reason, _ := strings.Cut(line, " ")
		if strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: the exception %s gives no reason", file, i+1, pattern)
		}
		list = append(list, &exception{pattern: pattern, line: i + 1})
	}
	return list, nil
}

// deadLine is a line of deadcode: the position and the function, Type.Method or name.
var deadLine = regexp.MustCompile(`^(.+?\.go):(\d+):\d+: unreachable func: ([\w.]+)$`)

// readDead reads the output of deadcode and returns positions by PACKAGE.NAME, but those of packages for tests.
func readDead(folder, file string, forTests map[string]bool) (map[string]string, error) {
	names := map[string]string{}
	if file == "" {
		return names, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		m := deadLine.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, fmt.Errorf("%s: %q is not a line of deadcode", file, lines.Text())
		}
		path := m[1]
		if filepath.IsAbs(path) {
			if path, err = filepath.Rel(folder, path); err != nil {
				return nil, err
			}
		}
		if !forTests[filepath.ToSlash(filepath.Dir(path))] {
			names[filepath.ToSlash(filepath.Dir(path))+"."+m[3]] = path + ":" + m[2]
		}
	}
	return names, lines.Err()
}

// isForTests reports whether a package exists for tests only, so that tests alone use its exports: its name or a folder
// above says so, or it imports package testing, which no program links.
func isForTests(pkg string, p *packages.Package) bool {
	for part := range strings.SplitSeq(pkg, "/") {
		if strings.HasSuffix(part, "test") {
			return true
		}
	}
	return p.Imports["testing"] != nil
}

// survey is what unusedNames finds in the packages of a module.
type survey struct {
	// unused has the position of each exported name that no file but a test refers to.
	unused map[string]string
	// forTests lists the packages that exist for tests only.
	forTests map[string]bool
	// usedUnloaded lists the names that Examples, or files for other systems, refer to.
	usedUnloaded map[string]bool
}

func unusedNames(folder string, patterns []string) (found survey, err error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	fset := token.NewFileSet()
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedModule,
		Dir:  folder,
		Fset: fset,
	}, patterns...)
	if err != nil {
		return found, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return found, fmt.Errorf("%s does not build", folder)
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return found, err
	}
	var (
		declared = map[string]string{}
		used     = map[string]bool{}
		blocks   [][]string
	)
	module := ""
	for _, p := range loaded {
		if p.Module != nil && (module == "" || len(p.Module.Path) < len(module)) {
			module = p.Module.Path
		}
	}
	short := func(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }
	found.forTests, found.usedUnloaded = map[string]bool{}, map[string]bool{}
	for _, p := range loaded {
		if p.Module == nil {
			continue
		}
		pkg := short(p.PkgPath)
		found.forTests[pkg] = isForTests(pkg, p)
		if p.Name != "main" && !found.forTests[pkg] {
			for _, name := range p.Types.Scope().Names() {
				object := p.Types.Scope().Lookup(name)
				at := fset.Position(object.Pos())
				if !object.Exported() || strings.HasSuffix(at.Filename, ".pb.go") || strings.HasSuffix(at.Filename, ".connect.go") {
					continue
				}
				path, err := filepath.Rel(absolute, at.Filename)
				if err != nil {
					return found, err
				}
				declared[pkg+"."+name] = fmt.Sprintf("%s:%d", filepath.ToSlash(path), at.Line)
			}
		}
		unloaded, err := unloadedUses(p, short)
		if err != nil {
			return found, err
		}
		maps.Copy(found.usedUnloaded, unloaded)
		for _, file := range p.Syntax {
			noteUses(file, p, short, used)
			blocks = append(blocks, constantBlocks(file, short(p.PkgPath))...)
		}
	}
	maps.Copy(used, found.usedUnloaded)
	// A block lists the values of a type or of a field of a protocol; it is used where one of them is.
	for _, block := range blocks {
		if slices.ContainsFunc(block, func(name string) bool { return used[name] }) {
			for _, name := range block {
				used[name] = true
			}
		}
	}
	for name := range used {
		delete(declared, name)
	}
	found.unused = declared
	return found, nil
}

// noteUses notes the package-level names that the file refers to, except references within a name's own declaration.
func noteUses(file *ast.File, p *packages.Package, short func(string) string, used map[string]bool) {
	for _, declaration := range file.Decls {
		own := ownNames(declaration, p.TypesInfo)
		ast.Inspect(declaration, func(n ast.Node) bool {
			identifier, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			object := p.TypesInfo.Uses[identifier]
			if object == nil || object.Pkg() == nil || object.Parent() != object.Pkg().Scope() || own[object] {
				return true
			}
			used[short(object.Pkg().Path())+"."+object.Name()] = true
			return true
		})
	}
}

// constantBlocks returns the names of each block of several constants, as PACKAGE.NAME.
func constantBlocks(file *ast.File, pkg string) (blocks [][]string) {
	for _, declaration := range file.Decls {
		d, ok := declaration.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		var block []string
		for _, s := range d.Specs {
			for _, name := range s.(*ast.ValueSpec).Names {
				block = append(block, pkg+"."+name.Name)
			}
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// ownNames returns the functions and types that a declaration declares, and for a method its receiver's type.
func ownNames(declaration ast.Decl, info *types.Info) map[types.Object]bool {
	own := map[types.Object]bool{}
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		own[info.Defs[d.Name]] = true
		if d.Recv != nil {
			ast.Inspect(d.Recv, func(n ast.Node) bool {
				if identifier, ok := n.(*ast.Ident); ok && info.Uses[identifier] != nil {
					own[info.Uses[identifier]] = true
				}
				return true
			})
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if t, ok := s.(*ast.TypeSpec); ok {
				own[info.Defs[t.Name]] = true
			}
		}
	}
	return own
}
