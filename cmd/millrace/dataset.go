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

func (c datasetCommands) inspect() *cobra.Command {
	var in input
	var coverage, count bool
	cmd := &cobra.Command{
		Use:   "inspect FILE...",
		Short: "What files hold: rows, row groups, columns, and which of them a pipeline can read",
		Example: "  millrace dataset inspect data/part-00000.parquet --output json\n" +
			"  millrace dataset inspect day_0.tsv\n" +
			"  millrace dataset inspect data/ --coverage\n" +
			"  millrace dataset inspect 's3://rows/2026-11-20/*.parquet' https://data.example/day_0.parquet",
		Args: wantFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.in = args
			config, err := in.localConfig(cmd)
			if err != nil {
				return err
			}
			var list []partitionfile.Description
			files := partitionfile.Resolver{Opener: config.Sources.Opener}
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
				return c.Print(covered, func(w io.Writer) {
					fmt.Fprintf(w, "%s in %s\n", quantity.Of(covered.Rows, "row"),
						quantity.Of(covered.Partitions, "partition"))
					for i := range covered.Columns {
						k := &covered.Columns[i]
						fmt.Fprintf(w, "  %s\t%s\n", terminal.Cell(k.Name), terminal.Cell(k.Describe()))
					}
				})
			}
			return c.Print(list, func(w io.Writer) {
				for _, v := range list {
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
			})
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
	in.commands, in.threads = "vendor", 1
	return cmd
}
