package tcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
)

// The defaults of DialOptions.
const (
	DefaultDepth          = controller.MaxDepth
	DefaultKeepAlive      = 15 * time.Second
	DefaultCommandTimeout = 30 * time.Second
	DefaultConnectTimeout = 10 * time.Second
	DefaultFirstDelay     = 100 * time.Millisecond
	DefaultLongestDelay   = 5 * time.Second
	DefaultGiveUp         = time.Minute
)

// ErrLost says that the connection was lost while the command ran. Whether the drive executed the command is not
// known. The drive's resources that the association held are gone, above all reserved memory; the next command waits
// for a new association.
var ErrLost = errors.New("the connection to the drive was lost while the command ran")

// ErrTimeout says that a command took longer than DialOptions.CommandTimeout. It has ended.
var ErrTimeout = errors.New("the command took too long")

// DialOptions describe a connection to a drive. Address and Subsystem are required; the zero value of every other field
// works.
type DialOptions struct {
	Address   string // host:port
	Subsystem string // NQN

	HostNQN string    // default nqn.2014-08.org.nvmexpress:uuid:HostID
	HostID  uuid.UUID // default random

	// Key is the host's key. The host authenticates with it where the drive demands it. With ControllerKey the host
	// demands that the drive authenticates too. The hashes and groups that are offered are those of auth.HostOptions where
	// none are given.
	Key, ControllerKey auth.Key
	AuthHashes         []auth.Hash
	AuthGroups         []auth.Group

	HeaderDigest, DataDigest bool
	NoFlowControl            bool // turn submission queue flow control off

	Queues int // I/O queues, a connection each, if the drive has as many; 0 means 1
	Depth  int // commands in an I/O queue, if the drive takes as many; 0 means DefaultDepth

	KeepAlive      time.Duration // 0 means DefaultKeepAlive; below 0 none
	CommandTimeout time.Duration // for a command to complete; 0 means DefaultCommandTimeout; below 0 none
	ConnectTimeout time.Duration // for an association to be made; 0 means DefaultConnectTimeout

	// A lost connection is made again: after FirstDelay, then after pauses of twice the length, at most LongestDelay, for
	// as long as GiveUp. After that every command fails. A negative GiveUp means that no attempt is made. 0 means the
	// defaults.
	FirstDelay, LongestDelay, GiveUp time.Duration

	// OnEvent is called with the asynchronous events of the drive, and must not wait. nil: the host requests no events.
	OnEvent func(nvme.AsyncEvent)

	// DialContext connects; nil means net.Dialer's DialContext.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	Logger *slog.Logger // connections lost and made; nil: no log
}

func (o *DialOptions) setDefaults() error {
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return fmt.Errorf("address %q: want HOST:PORT: %w", o.Address, err)
	}
	if err := fabrics.CheckNQN(o.Subsystem); err != nil {
		return fmt.Errorf("subsystem: %w", err)
	}
	if o.HostID == (uuid.UUID{}) {
		id, err := uuid.NewRandom()
		if err != nil {
			return fmt.Errorf("host identifier: %w", err)
		}
		o.HostID = id
	}
	if o.HostNQN == "" {
		o.HostNQN = "nqn.2014-08.org.nvmexpress:uuid:" + o.HostID.String()
	}
	if err := fabrics.CheckNQN(o.HostNQN); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	if !o.Key.IsZero() || !o.ControllerKey.IsZero() {
		if _, err := auth.NewHost(o.authentication()); err != nil {
			return err
		}
	}
	if o.Queues <= 0 {
		o.Queues = 1
	}
	if o.Depth <= 0 {
		o.Depth = DefaultDepth
	}
	o.Queues, o.Depth = min(o.Queues, 1<<10), min(max(o.Depth, 2), maxEntries)
	for _, d := range []struct {
		v    *time.Duration
		zero time.Duration
	}{
		{&o.KeepAlive, DefaultKeepAlive}, {&o.CommandTimeout, DefaultCommandTimeout}, {&o.ConnectTimeout,
			DefaultConnectTimeout},
		{&o.FirstDelay, DefaultFirstDelay}, {&o.LongestDelay, DefaultLongestDelay}, {&o.GiveUp, DefaultGiveUp},
	} {
		if *d.v == 0 {
			*d.v = d.zero
		}
	}
	if o.DialContext == nil {
		o.DialContext = new(net.Dialer).DialContext
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Stats count what an initiator has met since Dial.
type Stats struct {
	Reconnects   uint64 // associations made after the first
	Requeued     uint64 // commands sent again, as their connection was lost or their data arrived broken
	DigestErrors uint64 // data digests from the drive that did not match
	Aborted      uint64 // commands that were asked to end early, as their context or their time ended
}

// Host is a host's association with a subsystem over NVMe/TCP. When a connection is lost, a new association takes its
// place. Host implements nvme.Conn.
type Host struct {
	opt DialOptions
	log *slog.Logger

	reconnects, requeued, digests, aborts atomic.Uint64

	sequence auth.Sequence // It numbers the challenges to the drive.

	link   atomic.Pointer[link] // nil while there is none
	ctx    context.Context      // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // the supervisor has ended

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when link, closed or failed change
	closed  bool
	failed  error  // no more is tried
	made    uint64 // associations so far
	serial  string
}

var (
	_ nvme.Conn       = (*Host)(nil)
	_ nvme.Associated = (*Host)(nil)
)

// Dial connects to a subsystem. It tries once; a connection that is lost later is made again. The error wraps ErrLost
// if the drive accepted the connection and closed it before the association was made.
func Dial(ctx context.Context, o DialOptions) (*Host, error) {
	if err := o.setDefaults(); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	h := &Host{opt: o, log: o.Logger.With("subsystem", o.Subsystem, "address", o.Address), changed: make(chan struct{}),
		done: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	l, err := h.newAssociation(ctx)
	if err != nil {
		h.cancel()
		return nil, fmt.Errorf("connect to %s at %s: %w", o.Subsystem, o.Address, err)
	}
	h.link.Store(l)
	go h.supervise(l)
	return h, nil
}

// Stats returns the counts since Dial.
func (h *Host) Stats() Stats {
	return Stats{h.reconnects.Load(), h.requeued.Load(), h.digests.Load(), h.aborts.Load()}
}

// HostNQN returns the name under which the host connected.
func (h *Host) HostNQN() string { return h.opt.HostNQN }

// Admin implements nvme.Conn.
func (h *Host) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return h.sendCommand(ctx, 0, true, cmd, data)
}

// IO implements nvme.Conn.
func (h *Host) IO(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return h.sendCommand(ctx, 0, false, cmd, data)
}

// InAssociation implements nvme.Associated.
func (h *Host) InAssociation(n uint64) nvme.Conn { return &boundConn{h, n} }

// boundConn sends commands in one association of a host only.
type boundConn struct {
	host        *Host
	association uint64
}

// Admin implements nvme.Conn.
func (b *boundConn) Admin(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return b.host.sendCommand(ctx, b.association, true, cmd, data)
}

// IO implements nvme.Conn.
func (b *boundConn) IO(ctx context.Context, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	return b.host.sendCommand(ctx, b.association, false, cmd, data)
}

// Close implements nvme.Conn. The association is the host's to end.
func (b *boundConn) Close() error { return nil }

// digestRetries is how many times a command is sent again because a data digest did not match.
const digestRetries = 3

// sendCommand sends a command in the association of a number, or in any association if the number is 0.
func (h *Host) sendCommand(ctx context.Context, number uint64, admin bool, cmd *nvme.Command,
	data []byte) (nvme.Completion, error) {
	if err := ctx.Err(); err != nil {
		return nvme.Completion{}, withCommandName(cmd, err)
	}
	bound := number != 0
	for {
		l := h.link.Load()
		if bound && (l == nil || l.number != number) {
			if h.isClosed() {
				return nvme.Completion{}, withCommandName(cmd, nvme.ErrClosed)
			}
			return nvme.Completion{}, withCommandName(cmd,
				fmt.Errorf("%w, or before: it is for association %d, which is over", ErrLost, number))
		}
		if l == nil {
			var err error
			if l, err = h.awaitLinkAfter(ctx, nil); err != nil {
				return nvme.Completion{}, withCommandName(cmd, err)
			}
		}
		cpl, sent, err := h.sendOverLink(ctx, l, admin, cmd, data)
		switch {
		case err == nil:
			return cpl, nil
		case !errors.Is(err, errLinkLost):
			return cpl, withCommandName(cmd, err)
		case h.isClosed():
			return cpl, withCommandName(cmd, nvme.ErrClosed)
		case bound, sent && !idempotent(admin, cmd):
			return cpl, withCommandName(cmd, fmt.Errorf("%w: %w", ErrLost, l.endCause()))
		}
		if _, err := h.awaitLinkAfter(ctx, l); err != nil {
			return cpl, withCommandName(cmd, err)
		}
		if sent {
			h.requeued.Add(1)
		}
	}
}

// sendOverLink sends a command in one association. It sends the command again if its data arrived broken and the
// command can be repeated. sent reports whether the drive may have received it.
func (h *Host) sendOverLink(ctx context.Context, l *link, admin bool, cmd *nvme.Command, data []byte) (
	cpl nvme.Completion, sent bool, err error) {
	for broken := 0; ; broken++ {
		cpl, err = l.submitCommand(ctx, admin, cmd, data)
		sent = sent || !errors.Is(err, errUnsent)
		if broken == digestRetries || !errors.Is(err, nvme.TransientTransportError) || !idempotent(admin, cmd) &&
			(admin || !cs.Repeatable(cmd)) {
			return cpl, sent, err
		}
		h.requeued.Add(1)
	}
}

// withCommandName adds to an error which command it is about.
func withCommandName(cmd *nvme.Command, err error) error {
	return fmt.Errorf("command %02xh on namespace %d: %w", cmd.Opcode(), cmd.NSID(), err)
}

// idempotent reports whether a command may be executed twice, also in another association. Commands that use the
// drive's memory may not, because a new association holds none of it.
func idempotent(admin bool, cmd *nvme.Command) bool {
	blocks := cmd.NSID() == cs.NamespaceNVM || cmd.NSID() == nvme.AllNamespaces
	return (admin || blocks) && cmd.Idempotent(admin)
}

// Association implements nvme.Associated.
func (h *Host) Association(ctx context.Context) (uint64, error) {
	l := h.link.Load()
	if l == nil || l.endCause() != nil {
		var err error
		if l, err = h.awaitLinkAfter(ctx, l); err != nil {
			return 0, err
		}
	}
	return l.number, nil
}

func (h *Host) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// awaitLinkAfter returns a link other than old, as soon as there is one.
func (h *Host) awaitLinkAfter(ctx context.Context, old *link) (*link, error) {
	for {
		h.mu.Lock()
		changed, closed, failed := h.changed, h.closed, h.failed
		l := h.link.Load()
		h.mu.Unlock()
		switch {
		case closed:
			return nil, nvme.ErrClosed
		case failed != nil:
			return nil, failed
		case l != nil && l != old:
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the connection to be made again: %w", ctx.Err())
		}
	}
}

// Close implements nvme.Conn: it waits for the commands that run, shuts the controller down and ends the association.
// Further calls wait for the first and do nothing.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		<-h.done
		return nil
	}
	h.closed = true
	h.wakeWaiters()
	h.mu.Unlock()
	if l := h.link.Load(); l != nil {
		l.shutDownController()
		l.endWithCause(nvme.ErrClosed)
		<-l.dead
	}
	h.cancel()
	<-h.done
	return nil
}

// wakeWaiters wakes the goroutines that wait for a change. h.mu is held.
func (h *Host) wakeWaiters() {
	close(h.changed)
	h.changed = make(chan struct{})
}
