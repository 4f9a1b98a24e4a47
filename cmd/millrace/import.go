package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/wholefile"
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
	t, err := c.from.textOptions()
	if err != nil {
		return err
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
	return c.importRows(cmd.Context(), named, sources.Opener, t)
}

// importRows makes partitions of Criteo rows.
func (c *importCommand) importRows(ctx context.Context, named []source.Location, opener source.Opener,
	t text.Options) error {
	r, closeAll, err := c.concatenate(ctx, named, opener)
	if err != nil {
		return err
	}
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
		f, err := openImported(ctx, at, opener)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		files = append(files, f)
		readers = append(readers, f)
	}
	return io.MultiReader(readers...), closeAll, nil
}

// openImported opens a file of this machine or an object of a store. An object that changes while it is read is an
// error.
func openImported(ctx context.Context, at source.Location, opener source.Opener) (io.ReadCloser, error) {
	if !at.InStore() {
		return os.Open(at.Name())
	}
	object, err := opener.Open(ctx, at, source.Identity{})
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{source.NewSequence(ctx, object, source.Retry{}), object}, nil
}

// importedFile is a Parquet file that is copied.
type importedFile struct {
	workload.File
	location source.Location
	object   io.ReadCloser // nil: a file of this machine
}

// importParquet copies files that a pipeline can read. It examines all files before it copies the first, and the copies
// get their names together, when all are whole.
func (c *importCommand) importParquet(ctx context.Context, named []source.Location,
	opener source.Opener) (err error) {
	var opened []importedFile
	defer func() {
		for _, f := range opened {
			if f.object != nil {
				err = errors.Join(err, f.object.Close())
			}
		}
	}()
	from := map[string]source.Location{} // by destination
	for _, at := range named {
		opened = append(opened, importedFile{location: at})
		if at.InStore() {
			// The object is opened before it is described: if it changes in between, its copy fails.
			if opened[len(opened)-1].object, err = openImported(ctx, at, opener); err != nil {
				return err
			}
		}
		resolver := partitionfile.Resolver{Opener: opener}
		info, err := resolver.Describe(ctx, at, partitionfile.Parquet, text.Options{}, false)
		if errors.Is(err, partitionfile.ErrNotRegular) {
			return fmt.Errorf("%w; Criteo rows may come from a pipe: say --input-format criteo-tsv or criteo-bin", err)
		}
		if err != nil {
			return err
		}
		if err := info.CheckReadable(); err != nil {
			return err
		}
		base := filepath.Base(at.Name())
		if at.InStore() {
			if base, err = at.BaseName(); err != nil {
				return err
			}
		}
		to := filepath.Join(c.o.Out, base)
		if other, ok := from[to]; ok {
			return fmt.Errorf("%s and %s have the same base name, by which partitions are named: import them into "+
				"two folders", other, at)
		}
		if there, err := os.Stat(to); err == nil {
			if here, err := os.Stat(at.Name()); err == nil && os.SameFile(here, there) {
				return fmt.Errorf("%s lies in --out already: choose another folder", at)
			}
			if !c.o.Overwrite {
				return fmt.Errorf("%s exists: choose another --out, or give --overwrite", to)
			}
		}
		from[to] = at
		opened[len(opened)-1].File = workload.File{Path: to, Rows: info.Rows, Bytes: info.Bytes,
			RowGroups: info.RowGroups}
	}
	if err := copyFiles(ctx, opened, c.o); err != nil {
		return err
	}
	var v writtenDataset
	for _, f := range opened {
		v.add([]workload.File{f.File})
	}
	return c.printWritten(&v)
}

// copyFiles copies all of the files, or none.
func copyFiles(ctx context.Context, files []importedFile, o workload.Options) (err error) {
	set, err := wholefile.NewSet(o.Out, o.Overwrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for _, f := range files {
		in := f.object
		if in == nil {
			if in, err = os.Open(f.location.Name()); err != nil {
				return err
			}
		}
		err := copyFile(ctx, in, set, filepath.Base(f.Path))
		if f.object == nil {
			err = errors.Join(err, in.Close())
		}
		if err != nil {
			return fmt.Errorf("import %s: %w", f.location, err)
		}
	}
	return set.Commit()
}

// copyFile writes a file of a set of what a reader gives.
func copyFile(ctx context.Context, in io.Reader, set *wholefile.Set, name string) error {
	out, err := set.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, cancellableReader{ctx, in})
	return errors.Join(err, out.Sync(), out.Close())
}

// cancellableReader reads until ctx ends.
type cancellableReader struct {
	ctx context.Context
	r   io.Reader
}

func (u cancellableReader) Read(p []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
