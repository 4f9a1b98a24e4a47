// Command simulate runs days of the protocol of the control plane from seeds (package simulation).
//
//	go run ./control/simulation/simulate                         days of new seeds, for a minute
//	go run ./control/simulation/simulate --seed 7 --trace        one day, with a line for each event
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millrace/millrace/control/simulation"
)

func main() {
	seed := flag.Uint64("seed", 0, "the seed of one day; 0 with no trace: days of new seeds")
	events := flag.Int("events", 100_000, "events of a day, at most")
	first := flag.Uint64("first", 0, "the first of the new seeds; 0: of the clock")
	most := flag.Int("days", 1<<30, "how many days of new seeds, at most")
	span := flag.Duration("time", time.Minute, "how long to run days of new seeds")
	trace := flag.Bool("trace", false, "write a line for each event")
	mutant := flag.String("mutant", "", "the name of a mutant of mutants.go")
	flag.Parse()
	o := simulation.Options{Mutants: simulation.Mutants{simulation.Mutant(*mutant): true}}
	if *trace {
		o.Trace = os.Stdout
	}
	if *seed != 0 || *trace {
		w := simulation.New(*seed, o)
		over, err := w.Run(*events)
		report(os.Stdout, w, over)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if *first == 0 {
		*first = uint64(time.Now().UnixNano())
	}
	fmt.Printf("first seed %d\n", *first)
	began, days, all := time.Now(), 0, 0
	for ; time.Since(began) < *span && days < *most; days++ {
		w := simulation.New(*first+uint64(days), o)
		_, err := w.Run(*events)
		all += w.Executed
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Printf("%d days, %d events, %.0f events/s\n", days, all, float64(all)/time.Since(began).Seconds())
}

func report(w io.Writer, day *simulation.World, over bool) {
	fmt.Fprintf(w, "seed %d: %d events, hash %016x, over %v\n", day.Seed, day.Executed, day.Hash(), over)
}
