package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/rtl"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/tensor/arrowipc"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// tensorWriter writes mini-batches to a file or folder that has its name only when it is whole.
type tensorWriter interface {
	Write(*tensor.MiniBatch) error
	Close() error
	Abort() error
}

// preprocessResult is what `millrace preprocess` prints.
type preprocessResult struct {
	Out            string              `json:"out"`
	Format         string              `json:"format"`
	Job            string              `json:"job"`
	Rows           int64               `json:"rows"`
	MiniBatches    int64               `json:"mini_batches"`
	Bytes          int64               `json:"bytes"`
	ElapsedSeconds float64             `json:"elapsed_seconds"`
	RowsPerSecond  float64             `json:"rows_per_second"`
	LeftOutRows    int64               `json:"left_out_rows"` // rows that --tail drop left out
	RowsDropped    int64               `json:"rows_dropped"`
	PerDrive       []api.DriveReport   `json:"per_drive"`
	Vocabularies   []appliedVocabulary `json:"vocabularies"`
	Selection      *appliedSelection   `json:"selection,omitempty"` // absent without a filter
	Timing         timing.Report       `json:"timing"`
	RTL            *rtl.Report         `json:"rtl,omitempty"` // absent with other engines
}

// preprocessCommand is the command that writes tensors, and its flags.
type preprocessCommand struct {
	*console
	from     input
	pipeline string
	to       string
	format   string
	plan     planFlags
	queue    int64
	files    pipelineFiles
	kept     selectionFlags
	timed    cli.TimingFlags
	build    []string // vocabularies that a pass builds first, as NAME=FILE or NAME
}

func (c *preprocessCommand) command() *cobra.Command {
	c.from = input{noTrainer: true, simulates: true}
	cmd := &cobra.Command{
		Use:   "preprocess",
		Short: "Run a pipeline over files or a drive's members and write the tensors",
		Long: `Runs a pipeline over files, or over the members of a drive's volume, in dataset order (files as
--sort says, rows by number), and writes train-ready tensors: --format npy makes a folder (dense.npy,
labels.npy, values.npy, lengths.npy or sparse.npy, keys.json), --format arrow an Arrow IPC file of
one mini-batch a record batch. Output has its name only when it is whole.

A pipeline with vocabularies wants their files: --vocabulary names one that is there, --build-vocabulary
one that a first pass over the same data builds, so that one command runs both of Piper's loops. Without a
file name, --build-vocabulary keeps the vocabulary in memory for this run only.

A pipeline with a filter is run over the rows that pass: a first pass over the filter's columns finds
them. --selections names a folder that keeps what the pass found, for later runs.

With --timing the drives take the time that the model of a drive says for the rows, values and bytes
that they really process, and the rate is the model's. It is an error if this machine is slower than
that: --dilate makes the modelled times longer.

With --engine rtl the values go through the units in SystemVerilog, which Verilator simulates cycle by
cycle: slowly, and to the same bytes. The report says which units computed, in how many cycles, and what
was left to this machine. A pipeline with a step that no unit computes is refused.`,
		Example: "  millrace preprocess --pipeline rm1 --in data/ --out tensors --format npy\n" +
			"  millrace preprocess --pipeline criteo --in day_0.tsv --input-format criteo-tsv --engine cpu --out " +
			"day_0.arrow --format arrow\n" +
			"  millrace preprocess --pipeline p.yaml --drive 'file:d0.flash?commands=standard' --in 'part-*' --out " +
			"tensors\n" +
			"  millrace preprocess --pipeline p.yaml --in day_*.parquet --build-vocabulary piper=criteo.vocab " +
			"--out tensors",
		Args: c.from.takeArguments,
		RunE: c.run,
	}
	c.from.addFlags(cmd)
	c.timed.AddFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.pipeline, "pipeline", "", "a YAML file, or the name of a built-in pipeline")
	f.StringVar(&c.to, "out", "", "folder (npy) or file (arrow) to write; must not exist")
	cli.AddChoice(f, &c.format, "format", "npy", "npy or arrow", "npy", "arrow")
	c.plan.addCutFlags(f)
	c.files.addFlags(f)
	c.kept.addFlag(f)
	f.StringArrayVar(&c.build, "build-vocabulary", nil, "build one of the pipeline's vocabularies by a pass over the "+
		"data first, and write it to a file that does not exist, as piper=criteo.vocab; piper alone keeps it in "+
		"memory and writes no file, which is faster; may be given again")
	f.Var(quantity.BytesFlag[int64]{To: &c.queue}, "queue", "bound of the queue, as 256MiB")
	return cmd
}

// run makes the passes that the pipeline needs first, and then the tensors.
func (c *preprocessCommand) run(cmd *cobra.Command, _ []string) (err error) {
	ctx := cmd.Context()
	spec, toBuild, err := c.checkedPipeline(cmd)
	if err != nil {
		return err
	}
	pacing, err := c.timed.Pacing()
	if err != nil {
		return err
	}
	defer func() { err = cli.TimingError(pacing, err) }()
	o := trainmgr.Options{Order: dataset.Deterministic, AllDrives: true, QueueBytes: c.queue}
	if err := c.plan.set(&o); err != nil {
		return err
	}
	config, err := c.from.localConfig(cmd)
	if err != nil {
		return err
	}
	configure(pacing, &config, &o)
	if err := checkWriter(c.format, c.to); err != nil { // before passes that may take hours
		return err
	}
	units, err := c.simulateUnits(ctx, &config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, units.close()) }()
	manager, err := local.Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	spec, selected, err := c.kept.bind(ctx, c.console, manager, spec, o.QueueBytes)
	if err != nil {
		return namePipeline(err, c.pipeline)
	}
	var built []*builtVocabulary
	if o.Pipeline, built, err = c.buildVocabularies(cmd, spec, toBuild, manager, o.QueueBytes); err != nil {
		return namePipeline(err, c.pipeline)
	}
	job, err := trainmgr.Submit(ctx, manager, o)
	if err != nil {
		return namePipeline(err, c.pipeline)
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	report, elapsed, err := c.write(ctx, job, pacing)
	if err != nil {
		return err
	}
	r := preprocessResult{Out: c.to, Format: c.format, Job: report.Job, Rows: report.Rows,
		LeftOutRows: report.LeftOutRows, MiniBatches: report.MiniBatches, Bytes: report.Bytes, ElapsedSeconds: elapsed,
		RowsPerSecond: float64(report.Rows) / elapsed, PerDrive: report.PerDrive,
		Vocabularies: appliedVocabularies(o.Pipeline, built, report.PerDrive), Selection: selected,
		Timing: pacing.Report(), RTL: units.report()}
	for _, d := range report.PerDrive {
		r.RowsDropped += d.RowsDropped
	}
	return c.Report(r, r.print)
}

// checkedPipeline returns the pipeline with its files, and the vocabularies that a pass builds first.
func (c *preprocessCommand) checkedPipeline(cmd *cobra.Command) (*pipeline.Spec, map[string]string, error) {
	spec, err := loadPipeline(c.pipeline)
	if err != nil {
		return nil, nil, err
	}
	if c.to == "" {
		return nil, nil, cli.Usagef("--out is wanted")
	}
	toBuild, err := vocabulariesToBuild(c.build)
	if err != nil {
		return nil, nil, err
	}
	if spec, err = c.files.bind(spec, c.pipeline); err != nil {
		return nil, nil, err
	}
	return spec, toBuild, c.kept.checkUsed(cmd, spec)
}

// write writes a job's mini-batches, and returns the job's report and the seconds that it took.
func (c *preprocessCommand) write(ctx context.Context, job *trainmgr.Job,
	pacing *timing.Pacing) (report *trainmgr.Report, seconds float64, err error) {
	w, err := createWriter(c.format, c.to, job.Schema())
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	now := time.Now
	if pacing != nil {
		now = pacing.Clock().Now
	}
	begin := now()
	p := c.newProgress("preprocess", "rows", job.Plan().Rows())
	err = writeAll(ctx, job, w, p)
	p.finish()
	if err != nil {
		return nil, 0, err
	}
	if err := cli.TimingError(pacing, nil); err != nil {
		return nil, 0, err
	}
	if err := w.Close(); err != nil {
		return nil, 0, fmt.Errorf("write %s: %w", c.to, err)
	}
	if report, err = job.Report(ctx); err != nil {
		return nil, 0, err
	}
	return report, now().Sub(begin).Seconds(), nil
}

// print prints the result as a table.
func (r *preprocessResult) print(w io.Writer) {
	fmt.Fprintf(w, "wrote\t%s (%s)\nrows\t%d in %s, %.0f a second\nbytes\t%d\n", r.Out, r.Format, r.Rows,
		quantity.Of(r.MiniBatches, "mini-batch"), r.RowsPerSecond, r.Bytes)
	printLeftOut(w, r.LeftOutRows)
	fmt.Fprintf(w, "timing\t%s\n", r.Timing)
	if r.RowsDropped > 0 {
		fmt.Fprintf(w, "dropped\t%s\n", quantity.Of(r.RowsDropped, "malformed row"))
	}
	if s := r.Selection; s != nil {
		fmt.Fprintf(w, "filter\tpasses %d of %s\n", s.PassingRows, quantity.Of(s.Rows, "row"))
	}
	for _, v := range r.Vocabularies {
		fmt.Fprintf(w, "vocabulary\t%s: ids looked up by the %s\n", terminal.Cell(v.Name), v.LookedUpBy)
	}
	printLookups(w, r.PerDrive)
	printUnits(w, r.RTL)
	for _, d := range r.PerDrive {
		fmt.Fprintf(w, "%s\tby the %s\n", d.Name, d.Engine)
	}
}

// writeAll writes the job's mini-batches.
func writeAll(ctx context.Context, job *trainmgr.Job, w tensorWriter, p *progress) error {
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return err
		}
		if err := w.Write(mb); err != nil {
			return fmt.Errorf("write mini-batch %d: %w", mb.Name.Number, err)
		}
		p.add(int64(mb.Rows))
	}
	return nil
}

// checkWriter returns the error of createWriter for an output that exists, or whose folder cannot be written to.
func checkWriter(format, out string) error {
	if format == "arrow" {
		if err := arrowipc.CheckPath(out); err != nil {
			return err
		}
		return wholefile.CheckFolderOf(out)
	}
	if err := tensor.CheckNpy(out); err != nil {
		return err
	}
	made := filepath.Clean(out) // the topmost of the folders that the writer makes
	for made != filepath.Dir(made) {
		if _, err := os.Stat(filepath.Dir(made)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = filepath.Dir(made)
	}
	return wholefile.CheckFolderOf(made)
}

func createWriter(format, out string, schema *tensor.Schema) (tensorWriter, error) {
	if format == "arrow" {
		return arrowipc.Create(out, schema)
	}
	return tensor.CreateNpy(out, schema)
}
