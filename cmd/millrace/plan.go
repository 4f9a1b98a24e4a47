package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/bench/capacity"
	"github.com/millrace/millrace/internal/quantity"
)

func planCommand(c *console) *cobra.Command {
	var (
		model, bytesFlag, prices string
		imageFile                string
		t, p, bytesPerRow        float64
		replicas, ids            int
		printPrices              bool
	)
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "How many drives, watts and dollars a job needs, and which constraint binds",
		Long: `Counts drives by capacity, by T/P and by read bandwidth, says which of them binds, and sets watts
and dollars by PreSto's formula (throughput x duration / (CapEx + OpEx)). Beside the drives stand
three CPU baselines: the cores that PreSto publishes, TorchArrow's loops as measured here, and our
own kernels as measured here; for RM1 and RM5 they differ by more than ten times. The network and
the storage hosts are not counted.

P is the model's (fpga/timing) for rm1 to rm5, or what --p says: measure it with "millrace train" or
"millrace bench rm". With --image the model takes clock, elements, lanes, initiation intervals and
latencies from the parameters of an image; the report lists them with their sources.`,
		Example: "  millrace plan --model rm5 --t 3.0e6 --size 500TB\n  millrace plan --model dpp-rm1\n" +
			"  millrace plan --model rm5 --t 3.0e6 --image new.mimg\n" +
			"  millrace plan --print-prices > prices.yaml; millrace plan --model rm1 --t 2e7 --prices prices.yaml",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if !(t >= 0) || !(p >= 0) || !(bytesPerRow >= 0) || replicas < 1 || ids != 4 && ids != 8 {
				return usagef(
					"--t %v, --p %v, --bytes-per-row %v, --replicas %d, --id-bytes %d: want rates and bytes not "+
						"below 0, 1 copy or more, ids of 4 or 8 bytes", t, p, bytesPerRow, replicas, ids)
			}
			if printPrices {
				_, err := c.out.Write(capacity.DefaultPrices())
				return err
			}
			raw := capacity.DefaultPrices()
			if prices != "" {
				b, err := readDocument(prices)
				if err != nil {
					return fmt.Errorf("read prices: %w", err)
				}
				raw = b
			}
			table, err := capacity.ReadPrices(raw)
			if err != nil && prices != "" {
				return fmt.Errorf("%s: %w", prices, err)
			}
			if err != nil {
				return err
			}
			need, known := capacity.NeedOf(model, ids)
			if imageFile != "" {
				if need, err = needUnderImage(model, ids, imageFile); err != nil {
					return err
				}
			}
			if !known && bytesPerRow <= 0 {
				return usagef("--model %q: want rm1 to rm5, dpp-rm1 to dpp-rm3, or give --bytes-per-row and --p", model)
			}
			if t > 0 {
				need.T = t
			}
			if p > 0 {
				need.P, need.PSource = p, "--p"
			}
			if bytesPerRow > 0 {
				need.BytesPerRow = bytesPerRow
			}
			if bytesFlag != "" {
				size, err := quantity.Bytes(bytesFlag)
				if err != nil {
					return usagef("--size: %w", err)
				}
				need.Bytes = float64(size)
			}
			need.Replicas = replicas
			if need.CPUs, err = capacity.MeasuredCPUs(model); err != nil {
				return err
			}
			if need.T <= 0 {
				return usagef("--t is wanted: the rows a second that the trainers take")
			}
			r, err := capacity.Plan(need, table)
			if errors.Is(err, capacity.ErrNeed) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			return c.print(r, func(w io.Writer) { printPlan(w, r) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&model, "model", "rm1", "rm1 to rm5 (PreSto), or dpp-rm1 to dpp-rm3")
	f.Var(quantity.RateFlag{To: &t}, "t", "T: rows a second that the trainers take")
	f.Var(quantity.RateFlag{To: &p}, "p", "P: rows a second of one drive, measured")
	f.Var(quantity.RateFlag{To: &bytesPerRow}, "bytes-per-row", "bytes of a row as stored")
	f.StringVar(&bytesFlag, "size", "", "bytes of the data set, as 500TB or 1.5PiB")
	f.IntVar(&replicas, "replicas", 1, "copies of every partition")
	f.IntVar(&ids, "id-bytes", 8, "bytes of a stored id: 8 or 4")
	f.StringVar(&prices, "prices", "", "YAML of prices and powers")
	f.StringVar(&imageFile, "image", "", "image file whose parameters the model of a drive takes")
	f.BoolVar(&printPrices, "print-prices", false, "print the built-in prices with their sources")
	return cmd
}

// needUnderImage returns the need of a model whose drives run the image in a file.
func needUnderImage(model string, idBytes int, file string) (capacity.Need, error) {
	m, err := readImage(file)
	if err != nil {
		return capacity.Need{}, err
	}
	need, err := capacity.NeedUnderImage(model, idBytes, m)
	if err != nil {
		return capacity.Need{}, fmt.Errorf("%s: %w", file, err)
	}
	return need, nil
}

func printPlan(w io.Writer, r *capacity.Result) {
	fmt.Fprintf(w, "%s\n\n", r.Says)
	fmt.Fprintf(w, "constraint\tdrives\twhy\n")
	for _, k := range r.Constraints {
		name := strings.ReplaceAll(k.Name, "_", " ")
		if k.Name == r.Binds {
			name += " (binds)"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", name, k.Drives, k.Why)
	}
	fmt.Fprintf(w, "\n\tall drives\tdrives at once\n")
	fmt.Fprintf(w, "count\t%d\t%d\n", r.Drives, r.Busy)
	fmt.Fprintf(w, "watts\t%.0f\t%.0f\n", r.Watts, r.BusyWatts)
	fmt.Fprintf(w, "CapEx + OpEx, $\t%.0f\t%.0f\n", r.CapEx+r.OpEx, r.BusyUSD)
	fmt.Fprintf(w, "rows a $\t%.4g\t\n", r.RowsPerDollar)
	fmt.Fprintf(w, "\nthe same T on CPU cores\tcores a drive\tcores\tnodes\twatts\tCapEx + OpEx, $\trows a $\n")
	for _, b := range r.Baselines {
		if b.DriveCores == 0 {
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t-\n", b.Name)
			continue
		}
		fmt.Fprintf(w, "%s\t%.2g\t%d\t%d\t%.0f\t%.0f\t%.4g\n", b.Name, b.DriveCores, b.Cores, b.Nodes, b.Watts, b.USD,
			b.Rows)
	}
	list := func(title string, lines []string) {
		fmt.Fprintf(w, "\n%s:\n", title)
		for _, line := range lines {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	sources := make([]string, len(r.Baselines))
	for i, b := range r.Baselines {
		sources[i] = b.Name + ": " + b.Source
	}
	list("where the cores come from", sources)
	list("not counted", r.NotCounted)
	list("assumes", r.Assumes)
}
