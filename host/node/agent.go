package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/heartbeat"
	"github.com/millrace/millrace/host/node/partitions"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/internal/admission"
	"github.com/millrace/millrace/internal/httpbody"
	"github.com/millrace/millrace/sdk"
)

// Options are what a program gives an agent beside its configuration. The zero value works.
type Options struct {
	Logger   *slog.Logger         // nil: silent
	Registry *prometheus.Registry // metrics are registered there, and served at /metrics; nil: one of the agent's own
	Version  string               // of the program, told to the control plane
	// Probe is how often a drive is asked whether it is there, and how busy it was; 0 means a second.
	Probe time.Duration
	// Device changes how a drive is opened, in tests.
	Device func(drive string, o *sdk.DeviceOptions)

	wrap func(splits.Opener) splits.Opener // puts faults into workers, in tests
}

func (o *Options) probe() time.Duration {
	if o.Probe > 0 {
		return o.Probe
	}
	return time.Second
}

// Agent is a running node.
type Agent struct {
	config      Config
	o           Options
	log         *slog.Logger
	incarnation string
	manager     *host.Manager
	runs        *splits.Table
	drives      []*supervisor // as configured
	heartbeat   *heartbeat.Sender
	images      *deployer
	metrics     *metrics
	client      *http.Client // towards other nodes
	tickets     *ticket.Verifier
	refusals    seldom // of tickets, in the log
	unknownKeys seldom // of tickets, that are worth a heartbeat
	server      *http.Server
	listeners   []net.Listener
	urls        []string // as told to the control plane
	reached     []string // as listened at
	peers       sync.Map // of net.Conn: *splits.Peer

	ctx  context.Context // ended by Close
	stop context.CancelFunc
	wg   sync.WaitGroup

	fence     *heartbeat.Fence
	store     *partitions.Store
	preparing sync.Mutex // held while a job is prepared or finished

	mu       sync.Mutex // guards what follows, and what supervisors say
	draining bool
	closing  bool
	closed   chan struct{}
	closeErr error
}

// Start opens the drives, listens, and serves until Close. Drives that do not open are tried again and again: the node serves the others
// meanwhile. Errors are of the configuration, the identity and the listeners.
func Start(ctx context.Context, c Config, o Options) (*Agent, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	want, err := readImage(c.Image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	a := &Agent{config: c, o: o, log: o.Logger, incarnation: newIncarnation(), closed: make(chan struct{})}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.tickets = ticket.NewVerifier(c.Name, a.incarnation, time.Now)
	a.fence = heartbeat.OpenFence(c.StateDir, a.log)
	rates := ""
	if c.StateDir != "" {
		rates = filepath.Join(c.StateDir, "rates.json")
	}
	if a.manager, err = host.NewManager(host.Options{Logger: a.log, MeasureTime: time.Duration(c.Measure), Rates: rates}); err != nil {
		return nil, err
	}
	if a.client, err = identity.HTTPClient(c.identity()); err != nil {
		return nil, err
	}
	a.store = partitions.New(partitions.Options{
		Drive: a.drive, Client: a.client, StateDir: c.StateDir, WriteTime: time.Duration(c.Runs.WriteTime), Changed: func() { a.heartbeat.SendSoon() }, Log: a.log,
	})
	open := splits.Opener(a.manager.Open)
	if o.wrap != nil {
		open = o.wrap(open)
	}
	a.runs = splits.New(splits.Options{
		Open: open, Failed: a.failed, Log: a.log, Fence: a.fence.Get, NodeBytes: int64(c.Buffers.Node), JobBytes: int64(c.Buffers.Job),
		OwnerBytes: c.Buffers.owner(), OwnerSplits: c.Limits.OwnerSplits,
		Idle: time.Duration(c.Runs.Idle), Abandoned: time.Duration(c.Runs.Abandoned), BusyWait: time.Duration(c.Runs.BusyWait),
	})
	registry := o.Registry
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	if a.metrics, err = newMetrics(a, registry); err != nil {
		return nil, err
	}
	conf, err := c.identity().Server()
	if err != nil {
		return nil, err
	}
	if err := a.listen(ctx, conf); err != nil {
		return nil, errors.Join(err, a.closeListeners())
	}
	a.ctx, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	a.heartbeat = heartbeat.New(a.heartbeatOptions())
	a.images = &deployer{agent: a, want: want, kick: make(chan struct{}, 1)}
	for _, d := range c.Drives {
		v := &supervisor{agent: a, config: d, faults: make(chan error, 1), done: make(chan struct{}), state: "opening"}
		a.drives = append(a.drives, v)
		a.runs.SendAway(d.Name, fmt.Errorf("drive %s: %w: it is being opened", d.Name, ErrUnavailable))
	}
	a.metrics.health.watchCommands(c.Drives)
	for _, v := range a.drives {
		go v.run(a.ctx)
	}
	a.serve()
	a.background(a.sweep)
	a.background(a.heartbeat.Run)
	a.background(a.images.run)
	a.log.Info("node", "node", c.Name, "urls", strings.Join(a.urls, " "), "drives", len(c.Drives), "incarnation", a.incarnation)
	return a, nil
}

func newIncarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// background runs f until Close.
func (a *Agent) background(f func(ctx context.Context)) {
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		f(a.ctx)
	}()
}

// sweep closes runs that nobody asks of.
func (a *Agent) sweep(ctx context.Context) {
	every := min(time.Duration(a.config.Runs.Abandoned), time.Duration(a.config.Runs.Idle), 4*time.Second) / 4
	t := time.NewTicker(max(every, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			a.runs.Sweep(now)
		}
	}
}

// listen opens the listeners and settles the URLs.
func (a *Agent) listen(ctx context.Context, conf *tls.Config) error {
	scheme := "http://"
	if conf != nil {
		scheme = "https://"
	}
	for _, addr := range a.config.Listen {
		l, err := identity.Listen(ctx, addr, conf != nil, a.config.InsecureNetwork)
		if err != nil {
			return err
		}
		a.listeners = append(a.listeners, l)
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			if path, err = filepath.Abs(path); err != nil {
				return err
			}
			a.urls = append(a.urls, "unix:"+path)
			continue
		}
		a.urls = append(a.urls, scheme+l.Addr().String())
	}
	a.reached = a.urls
	if len(a.config.Advertise) > 0 {
		a.urls = a.config.Advertise
	}
	files, err := admission.RaiseFiles()
	if err != nil {
		a.log.Warn("the process has fewer file descriptors than it might", "error", err)
	}
	// Connections leave file descriptors to drives and files.
	limit := admission.NewLimit(admission.Connections(a.config.Limits.Connections, files), a.log)
	for i, l := range a.listeners {
		l = limit.Listen(l)
		if _, unix := l.Addr().(*net.UnixAddr); conf != nil && !unix {
			l = tls.NewListener(l, conf)
		}
		a.listeners[i] = l
	}
	return nil
}

// serve starts the HTTP server.
func (a *Agent) serve() {
	a.server = &http.Server{
		Handler:           a.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      24 * time.Hour, // each response sets its own; this ends what they left on the connection
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    apiv1.MaxPartitionHeader + 16<<10,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return a.ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			p := &splits.Peer{}
			a.peers.Store(c, p)
			return context.WithValue(ctx, peerKey{}, p)
		},
		ConnState: func(c net.Conn, s http.ConnState) {
			if s != http.StateClosed && s != http.StateHijacked {
				return
			}
			if p, ok := a.peers.LoadAndDelete(c); ok {
				a.runs.Leave(p.(*splits.Peer))
			}
		},
	}
	for _, l := range a.listeners {
		a.background(func(context.Context) {
			if err := a.server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				a.log.Error("serve", "address", l.Addr().String(), "error", err)
			}
		})
	}
}

// peerKey is where a request's context has its connection.
type peerKey struct{}

// handler is everything that the node serves.
func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	path, rpc := apiv1connect.NewNodeHandler(&service{a: a}, connect.WithReadMaxBytes(int(a.config.Limits.RequestBytes)), connect.WithInterceptors(a.interceptor()),
		connect.WithRecover(func(_ context.Context, s connect.Spec, _ http.Header, p any) error {
			a.log.Error("a call panicked", "procedure", s.Procedure, "panic", p)
			return connect.NewError(connect.CodeInternal, fmt.Errorf("%s panicked", s.Procedure))
		}))
	messages := httpbody.NewBudget(int64(a.config.Limits.RequestMemory)).Messages(httpbody.MessageOptions{
		Most: func(string) int64 { return int64(a.config.Limits.RequestBytes) }, Peer: caller, Logger: a.log,
	}, rpc)
	mux.Handle(path, httpbody.Within(httpbody.Time, withTLS(messages)))
	mux.HandleFunc("GET /v1/minibatch", a.plain(mayTrain, a.serveMiniBatch))
	mux.HandleFunc("GET /v1/partitions/", a.plain(mayCopy, a.store.Serve))
	mux.HandleFunc("PUT /v1/partitions/", a.plain(mayOperate, a.store.Take))
	mux.HandleFunc("GET /readyz", a.serveReady)
	mux.Handle("GET /metrics", a.metrics.handler())
	return newLimiter(a.config.Limits.RequestsPerSecond).wrap(mux)
}

// failed passes a stream's failure on to the drive's supervisor.
func (a *Agent) failed(drive string, err error) {
	if v := a.supervisor(drive); v != nil {
		v.fault(err)
	}
}

func (a *Agent) supervisor(drive string) *supervisor {
	for _, v := range a.drives {
		if v.config.Name == drive {
			return v
		}
	}
	return nil
}

// URLs are where the node is reached, best first.
func (a *Agent) URLs() []string { return a.urls }

// Drain refuses new splits and waits until those that run have ended, or ctx ends. The node goes on serving; Close ends it.
func (a *Agent) Drain(ctx context.Context) error {
	a.setDraining(true)
	if err := a.runs.Settle(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

func (a *Agent) setDraining(on bool) {
	a.mu.Lock()
	was := a.draining
	a.draining = on
	a.mu.Unlock()
	a.runs.Drain(on)
	if was != on {
		a.log.Info("draining", "from", was, "to", on)
		a.heartbeat.SendSoon()
	}
}

func (a *Agent) closeListeners() error {
	var errs []error
	for _, l := range a.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Close ends everything, running splits too, and closes the drives.
func (a *Agent) Close() error {
	a.mu.Lock()
	again := a.closing
	a.closing = true
	a.mu.Unlock()
	if again {
		<-a.closed
		return a.closeErr
	}
	a.stop()
	a.runs.Close()
	a.closeErr = a.server.Close()
	for _, v := range a.drives {
		<-v.done
	}
	a.wg.Wait()
	a.client.CloseIdleConnections()
	a.closeErr = errors.Join(a.closeErr, a.manager.Close(), a.metrics.health.close())
	close(a.closed)
	a.log.Info("node closed", "node", a.config.Name)
	return a.closeErr
}
