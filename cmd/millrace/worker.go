package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/internal/quantity"
)

// workerCommand is the command that runs a worker without data.
type workerCommand struct{ *console }

func (c workerCommand) command() *cobra.Command {
	return cli.Group("worker", "Run this machine as a worker without data", c.run(), c.describe())
}

// describe makes the hidden command that millrace.open of the Python package runs.
func (c workerCommand) describe() *cobra.Command {
	return &cobra.Command{
		Use: "describe FILE...", Hidden: true,
		Short: "Describe files of this machine for the submission of a job",
		Long: `Prints what a submission says of files of this machine, in protobuf's JSON (OwnFiles): their names, rows
and digests, and their columns. millrace.open in Python submits a job with it when no node of the
control plane holds the partitions.`,
		Example: "  millrace worker describe data/",
		Args:    wantFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := worker.DescribeFiles(cmd.Context(), args)
			if err != nil {
				return err
			}
			b, err := protojson.Marshal(files)
			if err == nil {
				_, err = c.Out.Write(append(b, '\n'))
			}
			return err
		},
	}
}

// workerReady is what worker run prints when the worker serves.
type workerReady struct {
	Name    string   `json:"name"`
	URLs    []string `json:"urls"`
	Threads int      `json:"engine_threads"` // 0 where a drive computes
	Drive   string   `json:"drive,omitempty"`
	Memory  int64    `json:"memory_bytes"`
	Control []string `json:"control"`
}

// workerFlags are the flags of worker run. Those that are given go before the configuration's fields.
type workerFlags struct {
	addressFlags
	config  string
	name    string
	listen  []string
	drive   string
	threads int
	memory  int64
	drainOn []string
	serves  string
	local   []string
	stores  []string
	input   bool
	far     sourceFlags
}

func (c workerCommand) run() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Preprocess on this machine's cores what storage nodes and stores hold",
		Long: `Runs a worker without data until it is interrupted: it joins a control plane as a storage node does,
takes splits as a drive does, reads the columns that a job needs from the nodes that hold them (ranges,
each with a checksum) or from a URL, preprocesses on this machine's cores, and serves mini-batches over
HTTP. They are byte for byte those of a drive. A worker keeps nothing: it may be started, drained and
killed at any moment. With --drive a drive computes in place of the cores: one without flash, as
millrace drive serve --diskless runs it on this machine or on the network, or any other that computes.
The worker stores what it reads in the drive's memory. When the drive is lost, other workers make its
splits, and the worker opens the drive again when it is back.

One line says when the worker is ready; the log is on standard error. When it is interrupted it takes
no new splits, lets those that run end (drain_time bounds that), and ends. Metrics are at /metrics,
readiness at /readyz.

The configuration is one YAML document (millrace config print-defaults worker shows every field), or
none: flags say what is usually needed, and go before it. The certificate has the role node. For
--serves the role launcher is enough, if the job belongs to the launcher's owner and the certificate
names a host (millrace pki issue --role launcher --host HOST): the worker listens and is called there,
reads partitions from the files of --local and from stores, and not from nodes.`,
		Example: "  millrace worker run --control http://127.0.0.1:7460\n" +
			"  millrace worker run --control http://127.0.0.1:7460 --serves ads-0badcafe/0 --local data/\n" +
			"  millrace config print-defaults worker > worker.yaml\n" +
			"  millrace worker run --config worker.yaml --threads 8\n" +
			"  millrace worker run --control http://127.0.0.1:7460 --drive " +
			"tcp://192.0.2.7:4421/nqn.2024-01.io.millrace:card0",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			serves, err := f.servedRank()
			if err != nil {
				return err
			}
			conf, err := f.configuration(cmd, serves)
			if err != nil {
				return err
			}
			stores, err := f.far.stores(true)
			if err != nil {
				return err
			}
			stores.Retry.Attempts = 1 // the worker asks another place
			ctx, stop, err := drainedBy(cmd.Context(), f.drainOn)
			if err != nil {
				return err
			}
			defer stop()
			if f.input {
				ctx = endedByInput(ctx, cmd.InOrStdin())
			}
			log := logger(c.Err, conf.Log.Level, conf.Log.Format)
			return worker.Run(ctx, conf, worker.Options{Serves: serves, Logger: log,
				Version: buildVersion().Version, Stores: stores}, func(a *node.Agent) {
				r := workerReady{Name: conf.Name, URLs: a.URLs(), Threads: conf.Threads, Drive: conf.Drive,
					Memory: int64(conf.Memory), Control: conf.Control}
				_ = c.Print(r, func(w io.Writer) {
					engine := quantity.Of(r.Threads, "thread")
					if r.Drive != "" {
						engine = "the drive " + r.Drive
					}
					fmt.Fprintf(w, "worker %s serves %s at %s\n", r.Name, engine, strings.Join(r.URLs, ", "))
				})
			})
		},
	}
	f.addFlags(cmd, "")
	fl := cmd.Flags()
	f.far.addFlags(fl)
	cli.AddNativeTiming(fl, cli.ServiceTiming)
	fl.StringVar(&f.config, "config", "", "the worker's configuration, a YAML file")
	fl.StringVar(&f.name, "name", "", "name of the worker, unique in the cluster (default: the host's)")
	fl.StringSliceVar(&f.listen, "listen", nil, "where to serve, HOST:PORT or unix:PATH (default 127.0.0.1:7080)")
	fl.StringVar(&f.drive, "drive", "", "drive that computes in place of this machine's cores, by its URI; needs no "+
		"flash")
	fl.IntVar(&f.threads, "threads", 0, "engine threads (default: the cores there are)")
	fl.Var(quantity.BytesFlag[int64]{To: &f.memory}, "memory",
		"most bytes that the worker holds (default: 512MiB a thread, 1GiB at least and 8GiB at most)")
	fl.StringVar(&f.serves, "serves", "",
		"make splits for one rank of one job alone, beside whose trainer this worker runs: JOB/RANK, by the job's "+
			"id; it then needs no name, leaves one core to the trainer, and listens on any free port of this machine")
	addNames(fl, &f.local, "local",
		"files, folders and patterns of this machine with the same partitions: read here and not from nodes")
	fl.StringArrayVar(&f.stores, "store", nil,
		"beginning of the URLs of partitions in stores that this worker may read for jobs, as s3://rows/2026/; may be "+
			"given again (default: the folders of partitions of --config)")
	fl.BoolVar(&f.input, "end-with-input", false, "drain and end when the standard input ends, as that of a process "+
		"does whose parent has ended")
	fl.StringSliceVar(&f.drainOn, "drain-on", nil, "further signals that drain and end the worker: HUP, QUIT "+
		"(INT and TERM always do)")
	return cmd
}

// servedRank returns the only rank that the worker serves; nil: every rank.
func (f *workerFlags) servedRank() (*worker.Rank, error) {
	if f.serves == "" {
		return nil, nil
	}
	rank, err := worker.ParseRank(f.serves)
	if err != nil {
		return nil, cli.Usagef("--serves: %w", err)
	}
	return &rank, nil
}

// configuration returns the configuration that the file and the flags give.
func (f *workerFlags) configuration(cmd *cobra.Command, serves *worker.Rank) (worker.Config, error) {
	conf := worker.DefaultConfig()
	if f.config != "" {
		var err error
		if conf, err = worker.ReadConfig(f.config); err != nil {
			return conf, err
		}
	}
	given := cmd.Flags().Changed
	if given("control") || given("context") || len(conf.Control) == 0 {
		target, err := f.target()
		if err != nil {
			return conf, err
		}
		if conf.Control = target.Control; len(conf.Control) == 0 {
			conf.Control = []string{defaultControl}
		}
		if id := target.Identity; id.Cert != "" && conf.TLS == (node.TLSConfig{}) {
			conf.TLS = node.TLSConfig{Cert: id.Cert, Key: id.Key, CA: id.CA}
		}
	}
	if id := f.identity; given("cert") || given("key") || given("ca") {
		conf.TLS = node.TLSConfig{Cert: id.Cert, Key: id.Key, CA: id.CA}
	}
	if given("name") {
		conf.Name = f.name
	}
	if given("listen") {
		conf.Listen = f.listen
	}
	if given("drive") {
		conf.Drive = f.drive
	}
	if given("threads") {
		conf.Threads = f.threads
	}
	if given("memory") {
		conf.Memory = node.Bytes(f.memory)
	}
	conf.Local = append(conf.Local, f.local...)
	conf.Stores = append(conf.Stores, f.stores...)
	if serves != nil {
		if err := conf.CompleteFor(*serves); err != nil {
			return conf, fmt.Errorf("%w: %w", worker.ErrConfig, err)
		}
	}
	if err := conf.Check(); err != nil {
		return conf, fmt.Errorf("%w: %w", worker.ErrConfig, err)
	}
	return conf, nil
}

// endedByInput returns a context that ends with ctx, or when an input ends.
func endedByInput(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // an input that cannot be read has ended
		cancel()
	}()
	return ctx
}

// drainSignals are the signals that may be named, beside those that interrupt every command.
var drainSignals = map[string]os.Signal{"HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "INT": os.Interrupt,
	"TERM": syscall.SIGTERM}

// drainedBy returns a context that ends with ctx, or with a signal of a name.
func drainedBy(ctx context.Context, names []string) (context.Context, context.CancelFunc, error) {
	var signals []os.Signal
	for _, name := range names {
		s, ok := drainSignals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
		if !ok {
			return nil, nil, cli.Usagef("--drain-on %q: want HUP, QUIT, INT or TERM", name)
		}
		signals = append(signals, s)
	}
	if len(signals) == 0 {
		return ctx, func() {}, nil
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	return ctx, stop, nil
}
