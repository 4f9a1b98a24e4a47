package tcp

import (
	"net"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/buffer"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// command is a command of a host, from its capsule to the last byte of its answer.
type command struct {
	cmd    nvme.Command
	tag    uint16 // its place in connection.tags, for good
	want   controller.Transfer
	buf    *buffer.Buffer // nil: none
	data   []byte         // It lies in buf.
	budget int            // bytes taken from the connection's budget
	got    uint32         // bytes of data that came behind R2T
	broken bool           // a digest of the data did not match
	digest uint32         // The data that its answer carries has this digest.
	cpl    nvme.Completion
	waiter buffer.Waiter
}

func (cmd *command) holdBuffer(b *buffer.Buffer, n int) { cmd.buf, cmd.data = b, b.Bytes[:n] }

// answerCarriesData reports whether the answer carries data.
func (cmd *command) answerCarriesData() bool {
	return cmd.want.Direction == nvme.ControllerToHost && cmd.cpl.Status().OK()
}

// isEvent reports whether this is an Asynchronous Event Request, which may wait for ever.
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

// message is what a connection sends: bytes as they are, a command's request for data (R2T), or a command's answer.
type message struct {
	raw      []byte
	cmd      *command
	r2t      bool
	withheld bool // the command ends, and nothing is sent
}

// put is a way to give a message to the outbox: Post for the goroutine that receives, send for the runners.
type put = func(*stream.Outbox[message], message) error

// startCommand gives a command to a runner, and starts one if none is free.
func (c *connection) startCommand(cmd *command) {
	select {
	case c.runnable <- cmd:
		return
	default:
	}
	if c.started < 2*c.depth { // as many as there are commands, so that this never waits
		c.started++
		c.runners.Add(1)
		go c.runCommands(cmd)
		return
	}
	c.runnable <- cmd
}

func (c *connection) runCommands(cmd *command) {
	defer c.runners.Done()
	for ok := true; ok; cmd, ok = <-c.runnable {
		c.proceedCommand(cmd)
	}
}

// proceedCommand takes the next step of a command: it waits for memory, requests data, or executes the command and
// answers it.
func (c *connection) proceedCommand(cmd *command) {
	if cmd.cmd.Opcode() == fabrics.Opcode {
		c.proceedAuthentication(cmd)
		return
	}
	n := int(cmd.want.Length)
	switch {
	case cmd.want.Direction == nvme.NoData, cmd.buf != nil:
	case !c.budget.TakeOrWait(n, &cmd.waiter):
		c.settleMessage(&message{cmd: cmd}, net.ErrClosed)
		return
	case cmd.want.Direction == nvme.HostToController:
		c.requestData(cmd, (*stream.Outbox[message]).Send)
		return
	default:
		cmd.budget = n
		cmd.holdBuffer(c.target.pool.Take(n), n)
		if c.queue == 0 {
			clear(cmd.data) // bytes that a page leaves out must not show data that another host read
		}
	}
	if cmd.broken {
		cmd.cpl = nvme.NewCompletion(cmd.cmd.CID(), nvme.TransientTransportError)
	} else {
		cmd.cpl = c.association.ctrl.Execute(c.ctx, c.queue, &cmd.cmd, cmd.data)
		if cmd.endedByController(c.queue) {
			c.withholdAnswer(cmd)
			return
		}
	}
	_ = c.answerCommand(cmd, (*stream.Outbox[message]).Send)
}

// requestData requests all of a command's data with one R2T. The budget has been taken.
func (c *connection) requestData(cmd *command, put put) {
	n := int(cmd.want.Length)
	cmd.budget = n
	cmd.holdBuffer(c.target.pool.Take(n), n)
	c.mu.Lock()
	c.tags[cmd.tag] = cmd
	if c.awaitingData++; c.awaitingData == 1 {
		c.awaitingSince = time.Now()
	}
	c.mu.Unlock()
	_ = put(c.out, message{cmd: cmd, r2t: true}) // where it is not taken the connection ends, and the command with it
}

// refuseCommand completes a command with a status. The receiving goroutine calls it.
func (c *connection) refuseCommand(cmd *command, st nvme.Status) error {
	cmd.cpl = nvme.NewCompletion(cmd.cmd.CID(), st)
	return c.answerCommand(cmd, (*stream.Outbox[message]).Post)
}

// answerCommand sends a command's completion, and the data that it read. The host may send its next command as soon as
// it sees the completion, so the command's place in the queue is free before.
func (c *connection) answerCommand(cmd *command, put put) error {
	if c.tx.DataDigest && cmd.answerCarriesData() {
		cmd.digest = pdu.Digest(cmd.data) // here, as encode does one command after another
	}
	c.unanswered.Add(-1)
	err := put(c.out, message{cmd: cmd})
	if err != nil {
		c.settleMessage(&message{cmd: cmd}, err)
	}
	return err
}

// withholdAnswer ends a command without an answer. A reset stops the processing of what is outstanding (Base
// Specification 2.0, 3.7.2), and a shutdown does not wait for event requests; the targets of Linux and SPDK end both
// with the connection. SPDK's host forgets its event requests before it writes CC.SHN and uses their identifiers for
// its next commands, which a late answer would end.
func (c *connection) withholdAnswer(cmd *command) {
	c.unanswered.Add(-1)
	if err := c.out.Send(message{cmd: cmd, withheld: true}); err != nil {
		c.settleMessage(&message{cmd: cmd}, err)
	}
}

// encodeMessage turns a message into PDUs.
func (c *connection) encodeMessage(b *stream.Batch, m *message) {
	switch {
	case m.raw != nil:
		b.AddData(m.raw)
	case m.withheld:
		c.advanceQueueHead()
	case m.r2t:
		f := c.tx.Layout(pdu.TypeR2T, 0, 0)
		p := b.Reserve(f.Prefix())
		pdu.R2T{CID: m.cmd.cmd.CID(), Tag: m.cmd.tag, Length: m.cmd.want.Length}.Put(p)
		f.Seal(p)
	default:
		c.encodeAnswer(b, m.cmd)
	}
}

// advanceQueueHead counts a command that has left the submission queue.
func (c *connection) advanceQueueHead() { c.queueHead = uint16((int(c.queueHead) + 1) % c.depth) }

func (c *connection) encodeAnswer(b *stream.Batch, cmd *command) {
	if cmd.answerCarriesData() {
		// A flag that stands for a completion can carry neither a result nor a queue head.
		short := c.noFlowControl && cmd.cpl.Result() == 0
		flags := uint8(pdu.FlagLast)
		if short {
			flags |= pdu.FlagSuccess
		}
		n := uint32(len(cmd.data))
		f := c.tx.Layout(pdu.TypeC2HData, flags, n)
		p := b.Reserve(f.Prefix())
		pdu.Data{CID: cmd.cmd.CID(), Length: n}.Put(p)
		f.Seal(p)
		b.AddData(cmd.data)
		if f.Digest {
			pdu.PutDigest(b.Reserve(pdu.DigestSize), cmd.digest)
		}
		if short {
			return
		}
	}
	if c.advanceQueueHead(); c.noFlowControl {
		cmd.cpl.SetSQHead(0xffff)
	} else {
		cmd.cpl.SetSQHead(c.queueHead)
	}
	f := c.tx.Layout(pdu.TypeCapsuleResp, 0, 0)
	p := b.Reserve(f.Prefix())
	pdu.PutCompletion(p, &cmd.cpl)
	f.Seal(p)
}

// settleMessage gives back the memory of a command whose answer was sent or will never be sent.
func (c *connection) settleMessage(m *message, _ error) {
	cmd := m.cmd
	if cmd == nil || m.r2t {
		return
	}
	if cmd.buf != nil {
		c.target.pool.Return(cmd.buf)
	}
	if cmd.budget > 0 {
		c.budget.GiveBack(cmd.budget)
	}
	if !cmd.isEvent(c.queue) && c.unsettled.Add(-1) == 0 && c.draining.Load() {
		c.cutConnection(nil)
	}
	*cmd = command{tag: cmd.tag, waiter: cmd.waiter}
	c.free <- cmd // has room for every command there is
}

// abandonWaiting settles the commands that still wait for data.
func (c *connection) abandonWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, cmd := range c.tags {
		if cmd != nil {
			c.tags[i] = nil
			c.settleMessage(&message{cmd: cmd}, net.ErrClosed)
		}
	}
}
