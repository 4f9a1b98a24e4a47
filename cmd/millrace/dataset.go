package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/sdk/dataset"
)

// datasetCommands are the commands that write and read the files of a data set.
type datasetCommands struct{ *console }

func (c datasetCommands) command() *cobra.Command {
	copies := placementCommands(c)
	return cli.Group("dataset",
		"Data sets: generate, import, inspect, summarize, compare; place on storage nodes, replicate, verify",
		c.generate(), (&importCommand{console: c.console}).command(), c.inspect(), c.summarize(), c.drift(),
		copies.place(), copies.replicate(), copies.verify())
}

// writtenDataset is what generate and import print: the partitions that they wrote.
type writtenDataset struct {
	Rows       int64              `json:"rows"`
	Bytes      int64              `json:"bytes"`
	Dropped    int64              `json:"rows_dropped"`
	Partitions []writtenPartition `json:"partitions"`
}

// writtenPartition is one file of a data set.
type writtenPartition struct {
	Path      string  `json:"path" table:"partition"`
	Rows      int64   `json:"rows" table:"rows"`
	Bytes     int64   `json:"bytes" table:"bytes"`
	RowGroups []int64 `json:"row_group_rows" table:"row groups|%d"`
}

func (w *writtenDataset) add(files []workload.File) {
	for _, f := range files {
		w.Rows += f.Rows
		w.Bytes += f.Bytes
		w.Partitions = append(w.Partitions, writtenPartition{f.Path, f.Rows, f.Bytes, f.RowGroups})
	}
}

func (c *console) printWritten(v *writtenDataset) error {
	if v.Partitions == nil {
		v.Partitions = []writtenPartition{}
	}
	return c.Print(v, func(w io.Writer) {
		terminal.Rows(w, v.Partitions)
		fmt.Fprintf(w, "%s\t%d\t%d\n", quantity.Of(len(v.Partitions), "partition"), v.Rows, v.Bytes)
		if v.Dropped > 0 {
			fmt.Fprintf(w, "dropped\t%d malformed rows\n", v.Dropped)
		}
	})
}

// writeFlags adds the flags of commands that write partitions: the default of --row-group-rows, and what --overwrite
// replaces.
func writeFlags(f *pflag.FlagSet, o *workload.Options, groupRows, replaced string) {
	f.StringVar(&o.Out, "out", "", "folder to write partitions to")
	f.Var(quantity.CountFlag[int]{To: &o.RowGroupRows}, "row-group-rows", "rows of a row group (default "+groupRows+")")
	f.Var(quantity.BytesFlag[int]{To: &o.PageBytes, Bare: true}, "page-bytes",
		"bytes of a data page before compression, about (default 1 MiB)")
	f.IntVar(&o.PageVersion, "page-version", 1, "version of data pages, 1 or 2")
	f.StringVar(&o.Codec, "codec", "none", "none, snappy, gzip, zstd or lz4_raw")
	f.StringVar(&o.Encoding, "encoding", "plain", "plain or dictionary")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace "+replaced)
}

func (c datasetCommands) generate() *cobra.Command {
	var (
		o     workload.Options
		model string
	)
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "RM1 to RM5 (PreSto, Table I), and MiniPipe's data sets, as Parquet partitions",
		Long: `Generates a workload: label int32; RM1 has int_0..12 int32 with Criteo's null rates and cat_0..25
int64; RM2 to RM5 have int_0..503 float32 and cat_0..41 list<int64> with a mean length of 20, and
nulls at DPP's coverage. d1 and d2 are MiniPipe's D-I and D-II: 13 float32 and 26 texts of eight hexadecimal
digits, and 504 and 42. Ids follow Zipf's law (1.05) over 2^31. The same flags give the same bytes. The
partitions appear in --out together, when all are whole: a command that fails or is interrupted leaves the
folder as it was.`,
		Example: "  millrace dataset generate --model rm1 --rows 1000000 --out data/ --partitions 4 --codec snappy",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Model, err = workload.Find(model); err != nil {
				return cli.WrongUsage(err)
			}
			if o.Out == "" {
				return cli.Usagef("--out is wanted")
			}
			p := c.newProgress("generate", "rows", o.Rows)
			var last int64
			o.Progress = func(done, _ int64) {
				p.add(done - last)
				last = done
			}
			files, err := workload.Generate(cmd.Context(), o)
			p.finish()
			if errors.Is(err, workload.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			var v writtenDataset
			v.add(files)
			return c.printWritten(&v)
		},
	}
	f := cmd.Flags()
	f.StringVar(&model, "model", "rm1", "rm1 to rm5, d1 or d2")
	o.Rows = 1_000_000
	f.Var(quantity.CountFlag[int64]{To: &o.Rows}, "rows", "rows of all partitions together")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the data")
	f.Float64Var(&o.Coverage, "coverage", 0, "share of rows that have a feature (default: the model's)")
	f.BoolVar(&o.Maps, "maps", false,
		"rm2 to rm5: features in two maps, float_features and id_list_features, as in DPP's tables")
	f.IntVar(&o.Partitions, "partitions", 1, "partitions")
	writeFlags(f, &o, "by model", "the numbered partitions that exist, all of them")
	return cmd
}

// checkOutlook checks the flags of an outlook.
func checkOutlook(f *pflag.FlagSet, o dataset.Options) error {
	switch {
	case !f.Changed("batch") && f.Changed("split-batches"):
		return cli.Usagef("--split-batches is for --batch, which says the rows of a mini-batch")
	case !f.Changed("batch"):
		return nil
	case f.Changed("coverage") || f.Changed("count"):
		return cli.Usagef("--batch prints mini-batches, --coverage and --count print columns: give one of them")
	case o.Batch < 1 || o.Batch > dataset.MaxBatch:
		return cli.Usagef("--batch %d: want 1 to %d rows", o.Batch, dataset.MaxBatch)
	case o.SplitBatches < 1 || o.SplitBatches > dataset.MaxSplitBatches:
		return cli.Usagef("--split-batches %d: want 1 to %d", o.SplitBatches, dataset.MaxSplitBatches)
	}
	return nil
}

// printOutlook prints what an epoch will be as a table.
func printOutlook(w io.Writer, v *partitionfile.Outlook) {
	fmt.Fprintf(w, "%s in %s, mini-batches of %s, splits of %s\n\n", quantity.Of(v.Rows, "row"),
		quantity.Of(v.Partitions, "partition"), quantity.Of(v.Batch, "row"), quantity.Of(v.SplitBatches, "mini-batch"))
	fmt.Fprintln(w, "boundary\tmini-batches\tshort\trows of these\tsplits\tcut row groups\tneeded bytes\tread bytes\t"+
		"ratio")
	for _, b := range v.Boundaries {
		fmt.Fprintf(w, "%v\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\n", b.Boundary, b.MiniBatches, b.Short, b.LeftOut, b.Splits,
			b.CutGroups, b.NeededBytes, b.ReadBytes, float64(b.ReadBytes)/float64(max(b.NeededBytes, 1)))
	}
}

// printCoverage prints which share of the rows of files has a value, column by column.
func printCoverage(w io.Writer, v *partitionfile.Coverage) {
	fmt.Fprintf(w, "%s in %s\n", quantity.Of(v.Rows, "row"), quantity.Of(v.Partitions, "partition"))
	for i := range v.Columns {
		k := &v.Columns[i]
		fmt.Fprintf(w, "  %s\t%s\n", terminal.Cell(k.Name), terminal.Cell(k.Describe()))
	}
}

// printDescriptions prints what files hold, column by column.
func printDescriptions(w io.Writer, list []partitionfile.Description) {
	for i := range list {
		v := &list[i]
		fmt.Fprintf(w, "%s\t%s, %s in %s, %d bytes\n", terminal.Cell(v.Path), v.Format,
			quantity.Of(v.Rows, "row"), quantity.Of(len(v.RowGroups), "row group"), v.Bytes)
		for _, k := range v.Columns {
			note := k.Codec
			if k.Refused != "" {
				note = "refused: " + k.Refused
			}
			fmt.Fprintf(w, "  %s\t%s\t%d bytes\t%s\n", terminal.Cell(k.Name), k.Type, k.Compressed, note)
		}
	}
}

func (c datasetCommands) inspect() *cobra.Command {
	var in input
	var coverage, count bool
	var options dataset.Options
	cmd := &cobra.Command{
		Use:   "inspect FILE...",
		Short: "What files hold: rows, row groups, columns, and which of them a pipeline can read",
		Long: `What files hold: rows, row groups, columns, and which of them a pipeline can read.

With --batch: what an epoch of a job over the files is with that batch, for each --boundary of a job:
mini-batches, those with fewer rows and how many rows they have, which --tail drop leaves out, splits, and
row groups whose rows are in several splits. Drives read pages whole, so they read the pages at the ends
of splits inside row groups, and the dictionaries, more than once: "read bytes" counts them with all
columns that a pipeline can read, "needed bytes" counts each column chunk once. Pages are those of the
files' page indexes; where a file has none, all pages of a chunk count as having the first one's rows.`,
		Example: "  millrace dataset inspect data/part-00000.parquet --output json\n" +
			"  millrace dataset inspect day_0.tsv\n" +
			"  millrace dataset inspect data/ --coverage\n" +
			"  millrace dataset inspect data/ --batch 8192\n" +
			"  millrace dataset inspect 's3://rows/2026-11-20/*.parquet' https://data.example/day_0.parquet",
		Args: wantFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.in = args
			if err := checkOutlook(cmd.Flags(), options); err != nil {
				return err
			}
			config, err := in.localConfig(cmd)
			if err != nil {
				return err
			}
			files := partitionfile.Resolver{Opener: config.Sources.Opener}
			if options.Batch > 0 {
				v, err := files.Outlook(cmd.Context(), config.Files, partitionfile.Format(in.format), config.Text, options)
				if err != nil {
					return adviseImport(err)
				}
				return c.Print(v, func(w io.Writer) { printOutlook(w, v) })
			}
			var list []partitionfile.Description
			for _, path := range config.Files {
				v, err := files.Describe(cmd.Context(), path, partitionfile.Format(in.format), config.Text,
					partitionfile.Counting(count))
				if err != nil {
					return adviseImport(err)
				}
				list = append(list, v)
			}
			if coverage {
				covered := partitionfile.Cover(list)
				return c.Print(covered, func(w io.Writer) { printCoverage(w, &covered) })
			}
			return c.Print(list, func(w io.Writer) { printDescriptions(w, list) })
		},
	}
	f := cmd.Flags()
	in.formatFlags(f, "what the files are by name and content")
	in.sortFlag(f)
	rootFlag(f, &in.root)
	in.far.addFlags(f)
	f.BoolVar(&coverage, "coverage", false, "print for every column which share of all rows has a value, and which "+
		"files lack the column")
	f.BoolVar(&count, "count", false,
		"read the columns of which a file does not say how many rows have a value, and count")
	f.IntVar(&options.Batch, "batch", 0, "print what an epoch of a job is with mini-batches of so many rows")
	f.IntVar(&options.SplitBatches, "split-batches", dataset.DefaultSplitBatches, "with --batch: mini-batches of a split")
	in.commands, in.threads = "vendor", 1
	return cmd
}
