// Command simulate runs days of the protocol of the control plane from seeds (package simulation).
//
//	go run ./control/simulation/simulate                         days of new seeds, for a minute
//	go run ./control/simulation/simulate --seed 7 --trace        one day, with a line for each event
//
// When a day violates a property, the command looks for a shorter day that violates the same property, and prints the
// commands that repeat both days.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millrace/millrace/control/simulation"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are the flags of the command.
type settings struct {
	seed, first  uint64
	events, days int
	time, shrink time.Duration
	trace        bool
	options      simulation.Options
}

func run(arguments []string, out io.Writer) error {
	var s settings
	set := flag.NewFlagSet("simulate", flag.ContinueOnError)
	set.Uint64Var(&s.seed, "seed", 0, "the seed of one day; 0 with no trace: days of new seeds")
	set.IntVar(&s.events, "events", 200_000, "events of a day, at most")
	set.Uint64Var(&s.first, "first", 0, "the first of the new seeds; 0: of the clock")
	set.IntVar(&s.days, "days", 1<<30, "how many days of new seeds, at most")
	set.DurationVar(&s.time, "time", time.Minute, "how long to run days of new seeds")
	set.DurationVar(&s.shrink, "shrink", 20*time.Second,
		"how long to look for a shorter day than one that violates a property")
	set.BoolVar(&s.trace, "trace", false, "write a line for each event, and look for no shorter day")
	set.StringVar((*string)(&s.options.Mutant), "mutant", "", "the name of a mutant of mutants.go")
	s.options.Reduction.Define(set)
	if err := set.Parse(arguments); err != nil {
		return err
	}
	if s.trace {
		s.options.Trace = out
	}
	if s.seed != 0 || s.trace {
		return s.oneDay(out)
	}
	return s.newDays(out)
}

// oneDay runs the day of a seed.
func (s *settings) oneDay(out io.Writer) error {
	w := simulation.New(s.seed, s.options)
	over, err := w.Run(s.events)
	fmt.Fprintf(out, "seed %d: %d events, hash %016x, over %v\n", w.Seed, w.Executed, w.Hash(), over)
	return s.shorter(err, out)
}

// newDays runs days of new seeds.
func (s *settings) newDays(out io.Writer) error {
	if s.first == 0 {
		s.first = uint64(time.Now().UnixNano())
	}
	fmt.Fprintf(out, "first seed %d\n", s.first)
	began, days, events, hash := time.Now(), 0, 0, uint64(0)
	for ; time.Since(began) < s.time && days < s.days; days++ {
		w := simulation.New(s.first+uint64(days), s.options)
		_, err := w.Run(s.events)
		events += w.Executed
		hash = simulation.Join(hash, w.Hash())
		if err != nil {
			return s.shorter(err, out)
		}
	}
	fmt.Fprintf(out, "%d days from seed %d, %d events, hash %016x, %.0f events/s\n", days, s.first, events, hash,
		float64(events)/time.Since(began).Seconds())
	return nil
}

// shorter looks for a shorter day than one that violates a property, and returns the failure of the shorter day.
func (s *settings) shorter(err error, out io.Writer) error {
	var failure *simulation.Failure
	if !errors.As(err, &failure) || s.trace || s.shrink == 0 {
		return err
	}
	fmt.Fprintln(out, err)
	until := time.Now().Add(s.shrink)
	short := simulation.Shrink(failure, func() bool { return time.Now().Before(until) })
	fmt.Fprintf(out, "the shortest day that was found has %d events of %d:\n", short.Events, failure.Events)
	return short
}
