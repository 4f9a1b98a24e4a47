package tcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/lograte"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/buffer"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// Limits and times of a target when TargetOptions do not say.
const (
	DefaultMaxConnections   = 256
	DefaultMaxOpening       = 64
	DefaultMaxDiscovery     = 32
	DefaultUnauthenticated  = 16
	DefaultConnectionMemory = 8 << 20
	DefaultStall            = 30 * time.Second
	DefaultHandshake        = 10 * time.Second
	// DiscoveryIdle is the longest silence of a discovery association without keep alive.
	DiscoveryIdle = 2 * time.Minute
)

// inCapsule is the most data in a command capsule. Identify names it for I/O queues; the transport fixes it for the
// admin queue.
const inCapsule = 8192

// TargetOptions are a target's limits. The zero value works.
type TargetOptions struct {
	// Hosts lists the NQNs of the hosts that are served; nil means every host.
	Hosts []string

	// Auth, if not nil, makes the target demand of hosts that they authenticate.
	Auth *AuthOptions

	// MaxConnections bounds the queues whose host has authenticated, or need not; 0 means DefaultMaxConnections. Further
	// connections are refused.
	MaxConnections int
	// MaxOpening, MaxDiscovery and Unauthenticated bound, beside MaxConnections, the connections before Connect, those of
	// discovery associations, and those whose host must authenticate and has not. 0 means DefaultMaxOpening,
	// DefaultMaxDiscovery and DefaultUnauthenticated. The oldest connection makes room.
	MaxOpening, MaxDiscovery, Unauthenticated int
	// ConnectionMemory is the bytes of data buffers of a connection, at least the most data of one command; 0 means
	// DefaultConnectionMemory.
	ConnectionMemory int
	// MaxH2CData is the most data of an H2CData PDU, a multiple of 4 from 4096 on; 0 means the most data of a command.
	MaxH2CData int

	// Stall bounds how long a PDU, a write, or data that was requested may take; 0 means DefaultStall.
	Stall time.Duration
	// Handshake bounds how long a connection may take until Connect, and then to authenticate; 0 means DefaultHandshake.
	Handshake time.Duration

	Logger *slog.Logger // hosts that connect and disconnect, and breaches of the protocol; nil: no log
}

// Target serves subsystems over NVMe/TCP. It is safe for concurrent use.
type Target struct {
	opt  TargetOptions
	log  *slog.Logger
	pool buffer.Pool

	sequence  auth.Sequence // It numbers the challenges.
	exchanges chan struct{} // has a value for each authentication message that is worked on

	mu           sync.Mutex
	subsystems   map[string]*controller.Subsystem
	listeners    map[net.Listener]struct{}
	conns        map[*connection]struct{}
	held         [states]int // connections in each state
	arrivals     uint64      // connections that ever came
	associations map[associationKey]*association
	closing      bool
	quiet        *sync.Cond // a connection ended
	running      sync.WaitGroup
	done         chan struct{} // closed by Close: ends the watch

	refusals, evictions, strangers lograte.Limiter // They limit lines of the log.
}

type associationKey struct {
	sub *controller.Subsystem
	id  uint16
}

// ErrTargetClosed is returned by Serve after Shutdown or Close.
var ErrTargetClosed = errors.New("the target is closed")

// NewTarget makes a target without subsystems. Close it.
func NewTarget(opt TargetOptions) (*Target, error) {
	for _, h := range opt.Hosts {
		if err := fabrics.CheckNQN(h); err != nil {
			return nil, fmt.Errorf("new target: allow-list: %w", err)
		}
	}
	if err := opt.Auth.checkEntries(); err != nil {
		return nil, fmt.Errorf("new target: %w", err)
	}
	if opt.MaxH2CData == 0 {
		opt.MaxH2CData = controller.MDTS
	}
	if opt.MaxH2CData < pdu.MinMaxH2CData || opt.MaxH2CData%4 != 0 || opt.MaxH2CData > controller.MDTS {
		return nil, fmt.Errorf("new target: MaxH2CData %d: want a multiple of 4 from %d to %d", opt.MaxH2CData,
			pdu.MinMaxH2CData, controller.MDTS)
	}
	for _, n := range []struct {
		value *int
		none  int
	}{
		{&opt.MaxConnections, DefaultMaxConnections}, {&opt.MaxOpening, DefaultMaxOpening},
		{&opt.MaxDiscovery, DefaultMaxDiscovery}, {&opt.Unauthenticated, DefaultUnauthenticated},
	} {
		if *n.value <= 0 {
			*n.value = n.none
		}
	}
	if opt.ConnectionMemory <= 0 {
		opt.ConnectionMemory = DefaultConnectionMemory
	}
	opt.ConnectionMemory = max(opt.ConnectionMemory, controller.MDTS)
	if opt.Stall <= 0 {
		opt.Stall = DefaultStall
	}
	if opt.Handshake <= 0 {
		opt.Handshake = DefaultHandshake
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Target{
		opt: opt, log: opt.Logger, subsystems: map[string]*controller.Subsystem{}, listeners: map[net.Listener]struct{}{},
		conns: map[*connection]struct{}{}, associations: map[associationKey]*association{}, done: make(chan struct{}),
		exchanges: make(chan struct{}, opt.Auth.mostExchanges()),
	}
	t.quiet = sync.NewCond(&t.mu)
	t.running.Add(1)
	go t.endSilentConnections()
	return t, nil
}

// Add makes a subsystem reachable under its NQN.
func (t *Target) Add(s *controller.Subsystem) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := fabrics.CheckNQN(s.NQN()); err != nil {
		return fmt.Errorf("serve subsystem: %w", err)
	}
	if t.subsystems[s.NQN()] != nil {
		return fmt.Errorf("serve subsystem: there is one with NQN %s already", s.NQN())
	}
	t.subsystems[s.NQN()] = s
	return nil
}

// Serve accepts connections from a listener until the target is closed, and closes the listener. Several listeners may
// be served at once. The error is ErrTargetClosed, or the listener's.
func (t *Target) Serve(l net.Listener) error {
	t.mu.Lock()
	if t.closing {
		t.mu.Unlock()
		return errors.Join(ErrTargetClosed, l.Close())
	}
	t.listeners[l] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.listeners, l)
		t.mu.Unlock()
		_ = l.Close()
	}()
	const longest = time.Second
	for wait := time.Duration(0); ; {
		nc, err := l.Accept()
		if err == nil {
			wait = 0
			t.acceptConnection(nc)
			continue
		}
		t.mu.Lock()
		closing := t.closing
		t.mu.Unlock()
		var temporary interface{ Temporary() bool }
		switch {
		case closing:
			return ErrTargetClosed
		case !errors.As(err, &temporary) || !temporary.Temporary():
			return fmt.Errorf("accept connections at %s: %w", l.Addr(), err)
		}
		// There are no file descriptors left, or the like: connections that exist continue.
		wait = min(max(2*wait, time.Millisecond), longest)
		t.log.Error("accept connections", "address", l.Addr().String(), "error", err, "again_in", wait)
		select {
		case <-time.After(wait):
		case <-t.done:
			return ErrTargetClosed
		}
	}
}

// allowsHost reports whether a host is on the allow-list.
func (t *Target) allowsHost(hostNQN string) bool {
	return t.opt.Hosts == nil || slices.Contains(t.opt.Hosts, hostNQN)
}

// endSilentConnections ends connections whose other side fell silent.
func (t *Target) endSilentConnections() {
	defer t.running.Done()
	tick := time.NewTicker(min(t.opt.Stall/4, t.opt.Handshake/4, time.Second/4))
	defer tick.Stop()
	for {
		select {
		case <-t.done:
			return
		case now := <-tick.C:
			for _, c := range t.allConnections() {
				c.checkProgress(now)
			}
		}
	}
}

func (t *Target) allConnections() []*connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*connection, 0, len(t.conns))
	for c := range t.conns {
		all = append(all, c)
	}
	return all
}

// stopListening makes Serve return.
func (t *Target) stopListening() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
	for l := range t.listeners {
		_ = l.Close()
	}
}

// Shutdown ends the target in order: it accepts no connection and no command any more, commands that run complete and
// are answered, then the connections end. It waits for that until ctx ends, returns the error of ctx then, and closes
// the target in any case.
func (t *Target) Shutdown(ctx context.Context) error {
	t.stopListening()
	stop := context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.quiet.Broadcast()
	})
	defer stop()
	// An association ends with its admin queue, so that comes last.
	left := t.drainConnections(ctx, func(c *connection) bool { return c.association == nil || c.queue != 0 })
	left += t.drainConnections(ctx, func(*connection) bool { return true })
	err := t.Close()
	if left > 0 {
		return errors.Join(fmt.Errorf("shut down the target: connections had to be cut off, commands still ran: %w",
			ctx.Err()), err)
	}
	return err
}

// drainConnections ends the connections that which chooses, in order, and returns how many had not ended when ctx
// ended.
func (t *Target) drainConnections(ctx context.Context, which func(*connection) bool) int {
	chosen := func() (cs []*connection) { // t.mu is held
		for c := range t.conns {
			if which(c) {
				cs = append(cs, c)
			}
		}
		return cs
	}
	t.mu.Lock()
	cs := chosen()
	t.mu.Unlock()
	for _, c := range cs {
		c.drainCommands()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(chosen()) > 0 && ctx.Err() == nil {
		t.quiet.Wait()
	}
	return len(chosen())
}

// Close ends the target at once: connections are closed, and commands that run are cancelled and waited for. Further
// calls do nothing.
func (t *Target) Close() error {
	t.stopListening()
	for _, c := range t.allConnections() {
		c.cutConnection(nil)
	}
	t.mu.Lock()
	select {
	case <-t.done:
	default:
		close(t.done)
	}
	t.mu.Unlock()
	t.running.Wait()
	return nil
}
