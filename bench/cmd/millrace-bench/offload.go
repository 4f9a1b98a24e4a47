package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

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
		trains bool
		run    bench.Options
		cuts   []string
		links  []string
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

With --queues the cases run on a second simulator, which shares no code with the first: a network of
queues with random service times, quotas that are spent in periods, several ranks that step together,
and workers that other tenants slow down.

With --real it trains on this machine instead, at each of the three cuts: a drive without flash, a
drive, or a storage node with its control plane is served by processes of their own, and a stand-in
trainer that uses 0.3, 0.7 and 1 of a CPU runs in another, at several shares and under the policies,
whose profile is measured before by a job of its own. All of that is done --turns times, and the
medians count. The policy extended changes the share while its job runs, so it trains once for
--job-time, and the last third counts.
Each side has a quota of CPU (cpu.max, or cpu.cfs_quota_us). Then all of it again over a link of
--bandwidth, the loopback device of a network namespace without a name (for which the capability
CAP_SYS_ADMIN and the commands ip and tc are wanted). Where quotas or namespaces are not permitted it
says so and leaves them out. The namespace, the processes and the data end with the command.

With --replay FILE it computes the decisions of a log of train --offload-log again and compares.`,
		Example: "  millrace bench offload --cases 50\n" +
			"  millrace bench offload --cases 1000 --seed 7 --output json",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if replay != "" {
				return c.replayOffload(replay)
			}
			if trains {
				if err := parseReal(&run, cuts, links); err != nil {
					return err
				}
				return c.measureOffload(cmd.Context(), run)
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
	f.BoolVar(&o.Queues, "queues", false, "run the cases on the second simulator, a network of queues")
	f.Float64Var(&o.Noise, "noise", 0.01, "standard deviation of what a profile measures, as a share; negative: none")
	f.BoolVar(&trains, "real", false, "train on this machine, for minutes, instead of drawing cases")
	f.StringSliceVar(&cuts, "cuts", []string{"transforms", "read_and_transforms", "all"},
		"with --real: the cuts to measure")
	f.StringSliceVar(&links, "bandwidth", []string{"unlimited", "50MB"},
		"with --real: bytes a second of the link between trainer and workers, both directions together, or unlimited")
	f.IntVar(&run.Rows, "rows", 400_000, "with --real: rows of the data")
	f.Float64SliceVar(&run.Cores, "trainer-cpu", []float64{0.3, 0.7, 1}, "with --real: shares of a CPU of the trainers")
	f.Float64Var(&run.TrainerCores, "trainer-cores", 1, "with --real: quota of the trainer's machine")
	f.Float64Var(&run.DriveCores, "drive-cores", 0.5, "with --real: quota of the drive")
	f.IntVar(&run.Steps, "steps", 4, "with --real: shares of the sweep, beside 0")
	f.IntVar(&run.Turns, "turns", 3, "with --real: how often each share and policy trains, in turns; the medians count")
	f.DurationVar(&run.JobTime, "job-time", 2*time.Minute, "with --real: how long the job of the policy extended trains")
	run.RowsPerSecond = 400_000
	f.Var(quantity.RateFlag{To: &run.RowsPerSecond}, "trainer-rows-per-second", "with --real: speed of the trainer")
	f.StringVar(&replay, "replay", "", "check a log of train --offload-log")
	return cmd
}

// parseReal turns the flags for cuts and links into options.
func parseReal(o *bench.Options, cuts, links []string) error {
	for _, name := range cuts {
		var cut offload.Cut
		if err := cut.UnmarshalText([]byte(name)); err != nil {
			return cli.Usagef("--cuts: %w", err)
		}
		o.Cuts = append(o.Cuts, cut)
	}
	for _, link := range links {
		if link == "unlimited" {
			o.Bandwidths = append(o.Bandwidths, 0)
			continue
		}
		bytes, err := quantity.Bytes(link)
		if err != nil || bytes == 0 {
			return cli.Usagef("--bandwidth %q: want bytes a second, as 50MB, or unlimited", link)
		}
		o.Bandwidths = append(o.Bandwidths, float64(bytes))
	}
	return nil
}

// measureOffload trains on this machine and prints the result.
func (c benchCommands) measureOffload(ctx context.Context, o bench.Options) error {
	product, absent := cli.FindProgram("millrace")
	o.Command, o.Progress = []string{product}, c.Announce
	results, err := bench.Run(ctx, o)
	if errors.Is(err, bench.ErrOptions) {
		return cli.WrongUsage(err)
	}
	if err != nil && len(results) == 0 {
		return errors.Join(err, absent) // a run that failed may have wanted it
	}
	return errors.Join(err, c.Report(results, func(w io.Writer) { printReal(w, results) }))
}

// printReal prints the table of what was measured on this machine.
func printReal(w io.Writer, results []bench.Measured) {
	fmt.Fprintf(w, "link MB/s\ttrainer's CPU\tcut\tbest of the sweep\tat\tbelow the best cut\t"+
		"extended\tdecided\tat the end\tdistance\tpaper\tdecided\tdistance\n")
	for _, r := range results {
		link := "unlimited"
		if r.Bandwidth > 0 {
			link = fmt.Sprintf("%g", r.Bandwidth/1e6)
		}
		fmt.Fprintf(w, "%s\t%g\t%v\t%.0f\t%.2f\t%.1f%%", link, r.TrainerCPU, r.Cut, r.Best.RowsPerSecond, r.Best.Ratio,
			100*r.BestOfCuts)
		for _, outcome := range r.Outcomes {
			fmt.Fprintf(w, "\t%.0f\t%.2f", outcome.RowsPerSecond, outcome.Decision.Ratio)
			if outcome.Policy == offload.Extended.String() {
				fmt.Fprintf(w, "\t%.2f", outcome.Ratio)
			}
			fmt.Fprintf(w, "\t%.1f%%", 100*outcome.Distance)
		}
		fmt.Fprintln(w)
	}
	for _, r := range results[max(0, len(results)-1):] {
		if r.Note != "" {
			fmt.Fprintf(w, "\nnote\t%s\n", r.Note)
		}
	}
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
