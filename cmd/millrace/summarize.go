package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/summary/reducer"
)

// summaryFlags are the flags of a pass that ends in a summary: of columns, or of a pipeline's values.
type summaryFlags struct {
	passFlags
	columns []string
}

func (s *summaryFlags) addFlags(cmd *cobra.Command) {
	s.in.elsewhere = ", or as arguments, or data of a cluster with --control or --context"
	s.passFlags.addFlags(cmd, "the file of --out with .work; without --out there is none")
	f := cmd.Flags()
	s.addColumns(f)
	f.StringVar(&s.pipeline, "pipeline", "",
		"a pipeline, as a YAML file: summarise the values that its operators take statistics of")
	f.StringVar(&s.name, "name", "", "with --pipeline: name of the statistics in it (default: the only ones)")
}

func (s *summaryFlags) addColumns(f *pflag.FlagSet) {
	f.StringSliceVar(&s.columns, "columns", nil,
		"columns to summarise, as int_0..int_12, cat_* or ids[101]; may be given again (default: all that can be read)")
}

// takeFiles adds arguments to --in.
func (s *summaryFlags) takeFiles(_ *cobra.Command, args []string) error {
	s.in.in = append(s.in.in, args...)
	return nil
}

// pass returns the pipeline whose statistics a pass makes, and their name; nil: the pass makes those of columns.
func (s *summaryFlags) pass() (spec *pipeline.Spec, name string, err error) {
	switch {
	case s.pipeline == "" && s.name != "":
		return nil, "", cli.Usagef("--name is for the statistics of --pipeline")
	case s.pipeline == "" && len(s.numbers.summaries) > 0:
		return nil, "", cli.Usagef("--statistics is for a --pipeline whose other statistics are to be made")
	case s.pipeline == "" && len(s.modules.files) > 0:
		return nil, "", cli.Usagef("--wasm is for a --pipeline whose operators call the module")
	case s.pipeline == "" && s.split.split != nil:
		return nil, "", cli.Usagef("--split is for a --pipeline whose rows it takes a part of")
	case s.pipeline == "":
		return nil, "", nil
	case len(s.columns) > 0:
		return nil, "", cli.Usagef("--columns and --pipeline, want one of them")
	}
	if spec, err = loadPipeline(s.pipeline); err != nil {
		return nil, "", err
	}
	if name, err = theStatistics(spec, s.name); err != nil {
		return nil, "", err
	}
	spec, err = s.bind(spec)
	return spec, name, err
}

// summarize makes a pass. finished is called with the summary before the work folder is removed.
func (c *console) summarize(
	cmd *cobra.Command, s *summaryFlags, inCluster, wholeOnly bool, out string, finished func(*summary.Summary) error,
) (_ *reducer.Report, err error) {
	pass := reducer.Pass{Columns: s.columns, WholeOnly: wholeOnly, Finished: finished}
	if pass.Pipeline, pass.Name, err = s.pass(); err != nil {
		return nil, err
	}
	source, closeSource, err := s.open(cmd, &pass.Options, out, inCluster)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	finish := c.showPass(&pass.Options, "summarize")
	made, err := pass.Run(cmd.Context(), source)
	finish()
	return made, nameWork(err)
}

// summarized is what `millrace dataset summarize` prints.
type summarized struct {
	Out            string              `json:"out,omitempty"`
	Digest         string              `json:"sha256,omitempty"` // absent without --out
	Bytes          int64               `json:"bytes,omitempty"`
	Manifest       string              `json:"manifest_sha256"`
	Rows           int64               `json:"rows"`
	ElapsedSeconds float64             `json:"elapsed_seconds"`
	RowsPerSecond  float64             `json:"rows_per_second"`
	Columns        []summary.Column    `json:"columns"`
	Partitions     []summary.Partition `json:"partitions"`
	Skipped        []skippedColumn     `json:"skipped_columns"`

	*takenFromCluster

	byPartition bool
}

// take takes a summary over, and writes it to the file, if there is one.
func (v *summarized) take(made *summary.Summary) error {
	v.Manifest, v.Rows, v.Columns, v.Partitions = made.Manifest.String(), made.Rows, made.Columns, made.Partitions
	if v.Partitions == nil {
		v.Partitions = []summary.Partition{}
	}
	if v.Out == "" {
		return nil
	}
	b, err := made.Encode()
	if err != nil {
		return err
	}
	v.Digest, v.Bytes = summary.Digest(sha256.Sum256(b)).String(), int64(len(b))
	return wholefile.WritePublic(v.Out, b)
}

// skippedColumn is a column without statistics.
type skippedColumn struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func (c datasetCommands) summarize() *cobra.Command {
	var (
		flags              summaryFlags
		out                string
		replace, wholeOnly bool
		byPartition        bool
	)
	cmd := &cobra.Command{
		Use:   "summarize [FILE...]",
		Short: "Statistics of a data set's columns, whole and for each partition, into a file",
		Long: `Makes one pass over a data set and prints the statistics of its columns: rows without a value, the least
and the greatest value, mean and deviation, quantiles, the number of distinct values and the most frequent ones,
and the lengths of lists. Counts, means and deviations are exact; docs/summaries.md says when the others are. With --out
they become a file, the summary. The file is the same bytes whichever engine, and however many drives and
threads, read the columns; it gets its name when it is whole. The command keeps 0.3 to 1.3 MB of memory a column
(5 MB for real numbers of every magnitude), whatever the number of rows.

With --pipeline the summary is of the values that the pipeline's operators take statistics of, behind the operators
before them and in the rows that its filter chooses: what normalize and min_max need of data that are filled, clamped
or scaled first.

With --control or --context the data are the partitions of a cluster: drives, nodes and workers decode the columns, as
a job, and this command takes their values in the order of the data set and keeps what it has counted in the folder
--work. After a kill of the command, of a node or of the control plane's leader, the same command goes on from there,
and the file is the same bytes as of the same partitions on one machine.`,
		Example: "  millrace dataset summarize data/part-00000.parquet --out monday.summary\n" +
			"  millrace dataset summarize --pipeline p.yaml --in day_0.tsv --out train.summary\n" +
			"  millrace dataset summarize day_0.tsv --columns 'int_0..int_12,cat_*' --by-partition\n" +
			"  millrace dataset summarize --drive file:d0.flash --out d0.summary --output json\n" +
			"  millrace dataset summarize --control https://control-0:7460 --partitions 'day_*' --out days.summary",
		Args: flags.takeFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSummary(out, replace); err != nil {
				return err
			}
			inCluster, err := flags.cluster.isCluster(cmd, flags.in.in)
			if err != nil {
				return err
			}
			begin := time.Now()
			v := summarized{Out: out, Skipped: []skippedColumn{}, byPartition: byPartition}
			made, err := c.console.summarize(cmd, &flags, inCluster, wholeOnly, out, v.take)
			if err != nil {
				return namePipeline(err, cmp.Or(flags.pipeline, "--columns"))
			}
			if inCluster {
				v.takenFromCluster = viewTaken(&made.Report)
			}
			v.ElapsedSeconds = time.Since(begin).Seconds()
			v.RowsPerSecond = float64(v.Rows-made.Resumed) / v.ElapsedSeconds
			for _, column := range made.Skipped {
				v.Skipped = append(v.Skipped, skippedColumn(column))
			}
			return c.Report(&v, v.table)
		},
	}
	flags.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "file to write")
	f.BoolVar(&replace, "overwrite", false, "replace the file of --out")
	f.BoolVar(&wholeOnly, "whole", false, "leave the statistics of the partitions out of the file")
	f.BoolVar(&byPartition, "by-partition", false, "the table has the statistics of each partition, too")
	return cmd
}

// table writes the result for people.
func (v *summarized) table(w io.Writer) {
	if v.Out != "" {
		fmt.Fprintf(w, "wrote\t%s, %d bytes\nsha256\t%s\n", terminal.Cell(v.Out), v.Bytes, v.Digest)
	}
	fmt.Fprintf(w, "rows\t%d, %.0f a second\n", v.Rows, v.RowsPerSecond)
	if v.takenFromCluster != nil {
		v.takenFromCluster.table(w)
	}
	for _, column := range v.Skipped {
		fmt.Fprintf(w, "skipped\t%s: %s\n", terminal.Cell(column.Name), terminal.Cell(column.Reason))
	}
	fmt.Fprint(w, "column\ttype\tnull\tnan\tinfinite\tleast\tp50\tmean\tdeviation\tgreatest\tdistinct\t"+
		"most frequent\tlengths\n")
	for i := range v.Columns {
		writeStatistics(w, v.Columns[i].Name, &v.Columns[i], &v.Columns[i].Statistics)
	}
	if !v.byPartition {
		return
	}
	for i := range v.Partitions {
		p := &v.Partitions[i]
		fmt.Fprintf(w, "%s\t%s\n", terminal.Cell(p.Name), quantity.Of(p.Rows, "row"))
		for j := range p.Columns {
			writeStatistics(w, v.Columns[j].Name, &v.Columns[j], &p.Columns[j])
		}
	}
}

// writeStatistics writes a line of the table.
func writeStatistics(w io.Writer, name string, c *summary.Column, s *summary.Statistics) {
	shown := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return strconv.FormatFloat(*x, 'g', 6, 64)
	}
	value := func(v *summary.Value) string {
		if v == nil {
			return "-"
		}
		if v.Integer {
			return v.String()
		}
		return strconv.FormatFloat(v.Float, 'g', 6, 64)
	}
	nans, infinities := "-", "-"
	if c.Kind == summary.Reals || c.Kind == summary.Lengths {
		nans = strconv.FormatInt(s.NaNs, 10)
		infinities = strconv.FormatInt(s.PositiveInfinite+s.NegativeInfinite, 10)
	}
	median, distinct, frequent, lengths := "-", "-", "-", "-"
	if len(s.Quantiles) == summary.Quantiles {
		median = value(&s.Quantiles[summary.Quantiles/2])
	}
	if c.Kind != summary.Lengths {
		distinct = strconv.FormatInt(s.Distinct, 10)
		if !s.Exact {
			distinct = "about " + distinct
		}
	}
	if len(s.TopValues) > 0 {
		top := s.TopValues[0]
		frequent = fmt.Sprintf("%s: %.3g %%", value(&top.Value), 100*float64(top.Count)/float64(max(s.Values, 1)))
	}
	if s.ListLengths != nil {
		lengths = fmt.Sprintf("%d to %d, mean %.4g", s.ListLengths.Least, s.ListLengths.Greatest, s.ListLengths.Mean)
	}
	fmt.Fprintf(w, "%s\t%s\t%.4g %%\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", terminal.Cell(name),
		terminal.Cell(c.Type), 100*s.NullRate(), nans, infinities, value(s.Least), median, shown(s.Mean),
		shown(s.Deviation), value(s.Greatest), distinct, frequent,
		lengths)
}

// checkSummary reports before a pass that its summary cannot be written.
func checkSummary(out string, replace bool) error {
	if out == "" {
		return nil
	}
	if _, err := os.Lstat(out); err == nil && !replace {
		return fmt.Errorf("%s: %w: name another file, or say --overwrite", out, os.ErrExist)
	}
	if err := wholefile.CheckFolderOf(out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
