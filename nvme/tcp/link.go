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

// link is one association of a Host: its controller and queues. When any of its connections fails, all are closed and
// every command ends; a link is not repaired but replaced.
type link struct {
	h      *Host
	number uint64 // Associations are numbered from 1.
	cntlid uint16
	serial string

	admin *queue
	io    []*queue
	next  atomic.Uint32 // the I/O queue whose turn it is

	begun   time.Time    // where clock begins, on the monotonic clock: a change of the machine's time ends no command
	clock   atomic.Int64 // nanoseconds, as of the last tick
	sent    atomic.Int64 // clock when a command was last sent
	traffic atomic.Bool  // the controller counts every command as a sign of life
	asked   bool         // a Keep Alive is outstanding; the housekeeper's

	mu     sync.Mutex
	cause  error
	over   chan struct{} // closed when the link is lost
	tasks  sync.WaitGroup
	opened bool
	ending atomic.Bool   // the end of an I/O queue is not a loss any more
	dead   chan struct{} // closed when nothing of the link runs any more
}

// errLinkLost ends the commands of a link that is lost.
var errLinkLost = errors.New("the connection was lost")

// errUnsent is an errLinkLost for a command of which no byte was written: the drive has not received it.
var errUnsent = fmt.Errorf("%w before the command was sent", errLinkLost)

func newLink(h *Host) *link {
	return &link{h: h, begun: time.Now(), over: make(chan struct{}), dead: make(chan struct{})}
}

// endWithCause ends the link; the first cause stays.
func (l *link) endWithCause(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	l.cause = cause
	close(l.over)
	for _, q := range l.openQueues() {
		_ = q.nc.Close()
	}
}

// openQueues are the queues that are open; l.mu is held, or the link is open.
func (l *link) openQueues() []*queue {
	if l.admin == nil {
		return nil
	}
	return append([]*queue{l.admin}, l.io...)
}

func (l *link) endCause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// runTask runs f in a goroutine that belongs to the link, and reports whether it did: not once the link is lost.
func (l *link) runTask(f func()) bool {
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

// abandon ends a link that openAssociation did not finish.
func (l *link) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.opened {
		l.opened = true
		go l.awaitEnd()
	}
}

// awaitEnd waits for the end of everything.
func (l *link) awaitEnd() {
	<-l.over
	l.tasks.Wait()
	close(l.dead)
}

// submitCommand sends a command to a queue and waits for it.
func (l *link) submitCommand(ctx context.Context, admin bool, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	if admin {
		free := l.admin.free
		if op := cmd.Opcode(); op == nvme.AdminKeepAlive || op == nvme.AdminAbort {
			free = l.admin.urgent
		}
		timeout := l.h.opt.CommandTimeout
		if cmd.Opcode() == nvme.AdminAsyncEventRequest {
			timeout = -1
		}
		return l.admin.executeCommand(ctx, free, cmd, data, timeout)
	}
	if len(l.io) == 0 {
		return nvme.Completion{}, nvme.InvalidQueueID
	}
	q := l.pickIOQueue()
	return q.executeCommand(ctx, q.free, cmd, data, l.h.opt.CommandTimeout)
}

// pickIOQueue returns an I/O queue; there is at least one. The queues take turns, but a full queue is passed over while
// another has room.
func (l *link) pickIOQueue() *queue {
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

// shutDownController waits for the commands that run, and shuts the controller down. The Host submits no further
// commands.
func (l *link) shutDownController() {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for _, q := range l.openQueues() {
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
	// After a shutdown all writes are on stable storage. After the reset that follows, the drive has freed what the
	// association held, so that the next host that opens the drive finds it free.
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
		if _, err := admin.executeCommand(ctx, admin.urgent, &set, nil, 0); err != nil {
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
	cpl, err := admin.executeCommand(ctx, admin.urgent, &cmd, nil, 0)
	return cpl.Result(), err
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
	alive := time.Since(l.begun)
	answered := make(chan error, 1)
	for {
		select {
		case <-l.over:
			return
		case err := <-answered:
			l.asked = false
			if err != nil {
				l.endWithCause(fmt.Errorf("keep alive: %w", err))
				return
			}
		case at := <-tick.C:
			now := at.Sub(l.begun)
			l.clock.Store(int64(now))
			l.mu.Lock()
			queues := l.openQueues()
			l.mu.Unlock()
			for _, q := range queues {
				q.expireCommands(int64(now))
			}
			if o.KeepAlive <= 0 || l.asked {
				continue
			}
			if l.traffic.Load() {
				alive = max(alive, time.Duration(l.sent.Load()))
			}
			if now-alive < o.KeepAlive/2 {
				continue
			}
			alive, l.asked = now, true
			l.runTask(func() {
				cmd := nvme.KeepAlive()
				_, err := l.admin.executeCommand(context.Background(), l.admin.urgent, &cmd, nil, o.KeepAlive)
				answered <- err
			})
		}
	}
}

// endForBreach ends the link because the drive broke the protocol, and sends the drive a termination request that says
// why.
func (l *link) endForBreach(q *queue, e *pdu.Error, header []byte) {
	if q.out.Queue(hostMessage{raw: pdu.Terminate(pdu.TypeH2CTermReq, e, header)}, true) == nil {
		_ = q.nc.SetWriteDeadline(time.Now().Add(time.Second))
		q.out.AwaitWritten()
	}
	l.endWithCause(fmt.Errorf("queue %d: the drive broke the protocol: %w", q.id, e))
}
