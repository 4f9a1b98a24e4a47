package tcp

import (
	"net"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// command is one that a target was sent, from its capsule to the last byte of its answer.
type command struct {
	cmd    nvme.Command
	tag    uint16 // its place in connection.tags, for good
	want   controller.Transfer
	buf    *buffer // nil: none
	data   []byte  // of buf
	budget int     // bytes taken from the connection's budget
	got    uint32  // bytes of data that came behind R2T
	broken bool    // a digest of the data did not match
	digest uint32  // of the data that its answer carries
	cpl    nvme.Completion
	waiter waiter
}

func (cmd *command) hold(b *buffer, n int) { cmd.buf, cmd.data = b, b.b[:n] }

// brings tells whether the answer carries data.
func (cmd *command) brings() bool {
	return cmd.want.Direction == nvme.ControllerToHost && cmd.cpl.Status().OK()
}

// isEvent tells whether this is an Asynchronous Event Request, which may wait for ever.
func (cmd *command) isEvent(queue uint16) bool {
	return queue == 0 && cmd.cmd.Opcode() == nvme.AdminAsyncEventRequest
}

// endedByController reports whether the command is an Asynchronous Event Request that ended because the controller
// takes no commands any more: it is shut down, reset or failed. Execute finds the state changed when the request came
// just before the change.
func (cmd *command) endedByController(queue uint16) bool {
	st := cmd.cpl.Status()
	return cmd.isEvent(queue) && (st.Is(nvme.QueueDeleted) || st.Is(nvme.CommandSequenceError))
}

// message is something to send: bytes, or of a command its request for data or its answer.
type message struct {
	raw      []byte
	cmd      *command
	r2t      bool
	withheld bool // the command ends, and nothing is sent
}

// postMessage is post for use beside send.
func (o *outbox[M]) postMessage(m M) error { return o.post(m, false) }

// put is one of the outbox's ways to take a message: postMessage for the goroutine that receives, send for others.
type put = func(*outbox[message], message) error

// run hands a command to a worker.
func (c *connection) run(cmd *command) {
	select {
	case c.jobs <- cmd:
		return
	default:
	}
	if c.started < 2*c.depth { // as many as there are commands, so that this never waits
		c.started++
		c.workers.Add(1)
		go c.worker(cmd)
		return
	}
	c.jobs <- cmd
}

func (c *connection) worker(cmd *command) {
	defer c.workers.Done()
	for ok := true; ok; cmd, ok = <-c.jobs {
		c.work(cmd)
	}
}

// work does what is next to be done for a command.
func (c *connection) work(cmd *command) {
	if cmd.cmd.Opcode() == fabrics.Opcode {
		c.workAuthentication(cmd)
		return
	}
	n := int(cmd.want.Length)
	switch {
	case cmd.want.Direction == nvme.NoData, cmd.buf != nil:
	case !c.budget.take(n, &cmd.waiter):
		c.settle(&message{cmd: cmd}, net.ErrClosed)
		return
	case cmd.want.Direction == nvme.HostToController:
		c.ask(cmd, (*outbox[message]).send)
		return
	default:
		cmd.budget = n
		cmd.hold(c.target.pool.get(n), n)
		if c.queue == 0 {
			clear(cmd.data) // whatever a page leaves out must not be what another host read
		}
	}
	if cmd.broken {
		cmd.cpl = nvme.NewCompletion(cmd.cmd.CID(), nvme.TransientTransportError)
	} else {
		cmd.cpl = c.assoc.ctrl.Execute(c.ctx, c.queue, &cmd.cmd, cmd.data)
		if cmd.endedByController(c.queue) {
			c.withhold(cmd)
			return
		}
	}
	_ = c.answer(cmd, (*outbox[message]).send)
}

// ask asks the host for a command's data, all of it at once. The budget has been taken.
func (c *connection) ask(cmd *command, put put) {
	n := int(cmd.want.Length)
	cmd.budget = n
	cmd.hold(c.target.pool.get(n), n)
	c.mu.Lock()
	c.tags[cmd.tag] = cmd
	if c.wait++; c.wait == 1 {
		c.asked = time.Now()
	}
	c.mu.Unlock()
	_ = put(c.out, message{cmd: cmd, r2t: true}) // where it is not taken the connection ends, and the command with it
}

// refuse completes a command with a status. The receiving goroutine calls it.
func (c *connection) refuse(cmd *command, st nvme.Status) error {
	cmd.cpl = nvme.NewCompletion(cmd.cmd.CID(), st)
	return c.answer(cmd, (*outbox[message]).postMessage)
}

// answer sends a command's completion, and its data where it read any. The host may send the next command as soon as it
// sees it, so the place in the queue is free before.
func (c *connection) answer(cmd *command, put put) error {
	if c.tx.DataDigest && cmd.brings() {
		cmd.digest = pdu.Digest(cmd.data) // here, as encode does one command after another
	}
	c.inflight.Add(-1)
	err := put(c.out, message{cmd: cmd})
	if err != nil {
		c.settle(&message{cmd: cmd}, err)
	}
	return err
}

// withhold ends a command without an answer. A reset stops the processing of what is outstanding (Base Specification 2.0, 3.7.2),
// and a shutdown does not wait for event requests; the targets of Linux and SPDK end both with the connection. SPDK's host forgets its
// event requests before it writes CC.SHN and uses their identifiers for its next commands, which a late answer would end.
func (c *connection) withhold(cmd *command) {
	c.inflight.Add(-1)
	if err := c.out.send(message{cmd: cmd, withheld: true}); err != nil {
		c.settle(&message{cmd: cmd}, err)
	}
}

// encode turns a message into PDUs.
func (c *connection) encode(b *batch, m *message) {
	switch {
	case m.raw != nil:
		b.data(m.raw)
	case m.withheld:
		c.advance()
	case m.r2t:
		f := c.tx.Layout(pdu.TypeR2T, 0, 0)
		p := b.reserve(f.Prefix())
		pdu.R2T{CID: m.cmd.cmd.CID(), Tag: m.cmd.tag, Length: m.cmd.want.Length}.Put(p)
		f.Seal(p)
	default:
		c.encodeAnswer(b, m.cmd)
	}
}

// advance counts a command that has left the submission queue.
func (c *connection) advance() { c.sqhd = uint16((int(c.sqhd) + 1) % c.depth) }

func (c *connection) encodeAnswer(b *batch, cmd *command) {
	if cmd.brings() {
		// What a flag says instead of a completion can carry neither a result nor a queue head.
		short := c.noFlow && cmd.cpl.Result() == 0
		flags := uint8(pdu.FlagLast)
		if short {
			flags |= pdu.FlagSuccess
		}
		n := uint32(len(cmd.data))
		f := c.tx.Layout(pdu.TypeC2HData, flags, n)
		p := b.reserve(f.Prefix())
		pdu.Data{CID: cmd.cmd.CID(), Length: n}.Put(p)
		f.Seal(p)
		b.data(cmd.data)
		if f.Digest {
			pdu.PutDigest(b.reserve(pdu.DigestSize), cmd.digest)
		}
		if short {
			return
		}
	}
	if c.advance(); c.noFlow {
		cmd.cpl.SetSQHead(0xffff)
	} else {
		cmd.cpl.SetSQHead(c.sqhd)
	}
	f := c.tx.Layout(pdu.TypeCapsuleResp, 0, 0)
	p := b.reserve(f.Prefix())
	pdu.PutCompletion(p, &cmd.cpl)
	f.Seal(p)
}

// settle gives back what a command holds, once its answer is sent or will never be.
func (c *connection) settle(m *message, _ error) {
	cmd := m.cmd
	if cmd == nil || m.r2t {
		return
	}
	if cmd.buf != nil {
		c.target.pool.put(cmd.buf)
	}
	if cmd.budget > 0 {
		c.budget.give(cmd.budget)
	}
	if !cmd.isEvent(c.queue) && c.busy.Add(-1) == 0 && c.draining.Load() {
		c.cut(nil)
	}
	*cmd = command{tag: cmd.tag, waiter: cmd.waiter}
	c.free <- cmd // has room for every command there is
}

// abandonWaiting settles the commands whose data never came.
func (c *connection) abandonWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, cmd := range c.tags {
		if cmd != nil {
			c.tags[i] = nil
			c.settle(&message{cmd: cmd}, net.ErrClosed)
		}
	}
}
