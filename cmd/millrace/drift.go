package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/sdk/pipeline/statisticspass"
	"github.com/millrace/millrace/sdk/summary"
)

// comparedSummary is one side of `millrace dataset drift`.
type comparedSummary struct {
	Path   string `json:"path"`
	Digest string `json:"sha256,omitempty"` // absent for data
	Rows   int64  `json:"rows"`
}

// driftReport is what `millrace dataset drift` prints.
type driftReport struct {
	Before  comparedSummary `json:"before"`
	After   comparedSummary `json:"after"`
	Drifted int             `json:"drifted_columns"`
	Columns []columnDrift   `json:"columns"`
}

// columnDrift is the moves of a column. An absent move has no meaning for the column.
type columnDrift struct {
	Name           string           `json:"name" table:"column"`
	Reasons        []summary.Reason `json:"drifted" table:"drifted| "`
	NullRate       *float64         `json:"null_rate_difference,omitempty" table:"null rate|%.3f"`
	NaNRate        *float64         `json:"nan_rate_difference,omitempty" table:"nan rate|%.3f"`
	InfiniteRate   *float64         `json:"infinite_rate_difference,omitempty" table:"infinite|%.3f"`
	Mean           *float64         `json:"mean_move_deviations,omitempty" table:"mean|%.3f"`
	Quantiles      *float64         `json:"greatest_quantile_move_deviations,omitempty" table:"quantiles|%.3f"`
	Distinct       *float64         `json:"distinct_values_change,omitempty" table:"distinct|%.3f"`
	Stability      *float64         `json:"stability_index,omitempty" table:"psi|%.3f"`
	FrequentValues *float64         `json:"frequent_values_stability_index,omitempty" table:"frequent|%.3f"`
	ListLength     *float64         `json:"mean_list_length_change,omitempty" table:"list length|%.3f"`
}

func (c datasetCommands) drift() *cobra.Command {
	var flags summaryFlags
	limits := summary.DefaultThresholds()
	cmd := &cobra.Command{
		Use:   "drift BEFORE AFTER",
		Short: "Columns whose statistics moved between two summaries or data sets, and by how much",
		Long: `Compares the statistics of two data sets, column by column. BEFORE and AFTER are summaries, which
millrace dataset summarize wrote, or data: a file, a folder, a quoted pattern or a URL, of which a pass makes a
summary first. A column drifted if one of its moves is above its threshold, if it came or went, or if it has
another type. The table lists these columns, and --output json all, with every move.

The exit status is 0 if no column drifted. It is 1 if one did, and also if the comparison failed: a failure prints
an error and no table. It is 2 for wrong flags.`,
		Example: "  millrace dataset drift monday.summary tuesday.summary\n" +
			"  millrace dataset drift monday.summary 'tuesday/*.parquet' --psi 0.1 --columns 'int_0..int_12'\n" +
			"  millrace dataset drift monday.summary day_1.tsv --output json || echo 'look at the data'",
		Args: cli.ExactArgs("BEFORE", "AFTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, limit := range []float64{limits.NullRate, limits.Mean, limits.Quantiles, limits.Distinct,
				limits.Stability, limits.ListLength} {
				if limit < 0 || math.IsNaN(limit) {
					return cli.Usagef("a threshold of %v: want 0 or more", limit)
				}
			}
			var ran []modes
			flags.in.modes = &ran
			before, first, err := c.summaryOf(cmd, args[0], flags)
			if err != nil {
				return err
			}
			after, second, err := c.summaryOf(cmd, args[1], flags)
			if err != nil {
				return err
			}
			if len(ran) == 0 {
				ran = append(ran, ofSummaries|nearFiles)
			}
			if err := refuseUnusedInAll(cmd, ran, inputUses, sourceUses); err != nil {
				return err
			}
			report := driftReport{Before: first, After: second, Columns: []columnDrift{}}
			for _, d := range summary.Compare(before, after, limits) {
				if d.Reasons == nil {
					d.Reasons = []summary.Reason{}
				} else {
					report.Drifted++
				}
				report.Columns = append(report.Columns, columnDrift(d))
			}
			if err := c.Report(&report, report.table); err != nil || report.Drifted == 0 {
				return err
			}
			return cli.ErrReported
		},
	}
	f := cmd.Flags()
	flags.in.formatFlags(f, "what the files are by name and content")
	flags.in.far.addFlags(f)
	flags.in.commands, flags.in.noTrainer = "vendor", true
	flags.addColumns(f)
	flags.addQueue(f)
	f.Float64Var(&limits.NullRate, "null-rate", limits.NullRate,
		"greatest difference of the shares of nulls, of NaN and of infinities")
	f.Float64Var(&limits.Mean, "mean", limits.Mean, "greatest move of a mean, in deviations of BEFORE")
	f.Float64Var(&limits.Quantiles, "quantiles", limits.Quantiles,
		"greatest move of the quantiles 0.05, 0.25, 0.5, 0.75 and 0.95, in deviations of BEFORE")
	f.Float64Var(&limits.Distinct, "distinct", limits.Distinct,
		"greatest relative change of the number of distinct values")
	f.Float64Var(&limits.Stability, "psi", limits.Stability,
		"greatest population stability index, over classes between the deciles of BEFORE and over frequent values")
	f.Float64Var(&limits.ListLength, "list-length", limits.ListLength, "greatest relative change of the mean list "+
		"length")
	return cmd
}

// summaryOf reads a summary, or makes one of data.
func (c datasetCommands) summaryOf(
	cmd *cobra.Command, path string, flags summaryFlags,
) (*summary.Summary, comparedSummary, error) {
	isSummary, err := beginsAsSummary(path)
	if err != nil {
		return nil, comparedSummary{}, err
	}
	if isSummary {
		s, digest, err := summary.Load(path)
		if err != nil {
			return nil, comparedSummary{}, err
		}
		names := make([]string, len(s.Columns))
		for i := range s.Columns {
			names[i] = s.Columns[i].Name
		}
		columns, err := statisticspass.MatchNames(names, flags.columns)
		if err != nil {
			return nil, comparedSummary{}, fmt.Errorf("%s: %w", path, namePipeline(err, "--columns"))
		}
		return s.Select(columns), comparedSummary{Path: path, Digest: digest.String(), Rows: s.Rows}, nil
	}
	flags.in.in = []string{path}
	made, err := c.console.summarize(cmd, &flags, false, true, "", nil)
	if err != nil {
		return nil, comparedSummary{}, fmt.Errorf("%s: %w", path, namePipeline(err, "--columns"))
	}
	return made.Summary, comparedSummary{Path: path, Rows: made.Rows}, nil
}

// beginsAsSummary reports whether a path is a file that begins as a summary.
func beginsAsSummary(path string) (is bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil // a pattern, a URL or a folder: what reads data says what is wrong with it
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	first := make([]byte, 64)
	n, err := io.ReadFull(f, first)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return summary.LooksLikeSummary(first[:n]), nil
}

// table writes the result for people.
func (d *driftReport) table(w io.Writer) {
	fmt.Fprintf(w, "before\t%s, %s\nafter\t%s, %s\n", terminal.Cell(d.Before.Path), quantity.Of(d.Before.Rows, "row"),
		terminal.Cell(d.After.Path), quantity.Of(d.After.Rows, "row"))
	fmt.Fprintf(w, "drifted\t%d of %s\n", d.Drifted, quantity.Of(len(d.Columns), "column"))
	if d.Drifted == 0 {
		return
	}
	terminal.Rows(w, slices.DeleteFunc(slices.Clone(d.Columns), func(c columnDrift) bool { return len(c.Reasons) == 0 }))
}
