package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/exposition"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/machineload"
	"github.com/millrace/millrace/host/node/delivery"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/host/node/heartbeat"
	"github.com/millrace/millrace/host/node/metrics"
	"github.com/millrace/millrace/host/node/partitions"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/sdk"
)

// ErrDenied says that the control plane denies a node its registration, for example because of its certificate.
var ErrDenied = heartbeat.ErrDenied

// Options are the values that a program gives an agent beside its configuration. The zero value works.
type Options struct {
	Logger   *slog.Logger         // nil: silent
	Registry *prometheus.Registry // where metrics are registered, and what /metrics serves; nil: one of the agent's own
	Version  string               // Version is that of the program, for the control plane.
	// Probe is the time between two probes of a drive, which ask whether it is there and how busy it was; 0 means a
	// second.
	Probe time.Duration
	// Device changes how a drive is opened, in tests.
	Device func(drive string, o *sdk.DeviceOptions)
	// Sources reads the partitions of drives without flash that are named by a URI. The zero value reads http: and
	// https:.
	Sources host.Sources
	// Elsewhere gives the node a drive of reach any beside those of its configuration; nil: none.
	Elsewhere *ElsewhereOptions
	// Given is partitions of a store that the agent announces to the control plane; nil: none.
	Given *host.Given
	// Rescan is the time between two looks for partitions of a store that were added or written again, by Redescribe,
	// which returns known if they are the same. 0: there are none after the first.
	Rescan     time.Duration
	Redescribe func(ctx context.Context, known *host.Given) (*host.Given, error)

	// Denied is called from a goroutine of the agent when the control plane denies the node its registration, with an
	// error that wraps ErrDenied; nil: the agent only logs it. The agent asks again until Close.
	Denied func(error)

	wrap func(splits.Opener) splits.Opener // injects faults into streams, in tests
}

// Agent is a running node. It makes the node's parts and ends them; each part has only what it needs of the others.
type Agent struct {
	name        string
	incarnation string
	log         *slog.Logger
	manager     *host.Manager
	splits      *splits.Table
	drives      *drives.Set
	store       *partitions.Store
	fence       *heartbeat.Fence
	heartbeat   *heartbeat.Sender

	vocabularies *jobVocabularies
	modules      *jobModules
	selections   *nodeSelections
	tickets      *ticket.Verifier
	drain        *drainSwitch
	status       *statusReader
	metrics      *metrics.Metrics
	listeners    *listeners
	server       *server
	toControl    *http.Client // towards members of the control plane
	toNodes      *http.Client // towards other nodes

	ctx       context.Context // ends with Close
	stop      context.CancelFunc
	running   sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Start opens the drives, listens, and serves until Close. It tries drives that do not open again and again, and serves
// the others meanwhile. Its errors are those of the configuration, the identity and the listeners.
func Start(ctx context.Context, c Config, o Options) (*Agent, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	image, err := loadImage(c.Image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	modules, err := loadModules(&c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Agent{name: c.Name, log: o.Logger}
	if a.toControl, err = identity.HTTPClientOf(c.identity(), identity.AcceptControl); err != nil {
		return nil, err
	}
	if a.toNodes, err = identity.HTTPClientOf(c.identity(), identity.AcceptNode); err != nil {
		return nil, err
	}
	a.makeHeartbeat(&c, o.Denied)
	list, err := a.driveConfigs(&c, &o)
	if err != nil {
		return nil, err
	}
	if err := a.openManager(&c); err != nil {
		return nil, err
	}
	tlsConfig, err := c.identity().Server()
	if err != nil {
		return nil, err
	}
	if a.listeners, err = openListeners(ctx, &c, tlsConfig, a.log); err != nil {
		return nil, err
	}
	if a.vocabularies, err = openVocabularies(&c, a.toControl, a.heartbeat.Members, a.log); err != nil {
		return nil, errors.Join(err, a.listeners.close())
	}
	if a.selections, err = openSelections(&c, a.log); err != nil {
		return nil, errors.Join(err, a.listeners.close(), a.vocabularies.close())
	}
	a.modules = &jobModules{ofImages: modules, submitted: c.Modules.Submitted, cache: a.vocabularies.cache}
	a.ctx, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	a.makeParts(&c, &o, image, list)
	if err := a.makeServer(&c, &o); err != nil {
		a.stop()
		return nil, errors.Join(err, a.listeners.close(), a.vocabularies.close(), a.selections.close())
	}
	a.startParts(&c)
	if o.Given != nil && o.Redescribe != nil && o.Rescan > 0 {
		a.background(func(ctx context.Context) { a.rescanGiven(ctx, o.Rescan, o.Redescribe) })
	}
	a.log.Info("node", "node", c.Name, "urls", strings.Join(a.URLs(), " "), "drives", len(list),
		"incarnation", a.status.incarnation)
	return a, nil
}

// openManager makes the manager of the node's drives, which has none yet.
func (a *Agent) openManager(c *Config) (err error) {
	rates := ""
	if c.StateDir != "" {
		rates = filepath.Join(c.StateDir, "rates.json")
	}
	a.manager, err = host.NewManager(host.Options{Logger: a.log, MeasureTime: time.Duration(c.Measure), Rates: rates})
	return err
}

// makeHeartbeat makes what talks to the control plane. It reads the node's status from the parts that makeParts makes.
func (a *Agent) makeHeartbeat(c *Config, denied func(error)) {
	a.incarnation = newIncarnation()
	a.fence = heartbeat.OpenFence(c.StateDir, a.log)
	a.tickets = ticket.NewVerifier(c.Name, a.incarnation, time.Now)
	a.heartbeat = heartbeat.New(heartbeat.Options{
		Members: c.Control, Client: a.toControl, Fence: a.fence, Log: a.log, Learn: a.tickets.Learn,
		Denied: denied,
		Status: func() (*apiv1.NodeStatus, error) { return a.status.read(true) },
	})
}

// makeParts makes the node's other parts. None of them runs yet.
func (a *Agent) makeParts(c *Config, o *Options, image drives.Image, list []drives.Config) {
	changed := func() { a.heartbeat.SendSoon() }
	open := splits.Opener(a.manager.Open)
	if o.wrap != nil {
		open = o.wrap(open)
	}
	a.splits = splits.New(c.splitOptions(open, func(drive string, err error) { a.drives.Fail(drive, err) }, a.fence.Get,
		a.log))
	a.selections.splits, a.selections.manager = a.splits, a.manager
	a.drives = drives.New(drives.Options{
		Node: c.Name, Drives: list, Manager: a.manager, Splits: a.splits, Image: image,
		Drain: time.Duration(c.DrainTime), Probe: o.Probe, Owner: driveOwner(c.Name, a.listeners.reached),
		Sources: o.Sources, Changed: changed, Log: a.log, Device: o.Device,
	})
	a.store = partitions.New(partitions.Options{
		Drive: a.drives.Drive, Siblings: a.drives.Siblings, Client: a.toNodes, StateDir: c.StateDir,
		WriteTime: time.Duration(c.Runs.WriteTime), Changed: changed, Log: a.log,
	})
	a.drain = &drainSwitch{splits: a.splits, changed: changed, log: a.log}
	a.status = &statusReader{
		name: c.Name, incarnation: a.incarnation, version: o.Version, urls: a.listeners.urls,
		manager: a.manager, splits: a.splits, drives: a.drives.Statuses, draining: a.drain.on,
		load: machineload.New(machineload.Options{}), given: new(atomic.Pointer[host.Given]),
		serves: o.Elsewhere.served(),
	}
	a.status.given.Store(o.Given)
}

// makeServer makes what serves the node's parts over HTTP.
func (a *Agent) makeServer(c *Config, o *Options) (err error) {
	a.metrics, err = metrics.New(metrics.Options{
		Registry: o.Registry, Version: o.Version, Identity: c.identity(), Log: a.log,
		Status: func() (*apiv1.NodeStatus, error) { return a.status.read(false) },
		Drives: a.drives.Statuses, Fence: a.fence.Get, TimeCommands: c.behindKernel(),
		Vocabularies: exposition.Vocabularies(a.vocabularies.files, a.vocabularies.cache),
		FreeBytes:    func(d *host.Drive) int64 { return a.manager.Status(d).Free },
	})
	if err != nil {
		return err
	}
	tickets := a.tickets
	if len(c.Control) == 0 {
		tickets = nil
	}
	routes := &routes{
		service: &service{
			manager: a.manager, splits: a.splits, drives: a.drives, store: a.store, fence: a.fence, drain: a.drain,
			vocabularies: a.vocabularies, modules: a.modules, selections: a.selections,
			status: a.status, changed: a.heartbeat.SendSoon, jobLimit: c.Limits.Jobs, log: a.log,
		},
		delivery: delivery.New(delivery.Options{
			Splits: a.splits, Plan: a.manager.Plan, Known: a.drives.Known, Tickets: tickets,
			UnknownKey: a.heartbeat.SendSoon, WriteTime: time.Duration(c.Runs.WriteTime), Counter: a.metrics,
			Log: a.log,
		}),
		store: a.store, metrics: a.metrics.Handler(), unready: a.unready, limits: c.Limits, log: a.log,
	}
	a.server = newServer(a.ctx, routes.handler(), a.splits.Leave, a.log)
	return nil
}

// startParts starts the goroutines of the node's parts.
func (a *Agent) startParts(c *Config) {
	a.drives.Start(a.ctx)
	a.server.serve(a.listeners.list)
	a.background(func(ctx context.Context) { sweep(ctx, a.splits, c.Runs.sweepInterval()) })
	a.background(a.heartbeat.Run)
	a.background(a.vocabularies.sweep)
	a.background(a.drives.RollOut)
}

// newIncarnation returns a name for this run of the node, which no earlier run had.
func newIncarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// background runs f until Close.
func (a *Agent) background(f func(ctx context.Context)) {
	a.running.Add(1)
	go func() {
		defer a.running.Done()
		f(a.ctx)
	}()
}

// sweep closes splits that no client requests, until ctx ends.
func sweep(ctx context.Context, table *splits.Table, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			table.Sweep(now)
		}
	}
}

// URLs are where the node is reached, best first.
func (a *Agent) URLs() []string { return a.listeners.urls }

// unready returns why the node takes no splits, or "" if it does.
func (a *Agent) unready() string {
	if a.drain.on() {
		return "draining"
	}
	return a.drives.Unready()
}

// Drain refuses new splits and waits until the open ones have ended, or ctx ends. The node goes on serving until Close.
func (a *Agent) Drain(ctx context.Context) error {
	a.drain.set(true)
	if err := a.splits.Settle(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// Close ends everything, open splits too, and closes the drives. Every call returns the same error.
func (a *Agent) Close() error {
	a.closeOnce.Do(func() {
		a.stop()
		a.splits.Close()
		serverErr := a.server.close()
		selectionsErr := a.selections.close()
		a.drives.Wait()
		a.running.Wait()
		a.toControl.CloseIdleConnections()
		a.toNodes.CloseIdleConnections()
		a.closeErr = errors.Join(serverErr, a.manager.Close(), a.metrics.Close(), a.vocabularies.close(), selectionsErr)
		a.log.Info("node closed", "node", a.name)
	})
	return a.closeErr
}
