package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
)

// The names of a worker's drive of reach any.
const (
	DriveName = "cpu"  // this machine's cores compute
	CardName  = "card" // the drive that Config.Drive names computes
)

// coalesce is the largest read that joins neighbouring column chunks: DPP reads this much at once over its network.
const coalesce = source.LongestRead

// Options are the values that a program passes to a worker beside its configuration. The zero value works.
type Options struct {
	Logger   *slog.Logger         // nil: silent
	Registry *prometheus.Registry // where metrics are registered, and what /metrics serves; nil: one of the worker's own
	Version  string               // Version is that of the program, for the control plane.
	Stores   *source.Stores       // Stores hold the partitions that have a URL; nil: http and https.
	// Serves is the only rank that the worker makes splits for; nil means every rank. A worker for one rank runs beside
	// the rank's trainer. It needs no name, leaves one core to the trainer, and listens on any free port of this
	// machine, unless its configuration says otherwise.
	Serves *Rank
	// Denied is called from a goroutine of the worker when the control plane denies it its registration, with an error
	// that wraps node.ErrDenied. nil: Run ends a worker for one rank with the error, and every other worker asks again.
	Denied func(error)
}

// Start joins the control plane, listens, and serves until the agent is closed.
func Start(ctx context.Context, c Config, o Options) (*node.Agent, error) {
	conf, with, err := nodeSettings(ctx, c, o)
	if err != nil {
		return nil, err
	}
	return node.Start(ctx, conf, with)
}

// Run is a worker's life under a service manager, as node.Run is a node's: when ctx ends, it drains for at most
// Config.DrainTime and closes. ready is called when the worker serves.
func Run(ctx context.Context, c Config, o Options, ready func(*node.Agent)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if o.Serves != nil && o.Denied == nil {
		o.Denied = end // without it the rank would wait for its worker in vain
	}
	conf, with, err := nodeSettings(ctx, c, o)
	if err != nil {
		return err
	}
	err = node.Run(ctx, conf, with, ready)
	if cause := context.Cause(ctx); errors.Is(cause, node.ErrDenied) {
		return errors.Join(cause, err)
	}
	return err
}

// nodeSettings makes a node's configuration and options from those of a worker.
func nodeSettings(ctx context.Context, c Config, o Options) (node.Config, node.Options, error) {
	if o.Serves != nil {
		if err := c.CompleteFor(*o.Serves); err != nil {
			return node.Config{}, node.Options{}, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if err := c.Check(); err != nil {
		return node.Config{}, node.Options{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	stores := c.boundStores(o.Stores)
	cache, err := source.NewCache(source.Options{
		Memory: c.divideMemory().read, Requests: c.Requests,
		Retry: source.Retry{Attempts: c.ReadTries, Timeout: time.Duration(c.ReadTime), Longest: 2 * time.Second},
	})
	if err != nil {
		return node.Config{}, node.Options{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	with := node.Options{Logger: o.Logger, Registry: o.Registry, Version: o.Version, Denied: o.Denied}
	given := host.Sources{Opener: stores, Cache: cache}
	if with.Given, err = describeGiven(ctx, c.Partitions, given, nil); err != nil {
		return node.Config{}, node.Options{}, err
	}
	with.Rescan = time.Duration(c.Rescan)
	with.Redescribe = func(ctx context.Context, known *host.Given) (*host.Given, error) {
		return describeGiven(ctx, c.Partitions, given, known)
	}
	files, err := describeLocal(ctx, c.Local)
	if err != nil {
		return node.Config{}, node.Options{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	own, err := c.identity().Own()
	if err != nil {
		return node.Config{}, node.Options{}, fmt.Errorf("%w: tls: %w", ErrConfig, err)
	}
	var serves *apiv1.RankName
	if o.Serves != nil {
		c.Modules.Submitted = true // whoever runs the rank has chosen its job
		serves = &apiv1.RankName{Job: o.Serves.Job, Rank: o.Serves.Number}
	}
	with.Elsewhere = &node.ElsewhereOptions{
		Serves: serves,
		Drive:  c.hostDrive(),
		Open: func(n node.Network) (host.Elsewhere, error) {
			p := NewPartitions(PartitionsOptions{Client: n.Client, Stores: stores, Cache: cache, Locate: n.Locate,
				Drive: c.hostDrive().Name, Local: files, Launcher: own.Role == identity.Launcher, Log: o.Logger})
			return p, o.Registry.Register(newCollector(p))
		},
	}
	return c.nodeConfig(), with, nil
}

// boundStores returns stores that read what the configuration allows. nil means http and https.
func (c *Config) boundStores(stores *source.Stores) *source.Stores {
	if stores == nil {
		stores = &source.Stores{Web: source.NewWeb(source.NewTransport(nil)), Retry: source.Retry{Attempts: 1}}
	}
	return stores.Within(c.readable())
}

// hostDrive describes the worker's drive of reach any.
func (c *Config) hostDrive() host.DriveOptions {
	o := host.DriveOptions{
		Name: DriveName, Engine: host.EngineCPU, Threads: c.Threads, SLM: uint64(c.divideMemory().engine), Jobs: c.Jobs,
		Coalesce: coalesce,
	}
	if c.Drive != "" {
		o.Name, o.Engine, o.Accelerator = CardName, host.EngineDrive, c.Drive
	}
	return o
}

// describeGiven describes the partitions of a store that URLs or patterns name. It returns nil if there are no
// patterns, and known if the partitions are unchanged.
func describeGiven(
	ctx context.Context, patterns []string, sources host.Sources, known *host.Given,
) (*host.Given, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	files := partitionfile.Resolver{Opener: sources.Opener}
	found, err := files.Find(ctx, source.ParseLocations(patterns...), partitionfile.Parquet)
	if err != nil {
		return nil, fmt.Errorf("partitions: %w", err)
	}
	if known != nil {
		same, err := known.Unchanged(ctx, filename.Locations(found), sources)
		if err != nil {
			return nil, fmt.Errorf("partitions: %w", err)
		}
		if same {
			return known, nil
		}
	}
	given, err := host.DescribeGiven(ctx, found, sources)
	if err != nil {
		return nil, fmt.Errorf("partitions: %w", err)
	}
	return given, nil
}
