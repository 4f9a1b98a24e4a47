package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/features"
	"github.com/millrace/millrace/nvme/controller/slm"
	"github.com/millrace/millrace/nvme/cs"
)

// HostID identifies the host of an association.
type HostID struct {
	NQN string
	ID  [16]byte
}

// Controller is one association's controller (dynamic controller model). A transport opens its queues, hands it every
// command with Parse and Execute, and closes it when the association ends. Methods are safe for concurrent use.
type Controller struct {
	sub  *Subsystem
	id   uint16
	host HostID
	// owner holds memory in the association's name.
	owner slm.Owner
	kato  uint32 // milliseconds, as the host connected

	admitted bool // has one of MaxAssociations' places; the subsystem's mu guards it

	plain atomic.Bool // enabled with the NVM command set only (CC.CSS 000b): other namespaces are not active

	begun time.Time    // when the association began
	seen  atomic.Int64 // when the last command came, in nanoseconds since then
	bg    sync.WaitGroup

	mu          sync.Mutex
	idle        *sync.Cond // outstanding became empty
	state       state
	cc          cc
	resets      uint64            // how often CC.EN became 0
	queues      map[uint16]*queue // I/O queues
	outstanding map[uint32]*request
	admin       int // outstanding commands of the admin queue
	features    features.State
	events      events
	sets        map[uint16]rangeSet // memory range sets
}

// rangeSet is a memory range set, which belongs to a region.
type rangeSet struct {
	region int
	ranges []cs.Range // nil: the set is being created
}

type queue struct{ size, running int }

// request is a command on its way through Execute.
type request struct {
	c      *Controller
	h      *handler
	caller context.Context
	queue  uint16
	q      *queue // nil for the admin queue
	cmd    *nvme.Command
	data   []byte
	ns     *namespace // with blocks, which stays while the command runs; nil: none
	result uint64
	lba    uint64 // for the error information log: the block that failed
	more   uint8  // for it too: the log page that says why the command was refused, 0 if none does

	recorded bool // the error information log has the error already
	access   slm.Access
	gave     bool // its result is something that the host has from now on: an abort that comes too late does not take it

	// The controller's mu guards these.
	ctx     context.Context // ends with caller, and when the command is aborted; nil until somebody wants it
	cancel  context.CancelFunc
	aborted nvme.Status // why it was cancelled
}

// requests holds unused requests. A request without a context allocates nothing, and most commands need none.
var requests = sync.Pool{New: func() any { return new(request) }}

// context returns a context that ends when the command is aborted or its caller's context ends.
func (r *request) context() context.Context {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithCancel(r.caller)
		if r.aborted != nvme.Success {
			r.cancel()
		}
	}
	return r.ctx
}

// ErrBusy says that the subsystem has as many associations as it may have.
var ErrBusy = errors.New("the drive has as many associations as it takes: close one, or raise MaxAssociations")

// Connect begins an association. kato is the keep alive timeout in milliseconds, 0 for none; the transport calls
// Expired to enforce it.
func (s *Subsystem) Connect(host HostID, kato uint32) (*Controller, error) {
	c, err := s.ConnectPending(host, kato)
	if err != nil {
		return nil, err
	}
	if err := c.Admit(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// ConnectPending begins an association that takes none of MaxAssociations' places until Admit: that of a host which has
// not authenticated yet. It fails with ErrBusy where there is no place now. The transport bounds the number of pending
// associations.
func (s *Subsystem) ConnectPending(host HostID, kato uint32) (*Controller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admitted >= s.opt.MaxAssociations || len(s.live) >= maxControllerID {
		return nil, fmt.Errorf("connect host %q: %w", host.NQN, ErrBusy)
	}
	for {
		if s.nextID++; s.nextID > maxControllerID {
			s.nextID = 1
		}
		if s.live[s.nextID] == nil {
			break
		}
	}
	c := &Controller{
		sub: s, id: s.nextID, host: host, owner: slm.Owner{Name: host.NQN}, kato: kato, queues: map[uint16]*queue{},
		outstanding: map[uint32]*request{}, features: features.Default(kato, MaxQueues), sets: map[uint16]rangeSet{},
		begun: s.opt.Now(),
	}
	c.idle = sync.NewCond(&c.mu)
	s.live[c.id] = c
	return c, nil
}

// Admit gives the association one of MaxAssociations' places, which it keeps until Close. It fails with ErrBusy where
// none is left. Further calls do nothing.
func (c *Controller) Admit() error {
	s := c.sub
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.admitted || s.live[c.id] != c:
		return nil
	case s.admitted >= s.opt.MaxAssociations:
		return fmt.Errorf("admit host %q: %w", c.host.NQN, ErrBusy)
	}
	c.admitted = true
	s.admitted++
	return nil
}

// ID returns the controller identifier, CNTLID.
func (c *Controller) ID() uint16 { return c.id }

// Host returns the host of the association.
func (c *Controller) Host() HostID { return c.host }

// State returns the name of the controller's state, for a log.
func (c *Controller) State() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.String()
}

// commandSet returns the command set of a namespace that is active for this host.
func (c *Controller) commandSet(nsid uint32) (csi uint8, ok bool) {
	csi, ok = c.sub.commandSet(nsid)
	if ok && csi != nvme.CSINVM && c.plain.Load() {
		return 0, false
	}
	return csi, ok
}

// OpenQueue makes I/O queue id (1 to MaxQueues) with room for size commands (2 to MaxDepth).
func (c *Controller) OpenQueue(id uint16, size int) nvme.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.sub.discovery != nil:
		return nvme.InvalidQueueID.Final()
	case c.state != stateReady || c.cc.css() == cssAdmin || c.queues[id] != nil:
		return nvme.CommandSequenceError.Final()
	case id == 0 || int(id) > c.features.Queues:
		return nvme.InvalidQueueID.Final()
	case size < 2 || size > MaxDepth:
		return nvme.InvalidQueueSize.Final()
	}
	c.queues[id] = &queue{size: size}
	return nvme.Success
}

// CloseQueue ends I/O queue id: its commands are cancelled and complete with Command Aborted due to SQ Deletion.
func (c *Controller) CloseQueue(id uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.queues, id)
	for _, r := range c.outstanding {
		if r.queue == id && id != 0 {
			r.abortWith(nvme.QueueDeleted)
		}
	}
}

// Expired reports whether the host has been silent for longer than its keep alive timeout at the time now. The
// controller counts every command as a sign of life (traffic based keep alive).
func (c *Controller) Expired(now time.Time) bool {
	c.mu.Lock()
	kato := c.features.KeepAlive
	c.mu.Unlock()
	return kato > 0 && now.Sub(c.LastSeen()) > time.Duration(kato)*time.Millisecond
}

// Fail makes the controller report a fatal status and ends its commands: for a transport whose host fell silent.
func (c *Controller) Fail(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(why)
}

// Close ends the association. It waits for running commands (waiting event requests, and commands that a reset had
// cancelled, end at once), and gives back what the association held of the drive.
func (c *Controller) Close() error {
	c.mu.Lock()
	c.transition(eventClose)
	for _, r := range c.outstanding {
		if r.queue == 0 && r.cmd.Opcode() == nvme.AdminAsyncEventRequest {
			r.abortWith(nvme.QueueDeleted)
		}
	}
	c.waitIdle()
	c.dropHoldings()
	c.mu.Unlock()
	c.bg.Wait()
	c.sub.mu.Lock()
	defer c.sub.mu.Unlock()
	if c.sub.live[c.id] == c {
		delete(c.sub.live, c.id)
		if c.admitted {
			c.sub.admitted--
		}
	}
	return nil
}

// dropHoldings gives back memory, range sets and images that were loaded in part. c.mu is held and no command runs.
func (c *Controller) dropHoldings() {
	clear(c.sets)
	if c.sub.slm != nil {
		if c.sub.slm.ReleaseAll(&c.owner) {
			c.sub.log.Error("an association ended before its commands did", "cntlid", c.id)
		}
		c.sub.prog.ForgetPartial(&c.owner)
	}
}

// background runs f in a goroutine that Close waits for.
func (c *Controller) background(f func()) {
	c.bg.Add(1)
	go func() {
		defer c.bg.Done()
		f()
	}()
}

// waitIdle waits until no command is outstanding. c.mu is held, and given up while waiting.
func (c *Controller) waitIdle() {
	for len(c.outstanding) > 0 {
		c.idle.Wait()
	}
}

// cancelAll cancels every command. c.mu is held.
func (c *Controller) cancelAll(why nvme.Status) {
	for _, r := range c.outstanding {
		r.abortWith(why)
	}
}

// abortWith cancels the command, which then completes with why. The controller's mu is held.
func (r *request) abortWith(why nvme.Status) {
	if r.aborted == nvme.Success {
		r.aborted = why
	}
	if r.cancel != nil {
		r.cancel()
	}
}

// Heard notes a sign of life: a message of the host that is not for Parse.
func (c *Controller) Heard() { c.seen.Store(int64(c.sub.opt.Now().Sub(c.begun))) }

// LastSeen is when the last command came, or the association began, with the reading of the monotonic clock.
func (c *Controller) LastSeen() time.Time { return c.begun.Add(time.Duration(c.seen.Load())) }
