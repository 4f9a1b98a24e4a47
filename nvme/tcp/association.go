package tcp

import (
	"errors"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
)

// association is a host's with a subsystem: a controller, and the connections that are its queues. It begins with the Connect
// of an admin queue and ends with that queue's connection.
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

// join makes a connection an I/O queue.
func (a *association) join(c *connection, id uint16, size int) nvme.Status {
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

// leave ends a connection's queue: its commands are cancelled.
func (a *association) leave(c *connection) {
	a.mu.Lock()
	id, ok := a.queues[c]
	a.mu.Unlock()
	if ok {
		a.ctrl.CloseQueue(id)
	}
}

// left says that nothing of a connection runs any more.
func (a *association) left(c *connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.queues, c)
	if len(a.queues) == 0 {
		a.gone.Broadcast()
	}
}

// authenticating tells whether a queue of the association waits for the host to authenticate. A host computes for as long as its
// machine takes, and is given TargetOptions.Handshake for that; it does not keep its association alive beside it.
func (a *association) authenticating(admin *connection) bool {
	if admin.authBy.Load() != 0 {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.queues {
		if c.authBy.Load() != 0 {
			return true
		}
	}
	return false
}

// cutQueues closes the connections of the I/O queues, as a reset of the controller does; last means for good.
func (a *association) cutQueues(last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = a.over || last
	for c := range a.queues {
		c.cut(nil)
	}
}

// end waits for the connections of the I/O queues, which were cut for good, and ends the controller.
func (a *association) end() error {
	a.mu.Lock()
	for len(a.queues) > 0 {
		a.gone.Wait()
	}
	a.mu.Unlock()
	return a.ctrl.Close()
}

// connect does a Connect on a connection that is no queue yet. It returns dword 0 of the completion.
func (c *connection) connect(req fabrics.Connect, data []byte) (uint32, nvme.Status) {
	invalid := func(parameter uint32) (uint32, nvme.Status) {
		return parameter, fabrics.InvalidParameters | nvme.StatusDNR
	}
	var d fabrics.ConnectData
	switch {
	case c.assoc != nil:
		return 0, nvme.CommandSequenceError.Final()
	case req.Format != 0:
		return 0, fabrics.IncompatibleFormat | nvme.StatusDNR
	case d.Unmarshal(data) != nil:
		return 0, nvme.InvalidSGLLength.Final()
	}
	t := c.target
	t.mu.Lock()
	sub := t.subsystems[d.SubsystemNQN]
	t.mu.Unlock()
	switch {
	case fabrics.CheckNQN(d.HostNQN) != nil:
		return invalid(fabrics.ParameterHostNQN)
	case sub == nil:
		c.log.Warn("connect refused", "host", d.HostNQN, "why", "no such subsystem", "subsystem", d.SubsystemNQN)
		return invalid(fabrics.ParameterSubsystemNQN)
	case !t.allowed(d.HostNQN):
		c.log.Warn("connect refused", "host", d.HostNQN, "why", "the host is not on the allow-list")
		return 0, fabrics.InvalidHost | nvme.StatusDNR
	case !sub.IsDiscovery() && !t.opt.Auth.knows(d.HostNQN):
		c.log.Warn("connect refused", "host", d.HostNQN, "why", "there is no key of the host")
		return 0, fabrics.InvalidHost | nvme.StatusDNR
	case req.Size == 0:
		return invalid(fabrics.ParameterQueueSize)
	}
	host := controller.HostID{NQN: d.HostNQN, ID: d.HostID}
	if req.Queue != 0 {
		return c.connectIO(req, sub, host, d.ControllerID)
	}
	switch {
	case d.ControllerID < fabrics.AnyController-1: // FFFEh asks for any static controller: there are none, so any will do
		return invalid(fabrics.ParameterControllerID)
	case int(req.Size)+1 > controller.AdminDepth:
		return invalid(fabrics.ParameterQueueSize)
	}
	ctrl, err := sub.Connect(host, req.KeepAlive)
	if errors.Is(err, controller.ErrBusy) {
		return 0, fabrics.ControllerBusy
	} else if err != nil {
		c.log.Error("connect", "host", d.HostNQN, "error", err)
		return 0, nvme.InternalError
	}
	a := &association{sub: sub, ctrl: ctrl, host: host, kato: req.KeepAlive, queues: map[*connection]uint16{}}
	a.gone = sync.NewCond(&a.mu)
	wants, st := c.demand(a)
	if !st.OK() {
		_ = ctrl.Close()
		return 0, st
	}
	t.mu.Lock()
	t.associations[associationKey{sub, ctrl.ID()}] = a
	t.mu.Unlock()
	c.join(a, req)
	c.log.Info("host connected", "host", host.NQN, "subsystem", sub.NQN(), "cntlid", ctrl.ID(), "keep_alive_ms", req.KeepAlive)
	return uint32(ctrl.ID()) | wants, nvme.Success
}

func (c *connection) connectIO(req fabrics.Connect, sub *controller.Subsystem, host controller.HostID, id uint16) (uint32, nvme.Status) {
	c.target.mu.Lock()
	a := c.target.associations[associationKey{sub, id}]
	c.target.mu.Unlock()
	switch {
	case a == nil:
		return fabrics.ParameterControllerID, fabrics.InvalidParameters | nvme.StatusDNR
	case a.host.NQN != host.NQN:
		return fabrics.ParameterHostNQN, fabrics.InvalidParameters | nvme.StatusDNR
	case a.host.ID != host.ID:
		return fabrics.ParameterHostID, fabrics.InvalidParameters | nvme.StatusDNR
	}
	wants, st := c.demand(a)
	if !st.OK() {
		return 0, st
	}
	switch st := a.join(c, req.Queue, int(req.Size)+1); {
	case st.Is(nvme.InvalidQueueID):
		return fabrics.ParameterQueueID, fabrics.InvalidParameters | nvme.StatusDNR
	case st.Is(nvme.InvalidQueueSize):
		return fabrics.ParameterQueueSize, fabrics.InvalidParameters | nvme.StatusDNR
	case !st.OK():
		return 0, st
	}
	c.join(a, req)
	return uint32(id) | wants, nvme.Success
}
