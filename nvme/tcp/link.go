package tcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// link is one association of a Host: its controller and queues. When any connection of it fails all are closed and every
// command ends; a link is not mended but replaced.
type link struct {
	h      *Host
	cntlid uint16
	serial string

	admin *queue
	io    []*queue
	next  atomic.Uint32 // the I/O queue whose turn it is

	clock   atomic.Int64 // nanoseconds, as of the last tick
	sent    atomic.Int64 // clock when a command was last sent
	traffic atomic.Bool  // the controller counts every command as a sign of life
	asked   bool         // a Keep Alive is outstanding; the housekeeper's

	mu     sync.Mutex
	cause  error
	over   chan struct{} // closed when the link is lost
	tasks  sync.WaitGroup
	opened bool
	ending atomic.Bool   // the end of an I/O queue is no loss any more
	dead   chan struct{} // closed when nothing of the link runs any more
}

// errLinkLost ends the commands of a link that is lost.
var errLinkLost = errors.New("the connection was lost")

func newLink(h *Host) *link {
	l := &link{h: h, over: make(chan struct{}), dead: make(chan struct{})}
	l.clock.Store(time.Now().UnixNano())
	return l
}

// lose ends the link; the first cause stays.
func (l *link) lose(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	l.cause = cause
	close(l.over)
	for _, q := range l.queues() {
		_ = q.nc.Close()
	}
}

// queues are those that there are; l.mu is held, or the link is open.
func (l *link) queues() []*queue {
	if l.admin == nil {
		return nil
	}
	return append([]*queue{l.admin}, l.io...)
}

func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// task runs f in a goroutine that belongs to the link, and tells whether it did: not once the link is lost.
func (l *link) task(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return false
	}
	l.tasks.Add(1)
	go func() {
		defer l.tasks.Done()
		f()
	}()
	return true
}

// abandon is for a link that open did not finish: nobody else sees to its end.
func (l *link) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.opened {
		l.opened = true
		go l.bury()
	}
}

// bury waits for the end of everything.
func (l *link) bury() {
	<-l.over
	l.tasks.Wait()
	close(l.dead)
}

// open makes the association: the admin queue, the controller enabled, its limits read, and the I/O queues.
func (l *link) open(ctx context.Context) error {
	o := &l.h.opt
	admin, err := l.openQueue(ctx, 0, controller.AdminDepth, inCapsule)
	if err != nil {
		return err
	}
	// The ticks that bound commands in time begin here; until the link is open ctx bounds them too.
	l.task(l.housekeep)
	if err := l.enable(ctx, admin); err != nil {
		return err
	}
	id, err := l.identify(ctx, admin)
	if err != nil {
		return err
	}
	l.serial = id.Serial
	l.traffic.Store(id.Attributes>>6&1 != 0)
	if id.ControllerType != 2 { // a discovery controller has no I/O queues
		if err := l.openIO(ctx, admin, id); err != nil {
			return err
		}
	}
	if o.OnEvent != nil {
		if err := l.listen(ctx, admin, id); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return l.cause
	}
	l.opened = true
	go l.bury()
	return nil
}

// admit adds a queue to those that lose closes.
func (l *link) admit(q *queue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		_ = q.nc.Close()
		return l.cause
	}
	if q.id == 0 {
		l.admin = q
	} else {
		l.io = append(l.io, q)
	}
	return nil
}

// enable does what Linux does with a controller that it has connected to.
func (l *link) enable(ctx context.Context, admin *queue) error {
	cap, err := l.property(ctx, admin, controller.PropertyCAP, 8)
	if err != nil {
		return fmt.Errorf("read CAP: %w", err)
	}
	const cssNVM, cssMany = 1 << 37, 1 << 43
	cc := uint64(controller.DefaultCC)
	switch {
	case cap&cssMany != 0:
	case cap&cssNVM != 0:
		cc &^= 7 << 4
	default:
		return fmt.Errorf("the controller offers no I/O command set: CAP %#x", cap)
	}
	admin.most = int(cap&0xffff) + 1
	set := fabrics.PropertySet(controller.PropertyCC, 4, cc)
	if _, err := admin.do(ctx, admin.free, &set, nil, 0); err != nil {
		return fmt.Errorf("enable the controller: %w", err)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		csts, err := l.property(ctx, admin, controller.PropertyCSTS, 4)
		switch {
		case err != nil:
			return fmt.Errorf("read CSTS: %w", err)
		case csts&2 != 0:
			return fmt.Errorf("the controller reports a fatal status: CSTS %#x", csts)
		case csts&1 != 0:
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("wait for the controller to be ready: %w", ctx.Err())
		}
	}
}

func (l *link) property(ctx context.Context, admin *queue, offset uint32, size int) (uint64, error) {
	cmd := fabrics.PropertyGet(offset, size)
	cpl, err := admin.do(ctx, admin.free, &cmd, nil, 0)
	return cpl.Result(), err
}

func (l *link) identify(ctx context.Context, admin *queue) (*nvme.IdentifyController, error) {
	cmd := nvme.Identify(nvme.CNSController, 0, 0)
	b := make([]byte, nvme.IdentifySize)
	if _, err := admin.do(ctx, admin.free, &cmd, b, 0); err != nil {
		return nil, fmt.Errorf("identify controller: %w", err)
	}
	var id nvme.IdentifyController
	if err := id.Unmarshal(b); err != nil {
		return nil, err
	}
	if id.ControllerID != l.cntlid {
		return nil, fmt.Errorf("identify controller: it says it is controller %d, and connect said %d", id.ControllerID, l.cntlid)
	}
	if id.SGLs&3 == 0 || id.CapsuleOffset != 0 {
		return nil, fmt.Errorf("the controller cannot be used over TCP: SGLS %#x, ICDOFF %d", id.SGLs, id.CapsuleOffset)
	}
	return &id, nil
}

func (l *link) openIO(ctx context.Context, admin *queue, id *nvme.IdentifyController) error {
	o := &l.h.opt
	if id.CommandCapsule*16 < nvme.CommandSize || id.CommandCapsule > 1<<16 {
		return fmt.Errorf("the controller's command capsules of %d bytes cannot be right", uint64(id.CommandCapsule)*16)
	}
	want := uint32(o.Queues - 1)
	set := nvme.SetFeature(nvme.FeatureQueues, want<<16|want)
	cpl, err := admin.do(ctx, admin.free, &set, nil, 0)
	if err != nil {
		return fmt.Errorf("ask for %d I/O queues: %w", o.Queues, err)
	}
	n := min(int(cpl.DW0()&0xffff), int(cpl.DW0()>>16), o.Queues-1) + 1
	depth := min(o.Depth, admin.most)
	if id.MaxCommands > 0 {
		depth = min(depth, int(id.MaxCommands))
	}
	for i := range n {
		if _, err := l.openQueue(ctx, uint16(i+1), max(depth, 2), id.CommandCapsule*16-nvme.CommandSize); err != nil {
			return err
		}
	}
	return nil
}

// openQueue makes a connection a queue that may be used.
func (l *link) openQueue(ctx context.Context, id uint16, depth int, capsule uint32) (*queue, error) {
	q, dw0, err := l.connectQueue(ctx, id, depth, capsule)
	if err != nil {
		return nil, err
	}
	if err := q.authenticate(ctx, dw0); err != nil {
		return nil, fmt.Errorf("queue %d: %w", id, err)
	}
	return q, nil
}

// connectQueue makes a connection a queue, which may have to authenticate: dw0 is Connect's.
func (l *link) connectQueue(ctx context.Context, id uint16, depth int, capsule uint32) (q *queue, dw0 uint32, err error) {
	o := &l.h.opt
	nc, err := o.DialContext(ctx, "tcp", o.Address)
	if err != nil {
		return nil, 0, err
	}
	q, err = l.newQueue(ctx, nc, id, depth, capsule)
	if err != nil {
		_ = nc.Close()
		return nil, 0, fmt.Errorf("begin connection of queue %d: %w", id, err)
	}
	if err := l.admit(q); err != nil {
		q.out.stop(err)
		return nil, 0, err
	}
	if !l.task(q.receive) {
		q.end()
		return nil, 0, l.why()
	}
	req := fabrics.Connect{Queue: id, Size: uint16(depth - 1)}
	if o.NoFlowControl {
		req.Attributes |= fabrics.DisableFlowControl
	}
	data := fabrics.ConnectData{HostID: o.HostID, ControllerID: l.cntlid, SubsystemNQN: o.Subsystem, HostNQN: o.HostNQN}
	if id == 0 {
		data.ControllerID = fabrics.AnyController
		if o.KeepAlive > 0 {
			req.KeepAlive = uint32(min(max(o.KeepAlive.Milliseconds(), 1), 1<<31))
		}
	}
	cmd := req.Command()
	cpl, err := q.do(ctx, q.free, &cmd, data.Marshal(), 0)
	if err != nil {
		var st nvme.Status
		if errors.As(err, &st) {
			if id == 0 && st.DNR() { // an I/O queue is refused too when the drive went away again meanwhile
				err = fmt.Errorf("%w: %w", ErrRefused, err)
			}
			return nil, 0, fmt.Errorf("queue %d: %s: %w", id, fabrics.Describe(st, cpl.DW0()), err)
		}
		return nil, 0, fmt.Errorf("queue %d: %w", id, err)
	}
	if id == 0 {
		l.cntlid = uint16(cpl.DW0())
	}
	return q, cpl.DW0(), nil
}

// submit sends a command to a queue and waits for it.
func (l *link) submit(ctx context.Context, admin bool, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	if admin {
		free := l.admin.free
		if op := cmd.Opcode(); op == nvme.AdminKeepAlive || op == nvme.AdminAbort {
			free = l.admin.urgent
		}
		timeout := l.h.opt.CommandTimeout
		if cmd.Opcode() == nvme.AdminAsyncEventRequest {
			timeout = -1
		}
		return l.admin.do(ctx, free, cmd, data, timeout)
	}
	if len(l.io) == 0 {
		return nvme.Completion{}, nvme.InvalidQueueID
	}
	q := l.pick()
	return q.do(ctx, q.free, cmd, data, l.h.opt.CommandTimeout)
}

// pick returns an I/O queue, of which there is one at least: each has its turn, but one that is full is passed over while another has
// room.
func (l *link) pick() *queue {
	n := uint32(len(l.io))
	if n == 1 {
		return l.io[0]
	}
	turn := l.next.Add(1)
	for i := range n {
		if q := l.io[(turn+i)%n]; len(q.free) > 0 {
			return q
		}
	}
	return l.io[turn%n]
}

// finish waits for the commands that run, and shuts the controller down. Nothing new is submitted by the Host any more.
func (l *link) finish() {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for _, q := range l.queues() {
		for n := 0; n < cap(q.free); {
			if q.id == 0 {
				q.abortEvents()
			}
			select {
			case <-q.free:
				n++
			case <-again.C: // a request for events may have come since
			case <-l.over:
				return
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.h.opt.ConnectTimeout)
	defer cancel()
	admin := l.admin
	cc, err := l.urgentProperty(ctx, admin, controller.PropertyCC)
	if err != nil {
		return
	}
	// After a shutdown everything written is on stable storage. After the reset that follows, the drive has freed what
	// the association held, so that who opens the drive next finds it free.
	l.ending.Store(true)
	const shutdown, complete, ready, fatal = 1 << 14, 2 << 2, 1, 1 << 1
	for _, step := range []struct {
		cc   uint64
		done func(csts uint64) bool
	}{
		{cc&^(3<<14) | shutdown, func(csts uint64) bool { return csts&(3<<2) == complete }},
		{cc &^ (3<<14 | 1), func(csts uint64) bool { return csts&ready == 0 }},
	} {
		set := fabrics.PropertySet(controller.PropertyCC, 4, step.cc)
		if _, err := admin.do(ctx, admin.urgent, &set, nil, 0); err != nil {
			return
		}
		for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
			csts, err := l.urgentProperty(ctx, admin, controller.PropertyCSTS)
			if err != nil || csts&fatal != 0 {
				return
			}
			if step.done(csts) {
				break
			}
			time.Sleep(wait)
		}
	}
}

func (l *link) urgentProperty(ctx context.Context, admin *queue, offset uint32) (uint64, error) {
	cmd := fabrics.PropertyGet(offset, 4)
	cpl, err := admin.do(ctx, admin.urgent, &cmd, nil, 0)
	return cpl.Result(), err
}

// listen asks for events and passes them on.
func (l *link) listen(ctx context.Context, admin *queue, id *nvme.IdentifyController) error {
	const health = nvme.WarningSpare | nvme.WarningTemperature | nvme.WarningReliability
	config := id.AsyncEvents
	if id.ControllerType != 2 {
		config |= health
	}
	set := nvme.SetFeature(nvme.FeatureAsyncEvents, config)
	if _, err := admin.do(ctx, admin.free, &set, nil, 0); err != nil {
		return fmt.Errorf("ask for events: %w", err)
	}
	l.task(func() {
		for !l.h.isClosed() {
			cmd := nvme.AsyncEventRequest()
			cpl, err := admin.do(context.Background(), admin.free, &cmd, nil, -1)
			if err != nil {
				return
			}
			l.h.opt.OnEvent(nvme.ParseAsyncEvent(cpl.DW0()))
		}
	})
	return nil
}

// housekeep bounds commands in time and keeps the association alive.
func (l *link) housekeep() {
	o := &l.h.opt
	const slowest, fastest = 250 * time.Millisecond, 5 * time.Millisecond
	period := slowest
	for _, d := range []time.Duration{o.CommandTimeout, o.KeepAlive} {
		if d > 0 {
			period = min(period, d/8)
		}
	}
	tick := time.NewTicker(max(period, fastest))
	defer tick.Stop()
	alive := time.Now()
	answered := make(chan error, 1)
	for {
		select {
		case <-l.over:
			return
		case err := <-answered:
			l.asked = false
			if err != nil {
				l.lose(fmt.Errorf("keep alive: %w", err))
				return
			}
		case now := <-tick.C:
			l.clock.Store(now.UnixNano())
			l.mu.Lock()
			queues := l.queues()
			l.mu.Unlock()
			for _, q := range queues {
				q.expire(now.UnixNano())
			}
			if o.KeepAlive <= 0 || l.asked {
				continue
			}
			if l.traffic.Load() {
				if sent := time.Unix(0, l.sent.Load()); sent.After(alive) {
					alive = sent
				}
			}
			if now.Sub(alive) < o.KeepAlive/2 {
				continue
			}
			alive, l.asked = now, true
			l.task(func() {
				cmd := nvme.KeepAlive()
				_, err := l.admin.do(context.Background(), l.admin.urgent, &cmd, nil, o.KeepAlive)
				answered <- err
			})
		}
	}
}

// breach ends the link because the drive broke the protocol, and tells it why.
func (l *link) breach(q *queue, e *pdu.Error, header []byte) {
	if q.out.post(hostMessage{raw: pdu.Terminate(pdu.TypeH2CTermReq, e, header)}, true) == nil {
		_ = q.nc.SetWriteDeadline(time.Now().Add(time.Second))
		q.out.wait()
	}
	l.lose(fmt.Errorf("queue %d: the drive broke the protocol: %w", q.id, e))
}
