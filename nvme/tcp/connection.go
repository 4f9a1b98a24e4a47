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

	"github.com/millrace/millrace/nvme"
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
		c.log.Warn("connection cut off", "queue", c.queue, "why", (*p).Error())
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
		c.log.Info("host disconnected", "host", a.host.NQN, "cntlid", a.ctrl.ID())
	default:
		a.left(c)
	}
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
	case c.queue == 0 && a.ctrl.Expired(now):
		a.ctrl.Fail(errKeepAlive.Error())
		c.cut(errKeepAlive)
	case a.sub.IsDiscovery() && a.kato == 0 && now.Sub(a.ctrl.LastSeen()) > DiscoveryIdle:
		c.cut(errIdle)
	}
}

// receiveData takes an H2CData PDU.
func (c *connection) receiveData(f *pdu.Frame, header []byte) error {
	d, err := pdu.ParseData(f, header)
	if err != nil {
		return err
	}
	c.mu.Lock()
	var cmd *command
	if int(d.Tag) < len(c.tags) {
		cmd = c.tags[d.Tag]
	}
	c.mu.Unlock()
	switch {
	case cmd == nil:
		return pdu.Invalid(10, "H2CData with transfer tag %d, which is not asked for", d.Tag)
	case d.CID != cmd.cmd.CID():
		return pdu.Invalid(8, "H2CData of command %d with the tag of command %d", d.CID, cmd.cmd.CID())
	case f.Data > uint32(c.target.opt.MaxH2CData):
		return &pdu.Error{Status: pdu.FatalLimit, Info: 16, Why: fmt.Sprintf("H2CData of %d bytes where MAXH2CDATA is %d", f.Data, c.target.opt.MaxH2CData)}
	case d.Offset != cmd.got || uint64(d.Offset)+uint64(d.Length) > uint64(len(cmd.data)):
		return &pdu.Error{Status: pdu.FatalRange, Info: 12, Why: fmt.Sprintf("H2CData %d+%d where %d of %d bytes have come", d.Offset, d.Length, cmd.got, len(cmd.data))}
	}
	last := d.Offset+d.Length == uint32(len(cmd.data))
	if (f.Flags&pdu.FlagLast != 0) != last {
		return pdu.Invalid(1, "H2CData %d+%d of %d bytes: the last-PDU flag is wrong", d.Offset, d.Length, len(cmd.data))
	}
	intact, err := c.rx.data(f, cmd.data[d.Offset:d.Offset+d.Length])
	if err != nil {
		return err
	}
	cmd.got += d.Length
	cmd.broken = cmd.broken || !intact
	c.mu.Lock()
	c.asked = time.Now()
	if last {
		c.tags[d.Tag] = nil
		if c.wait--; c.wait == 0 {
			c.asked = time.Time{}
		}
	}
	c.mu.Unlock()
	if last {
		c.run(cmd)
	}
	return nil
}

// receiveCommand takes a command capsule.
func (c *connection) receiveCommand(f *pdu.Frame, header []byte) error {
	if f.Data > inCapsule {
		return &pdu.Error{Status: pdu.FatalLimit, Info: 4, Why: fmt.Sprintf("%d bytes of data in a capsule, which holds %d", f.Data, inCapsule)}
	}
	if c.draining.Load() {
		return c.rx.skip(f)
	}
	entry := pdu.CommandOf(header)
	if n := int(c.inflight.Add(1)); n > c.depth {
		return &pdu.Error{Status: pdu.FatalLimit, Why: fmt.Sprintf("%d commands in a queue of %d", n, c.depth)}
	}
	cmd, err := c.take()
	if err != nil {
		return err
	}
	cmd.cmd = entry
	if !cmd.isEvent(c.queue) {
		c.busy.Add(1)
	}
	sgl := entry.SGL()
	if f.Data > 0 {
		cmd.hold(c.target.pool.get(int(f.Data)), int(f.Data))
		intact, err := c.rx.data(f, cmd.data)
		if err != nil {
			c.settle(&message{cmd: cmd}, err)
			return err
		}
		cmd.broken = !intact
	}
	capsule := sgl.Type == nvme.SGLDataBlockOffset
	var st nvme.Status
	switch {
	case entry.PSDT() != 1:
		st = nvme.InvalidField
	case f.Data > 0 && !capsule:
		st = nvme.InvalidSGLType
	case capsule && sgl.Address != 0:
		st = nvme.InvalidSGLOffset
	case capsule && sgl.Length != f.Data:
		st = nvme.InvalidSGLLength
	}
	switch {
	case !st.OK():
		return c.refuse(cmd, st.Final())
	case cmd.broken:
		return c.refuse(cmd, nvme.TransientTransportError)
	case entry.Opcode() == fabrics.Opcode:
		return c.fabrics(cmd)
	case c.assoc == nil:
		return c.refuse(cmd, nvme.CommandSequenceError.Final())
	case !c.authenticated():
		return c.refuse(cmd, fabrics.AuthRequired|nvme.StatusDNR)
	}
	if cmd.want, st = c.assoc.ctrl.Parse(c.queue, &cmd.cmd); !st.OK() {
		return c.refuse(cmd, st)
	}
	switch {
	case capsule && f.Data > 0 && cmd.want.Direction != nvme.HostToController: // data with a command that takes none
		return c.refuse(cmd, nvme.InvalidField.Final())
	case cmd.want.Direction == nvme.HostToController && !capsule && c.budget.try(int(cmd.want.Length)):
		c.ask(cmd, (*outbox[message]).postMessage)
		return nil
	}
	c.run(cmd)
	return nil
}

// take returns a command that nothing uses, waiting until the other side has read its answers.
func (c *connection) take() (*command, error) {
	select {
	case cmd := <-c.free:
		return cmd, nil
	default:
	}
	if c.made < 2*c.depth {
		c.made++
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tags = append(c.tags, nil)
		return &command{tag: uint16(len(c.tags) - 1)}, nil
	}
	c.rx.waiting()
	select {
	case cmd := <-c.free:
		return cmd, nil
	case <-c.ctx.Done():
		return nil, net.ErrClosed
	}
}

// fabrics does a Fabrics command. None of them waits.
func (c *connection) fabrics(cmd *command) error {
	e := &cmd.cmd
	var result uint64
	st := nvme.Success
	kind := fabrics.Type(e)
	offset, size, value := fabrics.ParseProperty(e)
	switch {
	case kind == fabrics.TypeConnect:
		if e.SGL().Type != nvme.SGLDataBlockOffset {
			st = nvme.InvalidSGLType.Final()
			break
		}
		var dw0 uint32
		dw0, st = c.connect(fabrics.ParseConnect(e), cmd.data)
		result = uint64(dw0)
	case c.assoc == nil:
		st = nvme.CommandSequenceError.Final()
	case kind == fabrics.TypeAuthSend, kind == fabrics.TypeAuthReceive:
		st = c.authenticate(cmd)
	case !c.authenticated():
		st = fabrics.AuthRequired | nvme.StatusDNR
	case kind == fabrics.TypePropertyGet && c.queue == 0:
		result, st = c.assoc.ctrl.PropertyGet(offset, size)
	case kind == fabrics.TypePropertySet && c.queue == 0:
		st = c.assoc.ctrl.PropertySet(offset, size, value)
		if st.OK() && offset == controller.PropertyCC && value&1 == 0 {
			c.assoc.cutQueues(false)
		}
	case kind == fabrics.TypeDisconnect && c.queue != 0:
		if e.DW(10)&0xffff != 0 {
			st = fabrics.IncompatibleFormat | nvme.StatusDNR
			break
		}
		c.draining.Store(true) // the answer is the last that is sent
	case kind == fabrics.TypeDisconnect:
		st = fabrics.InvalidQueueType | nvme.StatusDNR
	default:
		st = nvme.InvalidOpcode.Final()
	}
	cmd.cpl = nvme.NewCompletion(e.CID(), st)
	cmd.cpl.SetResult(result)
	return c.answer(cmd, (*outbox[message]).postMessage)
}
