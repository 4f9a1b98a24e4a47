package tcp

import (
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
)

// association is an association of a host with a subsystem: a controller, and the connections that are its queues. It
// begins with the Connect of an admin queue and ends with that queue's connection.
type association struct {
	sub  *controller.Subsystem
	ctrl *controller.Controller
	host controller.HostID
	kato uint32

	mu     sync.Mutex
	queues map[*connection]uint16 // I/O queues
	gone   *sync.Cond             // queues became empty
	over   bool                   // takes no more queues
}

// addQueue makes a connection an I/O queue.
func (a *association) addQueue(c *connection, id uint16, size int) nvme.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nvme.CommandSequenceError.Final()
	}
	if st := a.ctrl.OpenQueue(id, size); !st.OK() {
		return st
	}
	a.queues[c] = id
	return nvme.Success
}

// endQueueOf ends a connection's queue: its commands are cancelled.
func (a *association) endQueueOf(c *connection) {
	a.mu.Lock()
	id, ok := a.queues[c]
	a.mu.Unlock()
	if ok {
		a.ctrl.CloseQueue(id)
	}
}

// noteQueueEnded notes that nothing of a connection runs any more.
func (a *association) noteQueueEnded(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.queues, c)
	if len(a.queues) == 0 {
		a.gone.Broadcast()
	}
}

// authenticating reports whether a queue of the association waits for the host to authenticate. A host may compute for
// as long as TargetOptions.Handshake allows, and does not keep its association alive meanwhile.
func (a *association) authenticating(admin *connection) bool {
	if admin.authenticates.Running() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.queues {
		if c.authenticates.Running() {
			return true
		}
	}
	return false
}

// cutQueues closes the connections of the I/O queues, as a reset of the controller does. last means that no queue may
// be opened again.
func (a *association) cutQueues(last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = a.over || last
	for c := range a.queues {
		c.cutConnection(nil)
	}
}

// endController waits for the end of the I/O queues, whose connections were closed, and ends the controller.
func (a *association) endController() error {
	a.mu.Lock()
	for len(a.queues) > 0 {
		a.gone.Wait()
	}
	a.mu.Unlock()
	return a.ctrl.Close()
}

// refusal is the answer to a Connect that is refused: dword 0 and the status of its completion, and the reason, for the
// log.
type refusal struct {
	dw0 uint32
	st  nvme.Status
	why error
}

// invalidParameter refuses a Connect for one of its parameters.
func invalidParameter(parameter uint32, format string, a ...any) *refusal {
	return &refusal{parameter, fabrics.InvalidParameters | nvme.StatusDNR, fmt.Errorf(format, a...)}
}

// refuseForNow refuses a Connect that may succeed later.
func refuseForNow(why error) *refusal { return &refusal{0, fabrics.ControllerBusy, why} }

// executeConnect executes a Connect on a connection that is not a queue yet, and logs a refusal. It returns dword 0 of
// the completion.
func (c *connection) executeConnect(req fabrics.Connect, data []byte) (uint32, nvme.Status) {
	var d fabrics.ConnectData
	dw0, r := c.establishQueue(req, &d, data)
	if r == nil {
		return dw0, nvme.Success
	}
	if n, ok := c.target.refusals.Allow(); ok {
		c.log.Warn("connect refused", "host", d.HostNQN, "host_id", formatHostID(&d), "subsystem", d.SubsystemNQN, "queue",
			req.Queue,
			"error", r.why, "suppressed", n)
	}
	return r.dw0, r.st
}

// formatHostID formats a host's identifier as Linux does.
func formatHostID(d *fabrics.ConnectData) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", d.HostID[:4], d.HostID[4:6], d.HostID[6:8], d.HostID[8:10], d.HostID[10:])
}

func (c *connection) establishQueue(req fabrics.Connect, d *fabrics.ConnectData, data []byte) (uint32, *refusal) {
	if err := d.Unmarshal(data); err != nil {
		return 0, &refusal{0, nvme.InvalidSGLLength.Final(), err}
	}
	t := c.target
	t.mu.Lock()
	sub := t.subsystems[d.SubsystemNQN]
	t.mu.Unlock()
	switch err := fabrics.CheckNQN(d.HostNQN); {
	case c.association != nil:
		return 0, &refusal{0, nvme.CommandSequenceError.Final(), errors.New("the connection is a queue already")}
	case req.Format != 0:
		return 0, &refusal{0, fabrics.IncompatibleFormat | nvme.StatusDNR, fmt.Errorf("record format %d, want 0", req.Format)}
	case err != nil:
		return 0, invalidParameter(fabrics.ParameterHostNQN, "host NQN: %w", err)
	case sub == nil:
		return 0, invalidParameter(fabrics.ParameterSubsystemNQN, "there is no such subsystem")
	case !t.allowsHost(d.HostNQN):
		return 0, &refusal{0, fabrics.InvalidHost | nvme.StatusDNR, errors.New("the host is not on the allow-list")}
	case !sub.IsDiscovery() && !t.opt.Auth.knowsHost(d.HostNQN):
		return 0, &refusal{0, fabrics.InvalidHost | nvme.StatusDNR, errors.New("there is no key of the host")}
	case req.Size == 0:
		return 0, invalidParameter(fabrics.ParameterQueueSize, "a queue of one entry, want 2 at least")
	}
	host := controller.HostID{NQN: d.HostNQN, ID: d.HostID}
	if req.Queue != 0 {
		return c.connectIO(req, sub, host, d.ControllerID)
	}
	return c.connectAdmin(req, sub, host, d.ControllerID)
}

// connectAdmin begins an association.
func (c *connection) connectAdmin(req fabrics.Connect, sub *controller.Subsystem, host controller.HostID,
	id uint16) (uint32, *refusal) {
	switch {
	case id < fabrics.AnyController-1: // FFFEh asks for any static controller: there are none, so any will do
		return 0, invalidParameter(fabrics.ParameterControllerID, "controller %d is asked for by name, want any (FFFFh)", id)
	case int(req.Size)+1 > controller.AdminDepth:
		return 0, invalidParameter(fabrics.ParameterQueueSize, "an admin queue of %d entries, want %d at most",
			int(req.Size)+1, controller.AdminDepth)
	}
	t := c.target
	begin, connected := sub.Connect, eventConnect
	switch {
	case sub.IsDiscovery():
		begin, connected = sub.ConnectPending, eventConnectDiscovery
	case t.opt.Auth != nil:
		begin, connected = sub.ConnectPending, eventConnectSecured
	}
	if err := t.endLost(sub, host); err != nil {
		return 0, refuseForNow(err)
	}
	ctrl, err := begin(host, req.KeepAlive)
	if errors.Is(err, controller.ErrBusy) {
		return 0, refuseForNow(err)
	} else if err != nil {
		return 0, &refusal{0, nvme.InternalError, err}
	}
	a := &association{sub: sub, ctrl: ctrl, host: host, kato: req.KeepAlive, queues: map[*connection]uint16{}}
	a.gone = sync.NewCond(&a.mu)
	wants, err := c.demandAuthentication(a)
	if err != nil {
		return 0, &refusal{0, nvme.InternalError, errors.Join(err, ctrl.Close())}
	}
	if err := t.advanceState(c, connected); err != nil {
		return 0, refuseForNow(errors.Join(err, ctrl.Close()))
	}
	t.mu.Lock()
	t.associations[associationKey{sub, ctrl.ID()}] = a
	t.mu.Unlock()
	c.becomeQueue(a, req)
	if n, ok := c.mayLogHost(); ok {
		c.log.Info("host connected", "host", host.NQN, "subsystem", sub.NQN(), "cntlid", ctrl.ID(), "keep_alive_ms",
			req.KeepAlive, "suppressed", n)
	}
	return uint32(ctrl.ID()) | wants, nil
}

func (c *connection) connectIO(req fabrics.Connect, sub *controller.Subsystem, host controller.HostID,
	id uint16) (uint32, *refusal) {
	c.target.mu.Lock()
	a := c.target.associations[associationKey{sub, id}]
	c.target.mu.Unlock()
	switch {
	case a == nil:
		return 0, invalidParameter(fabrics.ParameterControllerID, "there is no association with controller %d", id)
	case a.host.NQN != host.NQN:
		return 0, invalidParameter(fabrics.ParameterHostNQN, "the association with controller %d is another host's", id)
	case a.host.ID != host.ID:
		return 0, invalidParameter(fabrics.ParameterHostID, "the association with controller %d has another host identifier",
			id)
	}
	wants, err := c.demandAuthentication(a)
	if err != nil {
		return 0, &refusal{0, nvme.InternalError, err}
	}
	connected := eventConnect
	if c.auth != nil {
		connected = eventConnectSecured
	}
	if err := c.target.advanceState(c, connected); err != nil {
		return 0, refuseForNow(err)
	}
	st := a.addQueue(c, req.Queue, int(req.Size)+1)
	if !st.OK() {
		if err := c.target.advanceState(c, eventRefuse); err != nil {
			return 0, refuseForNow(err)
		}
	}
	switch {
	case st.Is(nvme.InvalidQueueID):
		return 0, invalidParameter(fabrics.ParameterQueueID, "queue %d, want 1 to %d", req.Queue, controller.MaxQueues)
	case st.Is(nvme.InvalidQueueSize):
		return 0, invalidParameter(fabrics.ParameterQueueSize, "a queue of %d entries, want 2 to %d", int(req.Size)+1,
			controller.MaxDepth)
	case !st.OK():
		return 0, &refusal{0, st, fmt.Errorf("the controller does not take queue %d now: it is %s, or has the queue already",
			req.Queue, a.ctrl.State())}
	}
	c.becomeQueue(a, req)
	return uint32(id) | wants, nil
}
