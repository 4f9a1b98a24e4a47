// Command testreport runs go test and prints each package when it ends, with a count, what the failed tests printed,
// and the slowest tests at the end, with a note where the comment of a long test does not say why it takes so long. go
// test on its own prints nothing of a package before all packages that it names first have ended.
//
//	testreport [flags of go test] packages...
//
// Its status is that of go test.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	os.Exit(status)
}

// run runs go test with the arguments and returns its status.
func run(args []string) (status int, err error) {
	folders, err := testedPackages(args)
	if err != nil {
		return 0, err
	}
	test := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	test.Stderr = os.Stderr
	events, err := test.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := test.Start(); err != nil {
		return 0, err
	}
	report := newReport(os.Stdout, len(folders), reasons{folders}.given)
	readErr := report.read(events)
	if readErr != nil {
		_ = test.Process.Kill() // it would wait for a reader
	}
	err = test.Wait()
	report.finish()
	if readErr != nil {
		return 0, readErr
	}
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// testedPackages returns the folders of the packages that the arguments name and that have tests, by import path.
// Arguments that begin with a period are packages.
func testedPackages(args []string) (map[string]string, error) {
	list := []string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"}
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "."):
			list = append(list, arg)
		case arg == "-tags" && i+1 < len(args):
			list = append(list, "-tags", args[i+1])
		}
	}
	cmd := exec.Command("go", list...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, folder, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		folders[pkg] = folder
	}
	return folders, nil
}
