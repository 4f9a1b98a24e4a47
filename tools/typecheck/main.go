// Typecheck checks packages, by default those of the Go module in the working directory, with their tests, for another
// system: all types, and what `go vet` checks of assembly, build constraints and unsafe pointers. It reads sources
// alone, in a tenth of the processor time that the compiler takes for the same packages and what they import.
//
//	typecheck GOOS/GOARCH [PACKAGE...]
//
// The exit status is 1 if anything is reported.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/asmdecl"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/packages"
)

func main() {
	reported, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(2)
	}
	if reported > 0 {
		os.Exit(1)
	}
}

func run(args []string) (reported int, err error) {
	if len(args) == 0 {
		return 0, errors.New("want a system, as darwin/arm64")
	}
	goos, goarch, ok := strings.Cut(args[0], "/")
	if !ok {
		return 0, fmt.Errorf("%q is not a system, as darwin/arm64 is", args[0])
	}
	patterns := args[1:]
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Tests: true,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		return 0, err
	}
	if n := packages.PrintErrors(loaded); n > 0 {
		return n, nil
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{asmdecl.Analyzer, buildtag.Analyzer, unsafeptr.Analyzer}, loaded,
		nil)
	if err != nil {
		return 0, err
	}
	for _, a := range graph.Roots {
		if a.Err != nil {
			return 0, fmt.Errorf("%s: %w", a.Package.PkgPath, a.Err)
		}
		for _, d := range a.Diagnostics {
			fmt.Printf("%s: %s\n", a.Package.Fset.Position(d.Pos), d.Message)
			reported++
		}
	}
	fmt.Printf("typecheck: %d packages for %s/%s\n", len(loaded), goos, goarch)
	return reported, nil
}
