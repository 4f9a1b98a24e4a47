package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr/local"
)

// importCommand is the command that makes partitions of rows and tables, and its flags.
type importCommand struct {
	*console
	from          input
	o             workload.Options
	partitionRows int64
}

func (c *importCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Criteo text or binary rows, or any Parquet, into a folder of partitions",
		Long: `Reads Criteo rows (criteo-tsv, criteo-bin; several files are read one after the other, "-" is
standard input; folders and patterns in natural order, unless --sort says otherwise) and writes them
as Parquet partitions with columns label, int_0..12 and cat_0..25.
Parquet files are looked through, and copied as partitions when they are sound. A FILE may be a folder,
a pattern or a URL (http:, https:, s3://BUCKET/day_*.parquet). The partitions appear in --out together,
when all are whole: a command that fails or is interrupted leaves the folder as it was.`,
		Example: "  millrace dataset import --out data/ --codec snappy day_0.tsv day_1.tsv\n" +
			"  zcat day_0.gz | millrace dataset import --input-format criteo-tsv --out data/ -\n" +
			"  millrace dataset import --out data/ table.parquet\n" +
			"  millrace dataset import --out data/ 's3://rows/2026-11-20/*.parquet'",
		Args: wantFiles,
		RunE: c.run,
	}
	f := cmd.Flags()
	c.from.formatFlags(f, "what the files are by name and content; standard input must be named")
	c.from.sortFlag(f)
	c.from.far.addFlags(f)
	f.Var(quantity.CountFlag[int64]{To: &c.partitionRows}, "partition-rows", "rows of a partition (default 4,194,304)")
	writeFlags(f, &c.o, "262,144", "partitions that exist; of Criteo rows all the numbered ones")
	return cmd
}

// run imports the files in the way of their format.
func (c *importCommand) run(cmd *cobra.Command, args []string) error {
	if c.o.Out == "" {
		return cli.Usagef("--out is wanted")
	}
	if c.from.format == "" && slices.Contains(args, "-") {
		return cli.Usagef("say with --input-format what standard input is: criteo-tsv or criteo-bin")
	}
	named := source.ParseLocations(args...)
	if err := c.from.findFormat(cmd.Context(), named); err != nil {
		return err
	}
	c.from.in = args
	rows, err := c.from.source()
	if err != nil {
		return err
	}
	mode := c.from.mode(&local.Config{}) | formatMode(rows)
	if err := refuseUnused(cmd, mode, inputUses, sourceUses); err != nil {
		return err
	}
	if c.from.format == "parquet" {
		for _, flag := range []string{
			"partition-rows", "row-group-rows", "page-bytes", "page-version", "codec", "encoding",
		} {
			if cmd.Flags().Changed(flag) {
				return cli.Usagef("--%s is for Criteo rows: Parquet files are copied as they are", flag)
			}
		}
	}
	sources, err := c.from.far.open(named)
	if err != nil {
		return err
	}
	files, err := c.from.resolver(named)
	if err != nil {
		return err
	}
	if named, err = files.Expand(cmd.Context(), named, partitionfile.Format(c.from.format)); err != nil {
		return err
	}
	if c.from.format == "parquet" {
		return c.importParquet(cmd.Context(), named, sources.Opener)
	}
	return c.importRows(cmd.Context(), named, sources.Opener)
}

// importRows makes partitions of Criteo rows.
func (c *importCommand) importRows(ctx context.Context, named []source.Location, opener source.Opener) error {
	r, closeAll, err := c.concatenate(ctx, named, opener)
	if err != nil {
		return err
	}
	t := c.from.textOptions()
	p := c.newProgress("import", "rows", 0)
	var last int64
	files, counts, err := workload.Import(ctx, r, workload.ImportOptions{
		Binary: c.from.format == "criteo-bin", LabelAbsent: t.LabelAbsent, Policy: t.Policy, Out: c.o.Out,
		PartitionRows: c.partitionRows, RowGroupRows: c.o.RowGroupRows, PageBytes: c.o.PageBytes,
		PageVersion: c.o.PageVersion, Codec: c.o.Codec, Encoding: c.o.Encoding, Overwrite: c.o.Overwrite,
		Progress: func(rows, _ int64) {
			p.add(rows - last)
			last = rows
		},
	})
	p.finish()
	if errors.Is(err, workload.ErrOptions) {
		return cli.WrongUsage(errors.Join(err, closeAll()))
	}
	if err := errors.Join(err, closeAll()); err != nil {
		return err
	}
	v := writtenDataset{Dropped: counts.Dropped}
	v.add(files)
	return c.printWritten(&v)
}

// concatenate returns a reader of the files one after the other; "-" is standard input.
func (c *importCommand) concatenate(ctx context.Context, named []source.Location, opener source.Opener) (io.Reader,
	func() error, error) {
	var readers []io.Reader
	var files []io.Closer
	closeAll := func() error {
		var errs []error
		for _, f := range files {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}
	for _, at := range named {
		if at.Name() == "-" {
			readers = append(readers, c.In)
			continue
		}
		f, err := partitionfile.OpenWhole(ctx, at, opener)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		files = append(files, f)
		readers = append(readers, f)
	}
	return io.MultiReader(readers...), closeAll, nil
}

// importParquet copies files that a pipeline can read.
func (c *importCommand) importParquet(ctx context.Context, named []source.Location, opener source.Opener) error {
	files := partitionfile.Resolver{Opener: opener}
	copies, err := files.Copy(ctx, named, c.o.Out, c.o.Overwrite)
	if errors.Is(err, partitionfile.ErrNotRegular) {
		return fmt.Errorf("%w; Criteo rows may come from a pipe: say --input-format criteo-tsv or criteo-bin", err)
	}
	if err != nil {
		return err
	}
	var v writtenDataset
	for _, f := range copies {
		v.add([]workload.File{{Path: f.Path, Rows: f.Rows, Bytes: f.Bytes, RowGroups: f.RowGroups}})
	}
	return c.printWritten(&v)
}
