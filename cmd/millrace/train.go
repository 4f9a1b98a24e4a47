package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/standin"
)

// jobFlags are the flags that shape a job.
type jobFlags struct {
	plan                planFlags
	epochs, maxDrives   int
	order, recording    string
	queue               int64
	trainer, trainerCPU float64
	measure             time.Duration
}

func (j *jobFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	j.plan.addFlags(f)
	f.IntVar(&j.epochs, "epochs", 1, "epochs")
	f.IntVar(&j.maxDrives, "max-drives", 0, "most drives at once (default: as T/P says)")
	f.StringVar(&j.order, "order", "fastest", "fastest or deterministic")
	f.Var(quantity.BytesFlag[int64]{To: &j.queue}, "queue", "bound of the input queue (default 256MiB)")
	f.StringVar(&j.recording, "record-starved", "",
		"folder for a Go execution trace of the seconds before the trainer starved (go tool trace reads it)")
	j.trainer = 200_000
	f.Var(quantity.RateFlag{To: &j.trainer}, "trainer-rows-per-second", "speed of the stand-in trainer")
	f.Float64Var(&j.trainerCPU, "trainer-cpu", 0,
		"share of a step of the stand-in trainer that uses a processor, 0 to 1")
	f.DurationVar(&j.measure, "measure", time.Second,
		"least time to measure T, and P of each drive to 5 %; if it is given, also P for a job that is short")
}

// options turns the flags into a job, with a stand-in trainer to measure T with. pacing is that of the drives, or nil.
func (j *jobFlags) options(pacing *timing.Pacing) (trainmgr.Options, *standin.Trainer, error) {
	o := trainmgr.Options{Epochs: j.epochs, MaxDrives: j.maxDrives, QueueBytes: j.queue}
	if j.epochs < 1 || j.maxDrives < 0 || j.measure < 0 {
		return o, nil,
			cli.Usagef("--epochs %d, --max-drives %d, --measure %v: want at least 1 epoch, the others not below 0",
				j.epochs, j.maxDrives, j.measure)
	}
	var err error
	if err := j.plan.set(&o); err != nil {
		return o, nil, err
	}
	if o.Order, err = dataset.ParseOrder(j.order); err != nil {
		return o, nil, cli.WrongUsage(err)
	}
	o.Recording.Dir = j.recording
	trainer, err := standin.NewBusy(j.trainer, j.trainerCPU)
	if err != nil {
		return o, nil, cli.WrongUsage(err)
	}
	// T is measured on a second stand-in of the same speed: the stand-in that trains keeps its own clock.
	dummy, err := standin.NewBusy(j.trainer, j.trainerCPU)
	if err != nil {
		return o, nil, err
	}
	paceTrainers(pacing, trainer, dummy)
	o.Ranks = []trainmgr.Step{{Run: dummy.Step}}
	o.Throughput = trainmgr.ThroughputOptions{Time: j.measure}
	return o, trainer, nil
}

// trainCommand is the command that runs a job with a stand-in trainer, and its flags.
type trainCommand struct {
	*console
	from       input
	job        jobFlags
	share      offloadFlags
	service    serviceFlags
	pipeline   string
	files      pipelineFiles
	kept       selectionFlags
	timed      cli.TimingFlags
	autoscale  time.Duration
	energy     cli.PowerFlags
	checkpoint string
	stopAfter  int
	verbose    bool
}

func (c *trainCommand) command() *cobra.Command {
	c.from = input{elsewhere: ", or a control plane with --control or --context (millrace up makes one on this machine)"}
	cmd := &cobra.Command{
		Use:   "train",
		Short: "A job with a stand-in trainer of a given speed: T, P, T/P, queue depth, stalls",
		Long: `Runs a job as a training launcher would: measures T on the trainer and P on each drive, lets T/P
drives run at once, and feeds the trainer from the input queue. The trainer is a stand-in: it is
busy as long as a trainer of --trainer-rows-per-second would be.

With --in or --drive the job runs on drives of this machine. Without, it runs on the storage nodes
of a control plane, that of --control or of a context (millrace context list), and this command is
one of its ranks.

With --local beside --drive, the CPUs of this machine preprocess a share of the splits, from files
that hold the same partitions: the share is profiled and decided as FastFlow does, and followed
while the job runs. Drives may be away, fail and come back.

With --offload and a control plane, this rank's own CPUs are a worker of the job that serves this rank
alone, beside the nodes and other workers. It reads partitions from the nodes, or from the files of
--local where they are the same.

With --timing the drives take the time that the model of a drive says for the rows, values and bytes
that they really process; T, P, waits and the trainer's speed are on the same clock, so that rates are
the model's. It is an error if this machine is slower than that: --dilate makes the modelled times
longer. The time of moving, decoding, transforming and fetching is this machine's all the same.

A mini-batch that a run has acknowledged never comes again. So a job that another run has partly
consumed is refused, with how far it is, unless --checkpoint has a token or --resume says that this
run wants the rest. All ranks of a run say the same --run.

With --autoscale the number of drives that run at once follows the trainer while the job runs: more when
it starves, fewer when the input queue stays full. Drives that are not needed are given up, so that
another job can have a region of a drive meanwhile. The time is that of --timing's clock.

With --checkpoint FILE the job resumes from the token in FILE, if there is one, and leaves a token
there when it ends.`,
		Example: "  millrace train --pipeline rm1 --drive file:d0.flash --drive file:d1.flash " +
			"--trainer-rows-per-second 500000\n" +
			"  millrace train --pipeline rm1 --drive tcp://10.0.0.7:4420/nqn.2026-01.dev.millrace:d0 --local data/ " +
			"--offload extended\n" +
			"  millrace train --pipeline rm1 --in data/ --spread 4 --order deterministic --checkpoint job.token\n" +
			"  millrace train --pipeline rm1 --trainer-rows-per-second 500000\n" +
			"  millrace train --control http://127.0.0.1:7460 --pipeline rm1 --offload extended --local data/\n" +
			"  millrace train --control https://control-0:7460 --ca ca.pem --cert gpu0.pem --key gpu0.key --job ads " +
			"--rank 3 --checkpoint rank3.token",
		Args: c.from.takeArguments,
		RunE: c.run,
	}
	c.from.addFlags(cmd)
	c.timed.AddFlags(cmd)
	c.energy.AddFlags(cmd.Flags())
	c.job.addFlags(cmd)
	c.share.addFlags(cmd)
	c.service.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.pipeline, "pipeline", "", "a YAML file, or the name of a built-in pipeline")
	c.files.addFlags(f)
	c.kept.addFlag(f)
	f.StringVar(&c.checkpoint, "checkpoint", "", "file with the job's token: resumed from, and written at the end")
	addAutoscaleFlag(f, &c.autoscale)
	f.IntVar(&c.stopAfter, "stop-after", 0, "stop after so many mini-batches, as a trainer that crashes would")
	f.IntVar(&c.from.spread, "spread", 0, "with --in: deal the files to so many in-process drives")
	f.BoolVar(&c.verbose, "verbose", false, "log drives, measurements and allocation")
	return cmd
}

// run runs the job on drives of this machine, or one of its ranks on the nodes of a control plane.
func (c *trainCommand) run(cmd *cobra.Command, _ []string) error {
	onService, err := c.service.isService(cmd)
	if err != nil {
		return err
	}
	if c.stopAfter < 0 {
		return cli.Usagef("--stop-after %d: want 0 or more", c.stopAfter)
	}
	var log *slog.Logger
	if c.verbose {
		log = logger(c.Err, "info", "auto")
	}
	if !onService {
		return c.runHere(cmd, log)
	}
	if err := c.timed.Refuse(cmd); err != nil {
		return err
	}
	if c.service.files, err = c.files.submitted(); err != nil {
		return err
	}
	own := ownFlags{files: c.share.files, model: c.share.model, metrics: c.share.metrics}
	if cmd.Flags().Changed("offload") {
		own.offload = c.share.policy
	}
	return withAdvice(c.runRank(cmd, &own, log))
}

// runHere runs the job on drives of this machine.
func (c *trainCommand) runHere(cmd *cobra.Command, log *slog.Logger) (err error) {
	spec, err := c.files.load(c.pipeline)
	if err != nil {
		return err
	}
	if err := c.kept.checkUsed(cmd, spec); err != nil {
		return err
	}
	pacing, err := c.timed.Pacing()
	if err != nil {
		return err
	}
	defer func() { err = cli.TimingError(pacing, err) }()
	if pacing != nil && c.share.given() {
		return cli.Usagef("--timing is of drives, and --local lets this machine's CPUs preprocess beside them, whose time " +
			"is not the model's: leave one of the two out")
	}
	meter, err := c.energy.Open(cmd.Context(), c.timed.Mode)
	if err != nil {
		return err
	}
	o, trainer, err := c.options(cmd, pacing)
	if err != nil {
		return err
	}
	o.Pipeline, o.Logger = spec, log
	storage, closeStorage, err := c.openStorage(cmd, pacing, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStorage()) }()
	if o.Pipeline, _, err = c.kept.bind(cmd.Context(), c.console, storage, spec, o.QueueBytes); err != nil {
		return namePipeline(err, c.pipeline)
	}
	c.Announce("measuring T of the trainer and P of each drive")
	job, err := trainmgr.Submit(cmd.Context(), storage, o)
	if err != nil {
		return namePipeline(err, c.pipeline)
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	if c.checkpoint != "" {
		data, err2 := storage.Dataset(cmd.Context())
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, writeToken(c.checkpoint, job.Checkpoint(), data.Stamps)) }()
	}
	return c.trainOn(cmd.Context(), job, trainer, meter, pacing, o.Epochs)
}

// options returns the options of a job on drives of this machine, and its trainer.
func (c *trainCommand) options(cmd *cobra.Command, pacing *timing.Pacing) (trainmgr.Options, *standin.Trainer, error) {
	o, trainer, err := c.job.options(pacing)
	if err != nil {
		return o, nil, err
	}
	if err := refuseUnused(cmd, c.job.plan.mode(), planUses); err != nil {
		return o, nil, err
	}
	if err := checkAutoscale(cmd, c.autoscale, c.share.given()); err != nil {
		return o, nil, err
	}
	o.Autoscale.Every = c.autoscale
	if o.Resume, o.ResumeStamps, err = readToken(c.checkpoint); err != nil {
		return o, nil, err
	}
	return o, trainer, checkCheckpoint(c.checkpoint)
}

// openStorage opens the drives, and the files of --local beside them. The caller calls the returned function when the
// job has ended.
func (c *trainCommand) openStorage(cmd *cobra.Command, pacing *timing.Pacing, o *trainmgr.Options) (api.Storage,
	func() error, error) {
	config, err := c.from.localConfig(cmd)
	if err != nil {
		return nil, nil, err
	}
	config.Manager = host.Options{Logger: o.Logger, MeasureTime: c.job.measure,
		MeasureShort: cmd.Flags().Changed("measure")}
	configure(pacing, &config, o)
	if c.share.given() {
		drives, closeDrives, err := c.share.options(cmd, &c.from, config, o)
		return drives, closeDrives, err
	}
	manager, err := local.Open(cmd.Context(), config)
	if err != nil {
		return nil, nil, err
	}
	return manager, manager.Close, nil
}

// trainOn trains on a job's mini-batches and prints its report.
func (c *trainCommand) trainOn(ctx context.Context, job *trainmgr.Job, trainer *standin.Trainer, meter *power.Meter,
	pacing *timing.Pacing, epochs int) error {
	a := job.Allocation()
	c.Announce(fmt.Sprintf("T %.0f rows/s, %s at once: %s", a.RowsPerSecond, quantity.Of(a.Drives, "drive"), a.Note))
	if a.ExpectedStall > 0 {
		c.Announce(fmt.Sprintf("expect the trainer to stand still for %.1f s an epoch", a.ExpectedStall.Seconds()))
	}
	p := c.newProgress("train", "rows", job.Plan().Rows()*int64(epochs))
	var r *trainmgr.Report
	used, err := meter.Measure(ctx, func() (power.Use, error) {
		before := processors.Time()
		err := c.takeMiniBatches(ctx, job, trainer, p)
		if err != nil {
			return power.Use{}, err
		}
		if r, err = job.Report(ctx); err != nil {
			return power.Use{}, err
		}
		return energyUse(r, processors.Time()-before, pacing != nil), nil
	})
	p.finish()
	if err != nil {
		return err
	}
	timed := timedReport{r, pacing.Report(), used}
	return c.Report(timed, func(w io.Writer) { printReport(w, timed) })
}

// energyUse is what a job used of this process's processors, or of modelled drives.
func energyUse(r *trainmgr.Report, cpu time.Duration, modelled bool) power.Use {
	u := power.Use{CPUSeconds: cpu.Seconds(), Rows: r.Rows}
	if modelled {
		u.DriveSeconds = float64(max(r.DrivesBusiest, 1)) * r.ElapsedSeconds
	}
	return u
}

// trainedJob is a job of this machine, or a rank of a job of a control plane.
type trainedJob interface {
	MiniBatches(ctx context.Context) iter.Seq2[*tensor.MiniBatch, error]
	Acknowledge(name tensor.Name) error
}

// takeMiniBatches trains on the job's mini-batches, all of them or the first of --stop-after.
func (c *trainCommand) takeMiniBatches(ctx context.Context, job trainedJob, trainer *standin.Trainer,
	p *progress) error {
	steps := 0
	for mb, err := range job.MiniBatches(ctx) {
		if errors.Is(err, trainmgr.ErrNothingLeft) { // the checkpoint is that of a finished job
			fmt.Fprintln(c.Err, "millrace:", terminal.Escape(err.Error()))
			return nil
		}
		if err != nil {
			return err
		}
		if err := trainer.Step(ctx, mb); err != nil {
			return err
		}
		p.add(int64(mb.Rows))
		if steps++; steps == c.stopAfter {
			return job.Acknowledge(mb.Name)
		}
	}
	return nil
}

// readToken reads a checkpoint: a line with the token, and a second line with the stamps of the files as JSON, which
// may be missing. It returns nil if the file does not exist.
func readToken(path string) (*dataset.Token, map[string]api.Stamp, error) {
	if path == "" {
		return nil, nil, nil
	}
	b, err := readDocument(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: %w", err)
	}
	first, rest, _ := bytes.Cut(b, []byte("\n"))
	var t dataset.Token
	if err := t.UnmarshalText(first); err != nil {
		return nil, nil, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	var stamps map[string]api.Stamp
	if len(rest) > 0 {
		if err := json.Unmarshal(rest, &stamps); err != nil {
			return nil, nil, fmt.Errorf("checkpoint %s: the stamps of its files: %w", path, err)
		}
	}
	return &t, stamps, nil
}

// writeToken writes a job's token to a file, with the stamps of its files.
func writeToken(path string, t dataset.Token, stamps map[string]api.Stamp) error {
	b, err := t.MarshalText()
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if len(stamps) > 0 {
		files, err := json.Marshal(stamps)
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		b = append(append(b, '\n'), files...)
	}
	return writeCheckpoint(path, b)
}

// writeCheckpoint writes or replaces a checkpoint.
func writeCheckpoint(path string, b []byte) error {
	if err := wholefile.WritePublic(path, b); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// checkCheckpoint reports before the job runs that its token cannot be written.
func checkCheckpoint(path string) error {
	if path == "" {
		return nil
	}
	if err := wholefile.CheckFolderOf(path); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// printLeftOut prints the number of rows of an epoch that are in no mini-batch, unless it is 0.
func printLeftOut(w io.Writer, rows int64) {
	if rows > 0 {
		fmt.Fprintf(w, "left out\t%s of each epoch: short last mini-batches (--tail drop), or too few for every rank\n",
			quantity.Of(rows, "row"))
	}
}

// printShort prints how many mini-batches of an epoch have fewer rows than a batch, unless it is 0.
func printShort(w io.Writer, n uint64) {
	if n > 0 {
		fmt.Fprintf(w, "short\t%s of each epoch, with fewer rows than the batch\n", quantity.Of(n, "mini-batch"))
	}
}

// printReport prints a job's report as a table.
func printReport(w io.Writer, r timedReport) {
	fmt.Fprintf(w, "rows\t%d in %s, %.2f s, %.0f rows/s\n", r.Rows, quantity.Of(r.MiniBatches, "mini-batch"),
		r.ElapsedSeconds, r.RowsPerSecond)
	printShort(w, r.ShortMiniBatches)
	printLeftOut(w, r.LeftOutRows)
	fmt.Fprintf(w, "timing\t%s\n", r.Timing)
	fmt.Fprintf(w, "T\t%.0f rows/s (stand-in trainer)\n", r.TRowsPerSecond)
	fmt.Fprintf(w, "P\t%.0f rows/s a drive, on average\n", r.PRowsPerSecond)
	fmt.Fprintf(w, "drives\t%d at once (T/P asks for %d), %d at the busiest\n", r.Drives, r.DrivesWanted,
		r.DrivesBusiest)
	fmt.Fprintf(w, "stall\t%.2f s in %d waits; %.2f s for the first mini-batch; %.2f s foretold\n", r.StallSeconds,
		r.Stalls, r.FirstWaitSeconds, r.ExpectedStallSecond)
	fmt.Fprintf(w, "queue\t%.1f mini-batches deep on average, at most %d of %d bytes\n", r.QueueDepthMean,
		r.QueueMaxBytes, r.QueueLimitBytes)
	whose := ""
	if r.Timing.Modelled {
		whose = "; this machine's time, not the model's"
	}
	fmt.Fprintf(w,
		"time\tmove "+
			"%.2f s, decode %.2f s, transform %.2f s, fetch %.2f s, wait for an engine thread %.2f s (all streams "+
			"added up%s)\n", r.MoveSeconds, r.DecodeSeconds, r.TransformSeconds, r.FetchSeconds, r.WaitSeconds, whose)
	fmt.Fprintf(w, "held back by\t%s\n", r.HeldBackBy)
	if r.Energy != nil {
		cli.PrintEnergy(w, r.Energy)
	}
	printAutoscale(w, r.Autoscale)
	printOffload(w, r.Offload)
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
	printLookups(w, r.PerDrive)
	fmt.Fprintf(w, "\ndrive\tengine\trows\tP rows/s\tmoved bytes\tunneeded\ttensor bytes\tits own counters\n")
	for _, d := range r.PerDrive {
		own := "none: the node's CPU computed"
		if d.Problem != "" || d.CountedRows < d.Rows {
			own = "not known for all rows: see the notes"
		}
		if k := d.Counters; k != nil {
			own = fmt.Sprintf("%s, %s, %d bytes flash to DRAM, %d read on flash, %d to host",
				quantity.Of(k.Programs, "run"), quantity.Of(k.Rows, "row"), k.FlashToDRAMBytes, k.FlashLentBytes,
				k.DRAMToHostBytes)
		}
		p := fmt.Sprintf("%.0f", d.RowsPerSecond)
		if d.Spread > 0 {
			p += fmt.Sprintf(" ± %.1f %%", 100*d.Spread)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\n", d.Name, d.Engine, d.Rows, p, d.BytesMoved,
			d.BytesUnneeded, d.BytesOut, own)
	}
}
