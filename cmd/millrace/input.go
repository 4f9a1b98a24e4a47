package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/trainmgr/local"
)

// input holds the flags of every command that reads a data set: where the partitions come from and what computes.
type input struct {
	in        []string
	drives    []string
	card      string
	sort      string
	root      string
	format    string
	label     string
	malformed string
	engine    string
	commands  string
	image     string
	slm       uint64
	spread    int
	threads   int
	streams   int
	coalesce  uint64
	noTrainer bool // nothing trains beside it, so that files get every core
	simulates bool // --engine may be rtl, for which the command makes a simulation
	far       sourceFlags
	modes     *[]modes // gets the modes if the command opens several data sets and checks flags itself; else nil
	elsewhere string   // the alternative to --in and --drive that the error names when both are missing
}

// addFlags adds the flags to a command.
func (i *input) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	addNames(f, &i.in, "in",
		"files, folders or patterns (* does not cross /), several as --in a.parquet b.parquet; also https: URLs and "+
			"s3://BUCKET/day_*.parquet; with --drive: members of its volume")
	f.StringArrayVar(&i.drives, "drive", nil, "a drive by URI, as file:/data/d0.flash; may be given again. For a "+
		"drive without flash --in names files of this machine, which reads them and stores what is wanted in the "+
		"drive's memory")
	i.sortFlag(f)
	rootFlag(f, &i.root)
	f.StringVar(&i.card, "accelerator", "", "a drive by URI that computes on what this machine reads of --in, or of "+
		"plain drives, and stores in its memory; it needs no flash")
	i.formatFlags(f, "what the files of --in are by name and content; parquet with --drive")
	engines := "reference, cpu or drive"
	if i.simulates {
		engines = "reference, cpu, drive, or rtl, which simulates the units in SystemVerilog"
	}
	f.StringVar(&i.engine, "engine", "", "who computes: "+engines+" (default: the drive, where it computes)")
	cli.AddChoice(f, &i.commands, "commands", "vendor",
		"command set of the drive made of --in: vendor or standard; for --drive say it in the URI", "vendor", "standard")
	f.StringVar(&i.image, "image", "", "an image file that the drive made of --in is to run, as one with WebAssembly "+
		"modules (default: the stock image)")
	f.Var(quantity.BytesFlag[uint64]{To: &i.slm}, "slm", "device memory to use, as 64MiB (default: all of it)")
	byDefault := "the machine's cores, less one for the trainer"
	if i.noTrainer {
		byDefault = "the machine's cores"
	}
	f.IntVar(&i.threads, "threads", 0, "engine threads of the drive made of --in, or of the CPU; for --drive say it "+
		"in the URI (default: "+byDefault+"; 1 with --drive)")
	f.IntVar(&i.streams, "streams", 0,
		"splits that a drive takes at once (default 2, with --in and with a drive in a file one more than its "+
			"threads; fewer where memory is short)")
	f.Var(quantity.BytesFlag[uint64]{To: &i.coalesce}, "coalesce",
		"largest read that joins neighbouring column chunks (default 64KiB; DPP: 1280KiB for disks)")
	i.far.addFlags(f)
}

// sortFlag adds the flag for the order of files.
func (i *input) sortFlag(f *pflag.FlagSet) {
	f.StringVar(&i.sort, "sort", "given", "order of the files: given (lists as given, folders and patterns in natural "+
		"order: day_2 before day_10), natural or name")
}

// rootFlag adds the flag for the folder from which partitions are named.
func rootFlag(f *pflag.FlagSet, root *string) {
	f.StringVar(root, "root", "", "folder in which the data set begins: partitions are named by their paths from it "+
		"(default: the folder named, or before a pattern's first wildcard, without day=1 and the like at its end)")
}

// files returns where the files of --in lie.
func (i *input) files() []source.Location { return source.ParseLocations(i.in...) }

// resolver returns a resolver that finds files according to the flags. Names of pipes, and "-", stay as they are.
func (i *input) resolver(files []source.Location) (partitionfile.Resolver, error) {
	resolver, err := i.far.resolver(files)
	if err != nil {
		return resolver, err
	}
	resolver.Root, resolver.Pipes = source.ParseLocation(i.root), true
	if resolver.Sort, err = dataset.ParseSort(i.sort); err != nil {
		err = cli.WrongUsage(err)
	}
	return resolver, err
}

// formatFlags adds the flags that select files and name their format; byDefault describes the format without
// --input-format.
func (i *input) formatFlags(f *pflag.FlagSet, byDefault string) {
	i.far.addNameFlags(f)
	f.StringVar(&i.format, "input-format", "", "parquet, criteo-tsv or criteo-bin (default: "+byDefault+")")
	cli.AddChoice(f, &i.label, "label", "present", "criteo-tsv: present, or absent for the 39-field form", "present",
		"absent")
	cli.AddChoice(f, &i.malformed, "malformed", "fail", "criteo-tsv: what becomes of a malformed row: fail, drop or null",
		"fail", "drop", "null")
}

// localConfig turns the flags into drives to open. It checks every flag before it looks at a file.
func (i *input) localConfig(cmd *cobra.Command) (local.Config, error) {
	c := local.Config{
		Drives: i.drives, Spread: i.spread, DriveOptions: host.DriveOptions{Threads: i.threads, Streams: i.streams,
			SLM: i.slm, Coalesce: i.coalesce},
	}
	if len(i.in) == 0 && len(i.drives) == 0 {
		return c, cli.Usagef("name files with --in, or drives with --drive%s", i.elsewhere)
	}
	var err error
	if c.Source = program.Parquet; i.format != "" {
		if c.Source, err = i.source(); err != nil {
			return c, err
		}
	}
	c.Text = i.textOptions()
	if c.Sort, err = dataset.ParseSort(i.sort); err != nil {
		return c, cli.WrongUsage(err)
	}
	switch i.engine {
	case "":
	case "rtl":
		if !i.simulates {
			return c, cli.Usagef("--engine rtl: want reference, cpu or drive; millrace preprocess simulates the units")
		}
		c.Engine = host.EngineRTL
	default:
		if c.Engine, err = host.ParseEngine(i.engine); err != nil {
			return c, cli.WrongUsage(err)
		}
	}
	c.Commands = sdk.Commands(i.commands)
	mode := i.mode(&c)
	if err := i.refuseUnused(cmd, mode); err != nil {
		return c, err
	}
	if i.image != "" {
		if err := i.readDriveImage(&c.DriveOptions); err != nil {
			return c, err
		}
	}
	if i.threads < 0 || i.threads > sdk.MaxThreads || i.streams < 0 {
		return c, cli.Usagef("--threads %d, --streams %d: want 1 to %d threads, streams not below 0", i.threads, i.streams,
			sdk.MaxThreads)
	}
	if cmd.Flags().Changed("threads") && i.threads == 0 {
		return c, cli.Usagef("--threads 0: want 1 to %d", sdk.MaxThreads)
	}
	if i.noTrainer {
		c.TrainerCores = -1
	}
	if i.spread < 0 {
		return c, cli.Usagef("--spread %d: want 0 or more", i.spread)
	}
	if c.Accelerator = i.card; i.card != "" {
		if err := i.checkAccelerator(); err != nil {
			return c, err
		}
	}
	if err := i.far.names.Check(); err != nil {
		return c, cli.Usagef("--%w", err)
	}
	named := i.files()
	if c.Sources, err = i.far.open(named); err != nil {
		return c, err
	}
	if len(i.drives) > 0 {
		if err := i.checkDrives(); err != nil {
			return c, err
		}
		c.Members = i.in
		return c, i.refuseUnused(cmd, mode|formatMode(c.Source))
	}
	if err := i.findFormat(cmd.Context(), named); err != nil {
		return c, err
	}
	if c.Source, err = i.source(); err != nil {
		return c, err
	}
	if err := i.refuseUnused(cmd, mode|formatMode(c.Source)); err != nil {
		return c, err
	}
	files := partitionfile.Resolver{Opener: c.Sources.Opener, Names: i.far.names, Sort: c.Sort,
		Root: source.ParseLocation(i.root)}
	found, err := files.Find(cmd.Context(), named, partitionfile.Format(i.format))
	if err != nil {
		return c, adviseImport(err)
	}
	c.Files, c.Names = filename.Locations(found), filename.Names(found)
	c.Sort = dataset.SortGiven // the files are already sorted
	if i.spread > len(c.Files) {
		return c, cli.Usagef("--spread %d: --in has %s", i.spread, quantity.Of(len(c.Files), "file"))
	}
	return c, nil
}

// refuseUnused refuses flags that a data set does not use.
func (i *input) refuseUnused(cmd *cobra.Command, mode modes) error {
	if i.modes == nil {
		return refuseUnused(cmd, mode, inputUses, sourceUses)
	}
	if mode&ofParquet.group() != 0 {
		*i.modes = append(*i.modes, mode)
	}
	return nil
}

// readDriveImage reads the image that the drive made of the files is to run. Such a drive computes.
func (i *input) readDriveImage(o *host.DriveOptions) error {
	m, err := readImage(i.image)
	if err != nil {
		return err
	}
	o.Engine, o.Image = host.EngineDrive, m.Bytes()
	return nil
}

// checkDrives checks the names of drives and of their members.
func (i *input) checkDrives() error {
	for _, uri := range i.drives {
		if err := checkURI(uri); err != nil {
			return err
		}
	}
	for _, pattern := range i.in {
		if _, err := path.Match(pattern, ""); err != nil {
			return cli.Usagef("--in %q: %w", pattern, err)
		}
	}
	return nil
}

// checkAccelerator checks the accelerator, which works for one drive.
func (i *input) checkAccelerator() error {
	if i.spread > 1 || len(i.drives) > 1 {
		return cli.Usagef("--accelerator works for one drive of files or one --drive: its memory is not shared")
	}
	return checkURI(i.card)
}

// source returns the format that --input-format names.
func (i *input) source() (program.Source, error) {
	source, known := partitionfile.Format(i.format).Source()
	if !known {
		return source, cli.Usagef("--input-format %q: want parquet, criteo-tsv or criteo-bin", i.format)
	}
	return source, nil
}

// textOptions returns how text partitions are read.
func (i *input) textOptions() text.Options {
	policies := map[string]text.Policy{"fail": text.Fail, "drop": text.Drop, "null": text.Null}
	return text.Options{LabelAbsent: i.label == "absent", Policy: policies[i.malformed]}
}

// loadPipeline returns the pipeline of a document, or the built-in pipeline of that name.
func loadPipeline(name string) (*pipeline.Spec, error) {
	if name == "" {
		return nil, cli.Usagef("--pipeline is wanted: a YAML file, or one of %s", strings.Join(pipeline.Names(), ", "))
	}
	b, err := readDocument(name)
	if err != nil {
		if spec, nerr := pipeline.Named(name); nerr == nil {
			return spec, nil
		}
		return nil, fmt.Errorf("pipeline: %w (named pipelines: %s)", err, strings.Join(pipeline.Names(), ", "))
	}
	spec, err := pipeline.Parse(b)
	if err != nil {
		return nil, namePipeline(err, name)
	}
	return spec, nil
}

// maxDocument bounds the documents that are read whole. Their parsers have lower bounds of their own.
const maxDocument = 16 << 20

// readDocument reads a pipeline, prices or a token of at most maxDocument bytes, from a file or a pipe.
func readDocument(name string) ([]byte, error) { return wholefile.Read(name, maxDocument) }

// namePipeline adds the name of the document to an error with a line and a column.
func namePipeline(err error, name string) error {
	var wrong problem.Errors
	if errors.As(err, &wrong) {
		return &documentError{name, wrong}
	}
	return err
}

// documentError is the errors of a pipeline document.
type documentError struct {
	name  string
	wrong problem.Errors
}

func (e *documentError) Error() string { return strings.Join(e.Lines(), "\n") }

func (e *documentError) Unwrap() error { return e.wrong }

// Lines returns one line for each error.
func (e *documentError) Lines() []string {
	lines := make([]string, len(e.wrong))
	for i, one := range e.wrong {
		lines[i] = e.name + ": " + one.Error()
	}
	return lines
}
