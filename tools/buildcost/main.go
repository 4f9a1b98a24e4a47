// Command buildcost says what each dependency of the command costs: seconds of processor time that its packages take to
// compile, with an empty build cache, and bytes of the binary. It writes the table of docs/dependencies.md.
//
//	buildcost ROOT       ROOT is the folder of the module; the build takes some minutes
//
// Seconds are those of the compiler and the linker (go build -debug-actiongraph), bytes those of the binary's symbols.
// A package is counted to the module that holds it.
package main

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/tools/machine"
)

const (
	ownModule = "this module"
	standard  = "the standard library"
	linker    = "the linker"
	tables    = "the linker's tables of all functions and types"
	remaining = "all others"

	leastSeconds, leastBytes = 1.5, 400e3 // of a row of its own

	head = "<!-- costs: written by go run ./buildcost .. in tools -->\n"
	tail = "<!-- end of costs -->\n"
)

// cost is what a module costs.
type cost struct {
	module  string
	seconds float64 // of processor time
	bytes   int64
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "buildcost:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("want the folder of the module")
	}
	root := args[0]
	work, err := os.MkdirTemp("", "buildcost")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	modules, err := modulesOfPackages(root)
	if err != nil {
		return err
	}
	costs := map[string]*cost{}
	of := func(module string) *cost {
		if costs[module] == nil {
			costs[module] = &cost{module: module}
		}
		return costs[module]
	}
	began := time.Now()
	binary, actions := filepath.Join(work, "millrace"), filepath.Join(work, "actions.json")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "-debug-actiongraph="+actions, "./cmd/millrace")
	build.Dir, build.Stderr = root, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+filepath.Join(work, "cache"))
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	took := time.Since(began)
	if err := countSeconds(actions, modules, of); err != nil {
		return err
	}
	if err := countBytes(binary, modules, of); err != nil {
		return err
	}
	return write(filepath.Join(root, "docs", "dependencies.md"), tableOf(costs, took))
}

// modulesOfPackages returns the module of every package that the command links.
func modulesOfPackages(root string) (map[string]string, error) {
	list := exec.Command("go", "list", "-deps", "-f",
		"{{.ImportPath}} {{if .Standard}}-{{else if .Module.Main}}+{{else}}{{.Module.Path}}{{end}}", "./cmd/millrace")
	list.Dir, list.Stderr = root, os.Stderr
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch module {
		case "-":
			module = standard
		case "+":
			module = ownModule
		}
		modules[pkg] = module
	}
	return modules, nil
}

// countSeconds adds the processor time of the build's actions.
func countSeconds(actions string, modules map[string]string, of func(string) *cost) error {
	b, err := os.ReadFile(actions)
	if err != nil {
		return err
	}
	var list []struct {
		Mode, Package   string
		CmdUser, CmdSys time.Duration
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("the build's actions: %w", err)
	}
	for _, a := range list {
		module := modules[a.Package]
		if a.Mode == "link" {
			module = linker
		}
		if module == "" {
			module = standard // as for steps that belong to no package
		}
		of(module).seconds += (a.CmdUser + a.CmdSys).Seconds()
	}
	return nil
}

// countBytes adds the sizes of the symbols that the binary's file holds. What no package's symbol holds is not counted.
func countBytes(binary string, modules map[string]string, of func(string) *cost) error {
	f, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return fmt.Errorf("symbols of the binary: %w", err)
	}
	for _, s := range symbols {
		if int(s.Section) >= len(f.Sections) || f.Sections[s.Section].Type == elf.SHT_NOBITS {
			continue // memory that the file does not hold
		}
		module := modules[packageOf(s.Name)]
		if size := int64(s.Size); strings.HasPrefix(s.Name, "go:") || s.Name == "runtime.pclntab" {
			of(tables).bytes += size
		} else if module != "" {
			of(module).bytes += size
		}
	}
	return nil
}

// packageOf returns the package of a symbol's name: what stands before the first period behind the last slash, leaving
// out the arguments of generic types.
func packageOf(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, "[")
	symbol = strings.TrimPrefix(symbol, "type:.eq.")
	slash := strings.LastIndex(symbol, "/") + 1
	name, _, found := strings.Cut(symbol[slash:], ".")
	if !found {
		return ""
	}
	// The linker writes a period within the last element of a package's path as %2e.
	return strings.ReplaceAll(symbol[:slash]+name, "%2e", ".")
}

// tableOf returns the table, the costliest first.
func tableOf(costs map[string]*cost, took time.Duration) string {
	var rows []cost
	var sum cost
	others := cost{module: remaining}
	for _, c := range costs {
		sum.seconds, sum.bytes = sum.seconds+c.seconds, sum.bytes+c.bytes
		if c.seconds < leastSeconds && c.bytes < leastBytes {
			others.seconds, others.bytes = others.seconds+c.seconds, others.bytes+c.bytes
			continue
		}
		rows = append(rows, *c)
	}
	slices.SortFunc(rows, func(a, b cost) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.module, b.module))
	})
	rows = append(rows, others, cost{module: "all", seconds: sum.seconds, bytes: sum.bytes})
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s on %s, %d cores, %s.\nThe build took %.0f s with an empty build cache.\n\n",
		time.Now().UTC().Format("2006-01-02"), machine.Processor(), runtime.NumCPU(), runtime.Version(), took.Seconds())
	b.WriteString("| module | seconds of processor time to compile | MB of the binary |\n|---|---|---|\n")
	for _, c := range rows {
		fmt.Fprintf(&b, "| %s | %.1f | %.2f |\n", c.module, c.seconds, float64(c.bytes)/1e6)
	}
	return b.String()
}

// write replaces the table of the document.
func write(document, table string) error {
	b, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(b), head)
	_, after, ended := strings.Cut(rest, tail)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table", document)
	}
	return os.WriteFile(document, []byte(before+head+table+tail+after), 0o644)
}
