package tcp

import (
	"fmt"
	"net"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

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
		return &pdu.Error{Status: pdu.FatalLimit, Info: 16, Why: fmt.Sprintf("H2CData of %d bytes where MAXH2CDATA is %d",
			f.Data, c.target.opt.MaxH2CData)}
	case d.Offset != cmd.got || uint64(d.Offset)+uint64(d.Length) > uint64(len(cmd.data)):
		return &pdu.Error{Status: pdu.FatalRange, Info: 12, Why: fmt.Sprintf("H2CData %d+%d where %d of %d bytes have come",
			d.Offset, d.Length, cmd.got, len(cmd.data))}
	}
	last := d.Offset+d.Length == uint32(len(cmd.data))
	if (f.Flags&pdu.FlagLast != 0) != last {
		return pdu.Invalid(1, "H2CData %d+%d of %d bytes: the last-PDU flag is wrong", d.Offset, d.Length, len(cmd.data))
	}
	intact, err := c.rx.ReadData(f, cmd.data[d.Offset:d.Offset+d.Length])
	if err != nil {
		return err
	}
	cmd.got += d.Length
	cmd.broken = cmd.broken || !intact
	c.mu.Lock()
	c.awaitingSince = time.Now()
	if last {
		c.tags[d.Tag] = nil
		if c.awaitingData--; c.awaitingData == 0 {
			c.awaitingSince = time.Time{}
		}
	}
	c.mu.Unlock()
	if last {
		c.startCommand(cmd)
	}
	return nil
}

// receiveCommand takes a command capsule.
func (c *connection) receiveCommand(f *pdu.Frame, header []byte) error {
	if f.Data > inCapsule {
		return &pdu.Error{Status: pdu.FatalLimit, Info: 4, Why: fmt.Sprintf("%d bytes of data in a capsule, which holds %d",
			f.Data, inCapsule)}
	}
	if c.draining.Load() {
		return c.rx.SkipData(f)
	}
	entry := pdu.CommandOf(header)
	if n := int(c.unanswered.Add(1)); n > c.depth {
		return &pdu.Error{Status: pdu.FatalLimit, Why: fmt.Sprintf("%d commands in a queue of %d", n, c.depth)}
	}
	cmd, err := c.takeCommand()
	if err != nil {
		return err
	}
	cmd.cmd = entry
	if !cmd.isEvent(c.queue) {
		c.unsettled.Add(1)
	}
	sgl := entry.SGL()
	if f.Data > 0 {
		cmd.holdBuffer(c.target.pool.Take(int(f.Data)), int(f.Data))
		intact, err := c.rx.ReadData(f, cmd.data)
		if err != nil {
			c.settleMessage(&message{cmd: cmd}, err)
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
		return c.refuseCommand(cmd, st.Final())
	case cmd.broken:
		return c.refuseCommand(cmd, nvme.TransientTransportError)
	case entry.Opcode() == fabrics.Opcode:
		return c.executeFabrics(cmd)
	case c.association == nil:
		return c.refuseCommand(cmd, nvme.CommandSequenceError.Final())
	case !c.authenticated():
		return c.refuseCommand(cmd, fabrics.AuthRequired|nvme.StatusDNR)
	}
	if cmd.want, st = c.association.ctrl.Parse(c.queue, &cmd.cmd); !st.OK() {
		return c.refuseCommand(cmd, st)
	}
	switch {
	case capsule && f.Data > 0 && cmd.want.Direction != nvme.HostToController: // data with a command that takes none
		return c.refuseCommand(cmd, nvme.InvalidField.Final())
	case cmd.want.Direction == nvme.HostToController && !capsule && c.budget.TakeWithoutWaiting(int(cmd.want.Length)):
		c.requestData(cmd, (*stream.Outbox[message]).Post)
		return nil
	}
	c.startCommand(cmd)
	return nil
}

// takeCommand returns a command that no request uses. Where there is none, it waits until the host has read an answer.
func (c *connection) takeCommand() (*command, error) {
	select {
	case cmd := <-c.free:
		return cmd, nil
	default:
	}
	if c.commands < 2*c.depth {
		c.commands++
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tags = append(c.tags, nil)
		return &command{tag: uint16(len(c.tags) - 1)}, nil
	}
	c.rx.ExpectNoProgress()
	select {
	case cmd := <-c.free:
		return cmd, nil
	case <-c.ctx.Done():
		return nil, net.ErrClosed
	}
}

// executeFabrics executes a Fabrics command. The receiving goroutine does that itself, as these commands do not wait;
// runners execute the authentication commands.
func (c *connection) executeFabrics(cmd *command) error {
	e := &cmd.cmd
	var result uint64
	st := nvme.Success
	kind := fabrics.Type(e)
	if c.association != nil {
		c.association.ctrl.Heard()
	}
	offset, size, value := fabrics.ParseProperty(e)
	switch {
	case kind == fabrics.TypeConnect:
		if e.SGL().Type != nvme.SGLDataBlockOffset {
			st = nvme.InvalidSGLType.Final()
			break
		}
		var dw0 uint32
		dw0, st = c.executeConnect(fabrics.ParseConnect(e), cmd.data)
		result = uint64(dw0)
	case c.association == nil:
		st = nvme.CommandSequenceError.Final()
	case kind == fabrics.TypeAuthSend, kind == fabrics.TypeAuthReceive:
		return c.startAuthentication(cmd)
	case !c.authenticated():
		st = fabrics.AuthRequired | nvme.StatusDNR
	case kind == fabrics.TypePropertyGet && c.queue == 0:
		result, st = c.association.ctrl.PropertyGet(offset, size)
	case kind == fabrics.TypePropertySet && c.queue == 0:
		st = c.association.ctrl.PropertySet(offset, size, value)
		if st.OK() && offset == controller.PropertyCC && value&1 == 0 {
			c.association.cutQueues(false)
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
	return c.answerCommand(cmd, (*stream.Outbox[message]).Post)
}
