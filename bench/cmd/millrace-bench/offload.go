package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	bench "github.com/millrace/millrace/bench/offload"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr/offload"
)

func (c benchCommands) offload() *cobra.Command {
	var (
		o      bench.SimulateOptions
		replay string
	)
	cmd := &cobra.Command{
		Use:   "offload",
		Short: "What the offloading policies decide beside a sweep of cuts and ratios",
		Long: `Draws trainers, quotas of CPU, workers of unlike speed and links, and runs each in virtual time:
with what every policy decides from a profile of 100 mini-batches, and with every cut at every tenth
of the splits. Distance is how far the training throughput is from the sweep's best; below 0, it is
better than any ratio of the sweep. The last table has how many equal workers each policy would start
with. Cases in which extended is farther than 5 % from the best are named; --first N --cases 1 draws
case N of a seed again.

With --replay FILE it computes the decisions of a log of train --offload-log again and compares.`,
		Example: "  millrace bench offload --cases 50\n" +
			"  millrace bench offload --cases 1000 --seed 7 --output json",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if replay != "" {
				return c.replayOffload(replay)
			}
			s, err := bench.Simulate(cmd.Context(), o)
			if errors.Is(err, bench.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			return c.Report(s, func(w io.Writer) { printSimulation(w, s) })
		},
	}
	f := cmd.Flags()
	f.Var(quantity.CountFlag[int]{To: &o.Cases}, "cases", "machines to draw (default 1000)")
	f.Var(quantity.CountFlag[int]{To: &o.First}, "first", "number of the first machine that is drawn")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the draw")
	f.Float64Var(&o.Noise, "noise", 0.01, "standard deviation of what a profile measures, as a share; negative: none")
	f.StringVar(&replay, "replay", "", "check a log of train --offload-log")
	return cmd
}

// printSimulation prints the tables of a simulation.
func printSimulation(w io.Writer, s *bench.Simulation) {
	fmt.Fprintf(w, "policy\tmean distance\tmedian\tlargest\twithin 5%%\toffloads\tmean ratio\n")
	for _, p := range s.Summary {
		fmt.Fprintf(w, "%s\t%.1f%%\t%.1f%%\t%.1f%%\t%.1f%%\t%.0f%%\t%.2f\n", p.Policy, 100*p.Mean, 100*p.Median,
			100*p.Largest, 100*p.Within5, 100*p.Offloads, p.Offloaded)
	}
	fmt.Fprintf(w, "\nfarthest of extended\t%s: %v at %.2f decided, %v at %.2f is best\n", s.Farthest.Name,
		s.Farthest.Outcomes[0].Decision.Cut, s.Farthest.Outcomes[0].Decision.Ratio, s.Farthest.BestCut,
		s.Farthest.BestRatio)
	if len(s.Beyond) > 0 {
		fmt.Fprintf(w, "farther than 5%%\t%s\n", strings.Join(s.Beyond, ", "))
	}
	fmt.Fprintf(w, "\nfirst workers by\tmean\n")
	for _, p := range s.Workers {
		fmt.Fprintf(w, "%s\t%.1f\n", p.Policy, p.Mean)
	}
}

// maxRecordBytes bounds a line of a log of decisions, which has about 1.5 kB.
const maxRecordBytes = 64 << 10

// replayOffload computes the decisions of a log again.
func (c benchCommands) replayOffload(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("--replay: %w", err)
	}
	var log []offload.Record
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxRecordBytes)
	for lines.Scan() {
		var r offload.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return errors.Join(fmt.Errorf("--replay: %s:%d: %w", path, len(log)+1, err), file.Close())
		}
		log = append(log, r)
	}
	if err := errors.Join(lines.Err(), file.Close()); err != nil {
		return fmt.Errorf("--replay: %s:%d: %w", path, len(log)+1, err)
	}
	if err := offload.Replay(log); err != nil {
		return fmt.Errorf("--replay: %s: %w", path, err)
	}
	changes := 0
	for _, r := range log {
		if r.Decision.Changed {
			changes++
		}
	}
	result := struct {
		Decisions int `json:"decisions"`
		Changes   int `json:"changes"`
	}{len(log), changes}
	return c.Report(result, func(w io.Writer) {
		fmt.Fprintf(w, "%d decisions follow from their inputs; %d changed the share\n", len(log), changes)
	})
}
