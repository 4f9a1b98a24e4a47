// Command benchagainst compares the speed of a working tree with that of another revision. It builds the command of
// both, runs the two in turn on the same inputs, and tests whether they differ, as benchstat does: by the Mann-Whitney
// U test, with the median and its confidence interval.
//
//	benchagainst [flags] REVISION
//
// The other revision is checked out in a temporary worktree, which is removed at the end. Every round measures each
// revision once, and rounds alternate which revision is first. The exit status is 1 if the working tree is slower than
// the bound with significance, and 2 if nothing can be compared.
//
// The measurements are also kept as Go benchmarks in the folder of -results, for golang.org/x/perf/cmd/benchstat.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	root         string
	models       string
	benchmark    string
	rounds       int
	duration     time.Duration
	boundPercent float64
	results      string
	identicalToo bool
}

// mostRounds keeps a run shorter than a night.
const mostRounds = 100

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	slower, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchagainst:", err)
		os.Exit(2)
	}
	if slower {
		os.Exit(1)
	}
}

// parse reads the arguments, and returns the flags and the revision.
func parse(args []string) (o options, revision string, err error) {
	flags := flag.NewFlagSet("benchagainst", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "the folder of the working tree")
	flags.StringVar(&o.models, "models", "rm1,rm5", "the workloads of millrace bench rm, with commas between them")
	flags.StringVar(&o.benchmark, "benchmark", "",
		"a package and a pattern of its Go benchmarks, which are compared instead: './fpga/unit/sigridhash .'")
	flags.IntVar(&o.rounds, "rounds", 8, "how often each revision is measured")
	flags.DurationVar(&o.duration, "time", 2*time.Second, "how long each measurement takes")
	flags.Float64Var(&o.boundPercent, "bound", 2, "by how many percent the working tree may be slower")
	flags.StringVar(&o.results, "results", "", "the folder that keeps the measurements (default bin/bench-against)")
	flags.BoolVar(&o.identicalToo, "identical-too", false,
		"measure although both programs have the same bytes, to see how much two runs of one program differ")
	if err := flags.Parse(args); err != nil {
		return o, "", err
	}
	switch {
	case flags.NArg() != 1:
		return o, "", fmt.Errorf("got %d revisions: name the one to compare with, as in benchagainst HEAD~5", flags.NArg())
	case o.rounds < neededRounds(1) || o.rounds > mostRounds:
		return o, "", fmt.Errorf("-rounds is %d: the test needs %d to %d", o.rounds, neededRounds(1), mostRounds)
	case o.duration <= 0:
		return o, "", fmt.Errorf("-time is %v: it must be more than 0", o.duration)
	case !(o.boundPercent >= 0 && o.boundPercent < 100):
		return o, "", fmt.Errorf("-bound is %v: it is a percentage from 0 to less than 100", o.boundPercent)
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return o, "", err
	}
	if o.results == "" {
		o.results = filepath.Join(o.root, "bin", "bench-against")
	}
	return o, flags.Arg(0), nil
}

// run compares the working tree with the revision that the arguments name, and reports whether the tree is slower.
func run(ctx context.Context, args []string, to io.Writer) (slower bool, err error) {
	o, revision, err := parse(args)
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "benchagainst")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	newer, err := workingTree(ctx, o.root)
	if err != nil {
		return false, err
	}
	older, err := checkOut(ctx, o.root, revision, filepath.Join(scratch, "tree"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, older.remove()) }()
	fmt.Fprintf(to, "older: %s\nnewer: %s\n", older.description, newer.description)

	subject, measurements, err := chosen(o)
	if err != nil {
		return false, err
	}
	for _, side := range []*side{older, newer} {
		fmt.Fprintf(to, "builds %s of the %s revision\n", subject.what, side.role)
		if err := side.build(ctx, subject, scratch); err != nil {
			return false, err
		}
	}
	if same, err := sameBytes(older.program, newer.program); err != nil {
		return false, err
	} else if same && !o.identicalToo {
		fmt.Fprintln(to, "both programs have the same bytes, so there is nothing to measure")
		return false, nil
	}
	comparison := comparison{older: older, newer: newer, boundPercent: o.boundPercent, machine: describeMachine()}
	comparison.loads = append(comparison.loads, load())
	for round := range o.rounds {
		if err := comparison.measureRound(ctx, round, o.rounds, measurements, to); err != nil {
			return false, err
		}
		comparison.loads = append(comparison.loads, load())
		if needed := neededRounds(comparison.speeds()); o.rounds < needed {
			return false, fmt.Errorf("-rounds is %d, with which no difference among %d speeds can be found: give %d or more, "+
				"or compare fewer", o.rounds, comparison.speeds(), needed)
		}
	}
	return comparison.conclude(o.results, to)
}

// measuringCommand has millrace bench rm. In revisions before it the product had it.
const measuringCommand = "./bench/cmd/millrace-bench"

// chosen returns what is built, and what each round measures of it.
func chosen(o options) (subject, []measurement, error) {
	if o.benchmark == "" {
		var measurements []measurement
		for name := range strings.SplitSeq(o.models, ",") {
			measurements = append(measurements, modelMeasurement(name, o.duration))
		}
		return subject{what: "the command", build: []string{"build"}, pkg: measuringCommand,
			otherwise: "./cmd/millrace"}, measurements, nil
	}
	pkg, pattern, _ := strings.Cut(strings.TrimSpace(o.benchmark), " ")
	pattern = strings.TrimSpace(pattern)
	if pattern == "" {
		pattern = "."
	}
	if !strings.HasPrefix(pkg, "./") {
		return subject{}, nil, fmt.Errorf("-benchmark names the package %q: begin it with ./, as in './sdk/tensor .'", pkg)
	}
	return subject{what: "the tests of " + pkg, build: []string{"test", "-c"}, pkg: pkg},
		[]measurement{benchmarkMeasurement(pkg, pattern, o.duration)}, nil
}
