package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/buffer"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// connection is a connection of a target. After Connect it is a queue of an association. One goroutine receives.
// Commands that may wait for memory, an engine, a disk or an event run in goroutines of their own, the runners. A
// connection starts runners when it needs them, at most as many as there are commands; they end with the connection.
type connection struct {
	target   *Target
	nc       net.Conn
	log      *slog.Logger
	rx       *stream.Reader
	tx       pdu.Rules
	out      *stream.Outbox[message]
	accepted time.Time
	peer     string // the address that the connection counts for where connections must make room

	// The target's mu guards these.
	state   state
	arrival uint64

	ctx    context.Context // ends with the connection, and with it the commands that run
	cancel context.CancelFunc
	cutBy  atomic.Pointer[error] // why cutConnection was called; nil where there was no fault

	// These describe the queue. The receiving goroutine sets them before any command runs.
	association   *association
	queue         uint16
	depth         int
	noFlowControl bool             // the host turned submission queue flow control off
	auth          *auth.Responder  // nil: the host need not authenticate
	authenticates stream.Stopwatch // runs while the host must authenticate
	authBusy      atomic.Bool      // an authentication command is worked on: its runner owns auth
	usable        atomic.Bool      // the host has authenticated

	budget   *buffer.Budget
	free     chan *command // commands that no request uses
	commands int           // commands that were made; the receiving goroutine's
	runnable chan *command
	runners  sync.WaitGroup
	started  int // runners that were started; the receiving goroutine's

	unanswered atomic.Int32 // commands that were received and not answered yet
	unsettled  atomic.Int32 // commands that were received and not settled yet, without waiting event requests
	draining   atomic.Bool

	queueHead uint16 // SQHD; the goroutine that writes owns it

	mu            sync.Mutex
	tags          []*command // by transfer tag: the commands that wait for data
	awaitingSince time.Time  // when data was last requested or received; zero while no command waits for data
	awaitingData  int        // commands that wait for data
}

// Reasons to cut a connection.
var (
	errStalled   = errors.New("it made no progress for too long")
	errHandshake = errors.New("it did not connect to a queue in time")
	errKeepAlive = errors.New("the host's keep alive timer expired")
	errIdle      = errors.New("a discovery association was idle for too long")
)

func newConnection(t *Target, nc net.Conn) *connection {
	c := &connection{
		target: t, nc: nc, log: t.log.With("from", nc.RemoteAddr().String()), accepted: time.Now(), depth: 1,
		budget: buffer.NewBudget(t.opt.ConnectionMemory), free: make(chan *command, 2*controller.MaxDepth),
		runnable: make(chan *command),
	}
	c.authenticates.Init()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.rx = stream.NewReader(nc, pdu.Rules{MaxData: uint32(max(t.opt.MaxH2CData, inCapsule))})
	c.out = stream.NewOutbox(nc, c.encodeMessage, c.settleMessage)
	return c
}

// becomeQueue makes the connection a queue of an association. The answers to earlier Connects, which were refused, are
// written before: their writer reads what join sets.
func (c *connection) becomeQueue(a *association, req fabrics.Connect) {
	c.out.AwaitWritten()
	c.queue, c.depth, c.noFlowControl = req.Queue, int(req.Size)+1, req.Attributes&fabrics.DisableFlowControl != 0
	c.target.mu.Lock() // watch reads it
	c.association = a
	c.target.mu.Unlock()
}

// serveUntilEnd runs the connection until it ends.
func (c *connection) serveUntilEnd() {
	header, err := c.handshake()
	for err == nil {
		header, err = c.receivePDU()
	}
	c.endConnection(header, err)
}

// handshake initialises the connection: it receives ICReq and sends ICResp.
func (c *connection) handshake() (header []byte, err error) {
	f, header, err := c.rx.NextPDU()
	if err != nil {
		return header, err
	}
	if f.Type != pdu.TypeICReq {
		return header, &pdu.Error{Status: pdu.FatalSequence, Why: fmt.Sprintf("the first PDU is a %s, not an ICReq", f.Type)}
	}
	req, err := pdu.ParseICReq((*[pdu.ICSize]byte)(header))
	if err != nil {
		return header, err
	}
	c.rx.Rules.HeaderDigest, c.rx.Rules.DataDigest = req.HeaderDigest, req.DataDigest
	c.tx = pdu.Rules{HeaderDigest: req.HeaderDigest, DataDigest: req.DataDigest, Align: 4 * (int(req.Alignment) + 1)}
	resp := pdu.ICResp{HeaderDigest: req.HeaderDigest, DataDigest: req.DataDigest,
		MaxH2CData: uint32(c.target.opt.MaxH2CData)}
	return nil, c.out.Queue(message{raw: resp.Put(new([pdu.ICSize]byte))}, false)
}

// receivePDU takes one PDU.
func (c *connection) receivePDU() (header []byte, err error) {
	f, header, err := c.rx.NextPDU()
	if err != nil {
		return header, err
	}
	switch f.Type {
	case pdu.TypeCapsuleCmd:
		return header, c.receiveCommand(&f, header)
	case pdu.TypeH2CData:
		return header, c.receiveData(&f, header)
	case pdu.TypeH2CTermReq:
		return nil, fmt.Errorf("the host ended the connection: %w", pdu.ParseTerminate(header))
	case pdu.TypeICReq:
		return header, &pdu.Error{Status: pdu.FatalSequence, Why: "a second ICReq"}
	}
	return header, pdu.Invalid(0, "a %s from a host", f.Type)
}

// endConnection ends the connection after err. If err is a breach of the protocol, the host is sent a termination
// request that names it. Commands that run are cancelled.
func (c *connection) endConnection(header []byte, err error) {
	c.rx.ExpectNoProgress()
	var breach *pdu.Error
	if errors.As(err, &breach) && header != nil {
		c.log.Warn("protocol error", "queue", c.queue, "error", err)
		if c.out.Queue(message{raw: pdu.Terminate(pdu.TypeC2HTermReq, breach, header)}, true) == nil {
			c.out.AwaitWritten()
			c.lingerClose()
		}
	} else if p := c.cutBy.Load(); p != nil && *p != nil {
		c.logCut(*p)
	} else if err != nil && !errors.Is(err, io.EOF) && p == nil && !errors.Is(err, net.ErrClosed) {
		c.log.Info("connection ended", "queue", c.queue, "error", err)
	}
	c.cutConnection(nil)
	a := c.association
	if a != nil {
		if c.queue == 0 {
			a.cutQueues(true)
		} else {
			a.endQueueOf(c)
		}
	}
	c.budget.End()
	close(c.runnable)
	c.runners.Wait()
	c.out.Stop(net.ErrClosed)
	c.abandonWaiting()
	switch {
	case a == nil:
	case c.queue == 0:
		if err := a.endController(); err != nil {
			c.log.Error("end association", "cntlid", a.ctrl.ID(), "error", err)
		}
		c.target.mu.Lock()
		delete(c.target.associations, associationKey{a.sub, a.ctrl.ID()})
		c.target.mu.Unlock()
		if n, ok := c.mayLogHost(); ok {
			c.log.Info("host disconnected", "host", a.host.NQN, "cntlid", a.ctrl.ID(), "suppressed", n)
		}
	default:
		a.noteQueueEnded(c)
	}
}

// mayLogHost reports whether the log may have a line now for a host that comes or goes, and how many lines were
// suppressed before. Hosts that have not authenticated come and go in floods.
func (c *connection) mayLogHost() (suppressed uint64, ok bool) {
	c.target.mu.Lock()
	proven := c.state == stateAdmitted
	c.target.mu.Unlock()
	if proven {
		return 0, true
	}
	return c.target.strangers.Allow()
}

// logCut logs why the connection was cut off. Connections that are cut off for want of room or time come in floods:
// their lines are limited, and the number of suppressed lines is logged.
func (c *connection) logCut(why error) {
	var suppressed uint64
	if errors.Is(why, errEvicted) || errors.Is(why, errHandshake) || errors.Is(why, errUnauthenticated) {
		n, ok := c.target.evictions.Allow()
		if !ok {
			return
		}
		suppressed = n
	}
	host := ""
	if c.association != nil {
		host = c.association.host.NQN
	}
	c.log.Warn("connection cut off", "queue", c.queue, "host", host, "error", why, "suppressed", suppressed)
}

// lingerClose lets the other side read the last bytes that were written. Closing a connection that has unread bytes
// would discard them.
func (c *connection) lingerClose() {
	const (
		longest = time.Second
		most    = 1 << 20
	)
	if w, ok := c.nc.(interface{ CloseWrite() error }); ok && w.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(longest))
		_, _ = io.CopyN(io.Discard, c.nc, most)
	}
}

// cutConnection closes the connection in any state. why is nil where no side is at fault.
func (c *connection) cutConnection(why error) {
	c.cutBy.CompareAndSwap(nil, &why)
	c.cancel()
	_ = c.nc.Close()
}

// drainCommands receives no more commands, and closes the connection when the commands that run are answered.
func (c *connection) drainCommands() {
	c.draining.Store(true)
	if c.unsettled.Load() == 0 {
		c.cutConnection(nil)
	}
}

// checkProgress cuts the connection off if the host made no progress or fell silent.
func (c *connection) checkProgress(now time.Time) {
	c.mu.Lock()
	asked := c.awaitingSince
	c.mu.Unlock()
	c.target.mu.Lock()
	a := c.association
	c.target.mu.Unlock()
	stall := c.target.opt.Stall
	switch {
	case c.rx.Awaits.Exceeds(stall, now), c.out.Writing.Exceeds(stall, now), !asked.IsZero() && now.Sub(asked) > stall:
		c.cutConnection(errStalled)
	case a == nil:
		if now.Sub(c.accepted) > c.target.opt.Handshake {
			c.cutConnection(errHandshake)
		}
	case c.authenticates.Exceeds(c.target.opt.Handshake, now):
		c.cutConnection(errUnauthenticated)
	case c.queue == 0 && a.ctrl.Expired(now) && !a.authenticating(c):
		a.ctrl.Fail(errKeepAlive.Error())
		c.cutConnection(errKeepAlive)
	case a.sub.IsDiscovery() && a.kato == 0 && now.Sub(a.ctrl.LastSeen()) > DiscoveryIdle:
		c.cutConnection(errIdle)
	}
}
