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
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// connection is one of a target's: a queue of an association, once it has said Connect. One goroutine receives. Commands
// that may wait, for memory, an engine, a disk or an event, run in workers, as many as the queue is deep, which are started when they
// are needed and end with the connection.
type connection struct {
	target *Target
	nc     net.Conn
	log    *slog.Logger
	rx     *reader
	tx     pdu.Rules
	out    *outbox[message]
	born   time.Time
	peer   string // the address that the connection counts for where connections must make room

	// The target's mu guards these.
	state   state
	arrival uint64

	ctx    context.Context // ends with the connection: commands are given up
	cancel context.CancelFunc
	cutBy  atomic.Pointer[error] // why cut was called, nil for no fault

	// Of the queue; set by the receiving goroutine before anything runs.
	assoc  *association
	queue  uint16
	depth  int
	noFlow bool            // submission queue flow control is off
	auth   *auth.Responder // nil: the host need not authenticate
	authBy atomic.Int64    // when it must have, in nanoseconds; 0: no hurry
	// authBusy is whoever's turn it is with auth: the worker that does an authentication command, or the receiving goroutine.
	authBusy      atomic.Bool
	authenticates atomic.Bool // the queue may be used

	budget  budget
	free    chan *command
	made    int // commands there are; the receiving goroutine's
	jobs    chan *command
	workers sync.WaitGroup
	started int // workers; the receiving goroutine's

	inflight atomic.Int32 // commands taken and not yet answered
	busy     atomic.Int32 // commands taken and not yet settled, but for waiting event requests
	draining atomic.Bool

	sqhd uint16 // whoever writes has it

	mu    sync.Mutex
	tags  []*command // by transfer tag: those that wait for data
	asked time.Time  // when data was last asked for or came; zero while none is awaited
	wait  int        // commands that wait for data
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
		target: t, nc: nc, log: t.log.With("from", nc.RemoteAddr().String()), born: time.Now(), depth: 1,
		budget: budget{free: t.opt.ConnectionMemory}, free: make(chan *command, 2*controller.MaxDepth), jobs: make(chan *command),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.rx = newReader(nc, pdu.Rules{MaxData: uint32(max(t.opt.MaxH2CData, inCapsule))})
	c.out = newOutbox(nc, c.encode, c.settle)
	return c
}

// join makes the connection a queue of an association.
func (c *connection) join(a *association, req fabrics.Connect) {
	c.queue, c.depth, c.noFlow = req.Queue, int(req.Size)+1, req.Attributes&fabrics.DisableFlowControl != 0
	c.target.mu.Lock() // watch reads it
	c.assoc = a
	c.target.mu.Unlock()
}

// serve runs the connection until it ends.
func (c *connection) serve() {
	header, err := c.handshake()
	for err == nil {
		header, err = c.receive()
	}
	c.end(header, err)
}

// handshake does the initialisation of a connection.
func (c *connection) handshake() (header []byte, err error) {
	f, header, err := c.rx.next()
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
	c.rx.rules.HeaderDigest, c.rx.rules.DataDigest = req.HeaderDigest, req.DataDigest
	c.tx = pdu.Rules{HeaderDigest: req.HeaderDigest, DataDigest: req.DataDigest, Align: 4 * (int(req.Alignment) + 1)}
	resp := pdu.ICResp{HeaderDigest: req.HeaderDigest, DataDigest: req.DataDigest, MaxH2CData: uint32(c.target.opt.MaxH2CData)}
	return nil, c.out.post(message{raw: resp.Put(new([pdu.ICSize]byte))}, false)
}

// receive takes one PDU.
func (c *connection) receive() (header []byte, err error) {
	f, header, err := c.rx.next()
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

// end ends the connection after err: the other side is told where it broke the protocol, and whatever runs is ended.
func (c *connection) end(header []byte, err error) {
	c.rx.waiting()
	var breach *pdu.Error
	if errors.As(err, &breach) && header != nil {
		c.log.Warn("protocol error", "queue", c.queue, "error", err)
		if c.out.post(message{raw: pdu.Terminate(pdu.TypeC2HTermReq, breach, header)}, true) == nil {
			c.out.wait()
			c.lingerClose()
		}
	} else if p := c.cutBy.Load(); p != nil && *p != nil {
		c.logCut(*p)
	} else if err != nil && err != io.EOF && p == nil && !errors.Is(err, net.ErrClosed) {
		c.log.Info("connection ended", "queue", c.queue, "error", err)
	}
	c.cut(nil)
	a := c.assoc
	if a != nil {
		if c.queue == 0 {
			a.cutQueues(true)
		} else {
			a.leave(c)
		}
	}
	c.budget.end()
	close(c.jobs)
	c.workers.Wait()
	c.out.stop(net.ErrClosed)
	c.abandonWaiting()
	switch {
	case a == nil:
	case c.queue == 0:
		if err := a.end(); err != nil {
			c.log.Error("end association", "cntlid", a.ctrl.ID(), "error", err)
		}
		c.target.mu.Lock()
		delete(c.target.associations, associationKey{a.sub, a.ctrl.ID()})
		c.target.mu.Unlock()
		if n, ok := c.mayLogHost(); ok {
			c.log.Info("host disconnected", "host", a.host.NQN, "cntlid", a.ctrl.ID(), "suppressed", n)
		}
	default:
		a.left(c)
	}
}

// mayLogHost reports whether a line may say now that the host of the association comes or goes, and how many were left
// out. Hosts that have proven nothing come and go in floods.
func (c *connection) mayLogHost() (suppressed uint64, ok bool) {
	c.target.mu.Lock()
	proven := c.state == stateAdmitted
	c.target.mu.Unlock()
	if proven {
		return 0, true
	}
	return c.target.strangers.Allow()
}

// logCut says why the connection was cut off. Peers that are cut off for want of room or time come in floods, so those
// are counted.
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
	if c.assoc != nil {
		host = c.assoc.host.NQN
	}
	c.log.Warn("connection cut off", "queue", c.queue, "host", host, "error", why, "suppressed", suppressed)
}

// lingerClose lets the other side read what was written last: closing with bytes unread would throw it away.
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

// cut closes the connection under whatever it does. why is nil where it is nobody's fault.
func (c *connection) cut(why error) {
	c.cutBy.CompareAndSwap(nil, &why)
	c.cancel()
	_ = c.nc.Close()
}

// drain takes no more commands, and ends the connection when those that run are answered.
func (c *connection) drain() {
	c.draining.Store(true)
	if c.busy.Load() == 0 {
		c.cut(nil)
	}
}

// watch cuts the connection off where its other side made no progress, or fell silent.
func (c *connection) watch(now time.Time) {
	old := func(ns int64, most time.Duration) bool { return ns != 0 && now.UnixNano()-ns > int64(most) }
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	c.target.mu.Lock()
	a := c.assoc
	c.target.mu.Unlock()
	stall := c.target.opt.Stall
	switch {
	case old(c.rx.since.Load(), stall), old(c.out.since.Load(), stall), !asked.IsZero() && now.Sub(asked) > stall:
		c.cut(errStalled)
	case a == nil:
		if now.Sub(c.born) > c.target.opt.Handshake {
			c.cut(errHandshake)
		}
	case old(c.authBy.Load(), 0):
		c.cut(errUnauthenticated)
	case c.queue == 0 && a.ctrl.Expired(now) && !a.authenticating(c):
		a.ctrl.Fail(errKeepAlive.Error())
		c.cut(errKeepAlive)
	case a.sub.IsDiscovery() && a.kato == 0 && now.Sub(a.ctrl.LastSeen()) > DiscoveryIdle:
		c.cut(errIdle)
	}
}
