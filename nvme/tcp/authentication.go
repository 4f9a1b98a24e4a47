package tcp

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// AnyHost is the name in AuthOptions.Keys of the keys of hosts that have none of their own.
const AnyHost = ""

// HostKeys are the secrets that a target shares with a host.
type HostKeys struct {
	Host auth.Key // the host's: it must prove to hold it
	// Controller is the key with which the target proves itself to a host that asks for it. With a zero key the target
	// cannot, and such a host disconnects.
	Controller auth.Key
}

// AuthOptions make a target demand DH-HMAC-CHAP of hosts before they may use a queue. Discovery subsystems are served
// without.
type AuthOptions struct {
	Keys   map[string]HostKeys // by host NQN, or AnyHost; a host without is refused
	Hashes []auth.Hash         // acceptable, most wanted first; empty: auth.ControllerOptions' default
	Groups []auth.Group        // likewise
	// Exchanges bounds the messages that are processed at a time. Each takes a processor, for up to a tenth of a second
	// where the group is large. Others wait, within TargetOptions.Handshake. 0 means half of the processors.
	Exchanges int
}

func (o *AuthOptions) mostExchanges() int {
	if o != nil && o.Exchanges > 0 {
		return o.Exchanges
	}
	return max(runtime.GOMAXPROCS(0)/2, 1)
}

// checkEntries makes a machine of every entry, so that an entry that cannot be served is found before a host comes.
func (o *AuthOptions) checkEntries() error {
	if o == nil {
		return nil
	}
	for host, k := range o.Keys {
		name := host
		if host == AnyHost {
			name = "nqn.2014-08.org.nvmexpress:any"
		} else if err := fabrics.CheckNQN(host); err != nil {
			return fmt.Errorf("authentication: %w", err)
		}
		if _, err := o.newResponder(name, fabrics.DiscoveryNQN, k, nil); err != nil {
			return fmt.Errorf("authentication of host %q: %w", host, err)
		}
	}
	return nil
}

func (o *AuthOptions) newResponder(host, subsystem string, k HostKeys, s *auth.Sequence) (*auth.Responder, error) {
	return auth.NewResponder(auth.ControllerOptions{HostNQN: host, SubsystemNQN: subsystem, Key: k.Host,
		ControllerKey: k.Controller, Hashes: o.Hashes, Groups: o.Groups, Sequence: s})
}

// errUnauthenticated cuts a connection off whose host does not authenticate in time.
var errUnauthenticated = errors.New("the host did not authenticate in time")

// maxAuthReceive is the most bytes that an Authentication Receive may allocate; hosts ask for auth.MaxMessage.
const maxAuthReceive = 4 * auth.MaxMessage

// demandAuthentication makes the host of the connection authenticate, if the target wants that of this host. It returns
// the bits that say so in Connect's dword 0. The receiving goroutine calls it before join.
func (c *connection) demandAuthentication(a *association) (uint32, error) {
	c.auth = nil // of a Connect on this connection that was refused
	c.authenticates.Stop()
	o := c.target.opt.Auth
	if o == nil || a.sub.IsDiscovery() {
		return 0, nil
	}
	r, err := o.newResponder(a.host.NQN, a.sub.NQN(), o.keysOfHost(a.host.NQN), &c.target.sequence)
	if err != nil { // unreachable: check has seen the keys, and Connect the names
		return 0, fmt.Errorf("prepare to authenticate: %w", err)
	}
	c.auth = r
	c.authenticates.Start()
	return fabrics.WantsAuthentication, nil
}

func (o *AuthOptions) keysOfHost(host string) HostKeys {
	if k, ok := o.Keys[host]; ok {
		return k
	}
	return o.Keys[AnyHost]
}

// knowsHost reports whether a host could authenticate, if it has to.
func (o *AuthOptions) knowsHost(host string) bool {
	return o == nil || !o.keysOfHost(host).Host.IsZero()
}

// authenticated reports whether the queue may be used.
func (c *connection) authenticated() bool { return c.auth == nil || c.usable.Load() }

// startAuthentication gives an Authentication Send or Receive to a runner: it may take long, and other commands of a
// host that authenticates again must not wait for it. The receiving goroutine calls it.
func (c *connection) startAuthentication(cmd *command) error {
	switch {
	case c.auth == nil:
		return c.refuseCommand(cmd, nvme.InvalidOpcode.Final())
	case !c.authBusy.CompareAndSwap(false, true): // hosts wait for one before they send the next
		return c.refuseCommand(cmd, nvme.CommandSequenceError.Final())
	}
	c.startCommand(cmd)
	return nil
}

// proceedAuthentication executes an Authentication Send or Receive. A runner calls it, one at a time.
func (c *connection) proceedAuthentication(cmd *command) {
	st, ok := c.authenticate(cmd)
	if !ok {
		c.settleMessage(&message{cmd: cmd}, net.ErrClosed)
		return
	}
	authenticated := c.auth.Authenticated()
	if authenticated {
		if err := c.admitHost(); err != nil {
			c.log.Warn("connect refused", "host", c.association.host.NQN, "queue", c.queue, "error", err)
			c.settleMessage(&message{cmd: cmd}, net.ErrClosed)
			c.cutConnection(nil)
			return
		}
	}
	c.usable.Store(authenticated)
	c.authBusy.Store(false) // before the host sees the answer
	cmd.cpl = nvme.NewCompletion(cmd.cmd.CID(), st)
	_ = c.answerCommand(cmd, (*stream.Outbox[message]).Send)
}

// authenticate returns the status of the command. ok is false where the connection ended meanwhile, so that there is no
// status.
func (c *connection) authenticate(cmd *command) (st nvme.Status, ok bool) {
	n, ok := fabrics.ParseAuth(&cmd.cmd)
	switch {
	case !ok:
		return nvme.InvalidField.Final(), true
	case fabrics.Type(&cmd.cmd) == fabrics.TypeAuthReceive:
		return c.authenticationReceive(cmd, n), true
	case cmd.cmd.SGL().Type != nvme.SGLDataBlockOffset:
		return nvme.InvalidSGLType.Final(), true
	}
	select {
	case c.target.exchanges <- struct{}{}:
	case <-c.ctx.Done():
		return 0, false
	}
	was := c.auth.Authenticated()
	err := c.auth.Send(cmd.data)
	<-c.target.exchanges
	switch {
	case err != nil:
		c.log.Warn("authentication failed", "host", c.association.host.NQN, "queue", c.queue, "error", err)
	case c.auth.Authenticated() && !was && c.queue == 0:
		c.log.Info("host authenticated", "host", c.association.host.NQN, "by", c.auth.Agreed().String())
	}
	// A transaction has as long as the connection had until Connect, the first and each that follows.
	if c.auth.Authenticated() && !c.auth.InProgress() {
		c.authenticates.Stop()
	} else if !c.authenticates.Running() {
		c.authenticates.Start()
	}
	c.endIfBroken()
	return nvme.Success, true
}

func (c *connection) authenticationReceive(cmd *command, n uint32) nvme.Status {
	switch {
	case cmd.cmd.SGL().Type != nvme.SGLTransportDataBlock:
		return nvme.InvalidSGLType.Final()
	case n > maxAuthReceive:
		return nvme.InvalidField.Final()
	case !c.budget.TakeWithoutWaiting(int(n)):
		return nvme.CommandInterrupted
	}
	cmd.budget = int(n)
	out, err := c.auth.Receive(int(n))
	if err != nil {
		return nvme.InvalidField.Final()
	}
	cmd.want.Direction, cmd.want.Length = nvme.ControllerToHost, n
	cmd.holdBuffer(c.target.pool.Take(int(n)), int(n))
	clear(cmd.data[copy(cmd.data, out):])
	c.endIfBroken()
	return nvme.Success
}

// endIfBroken makes the answer to the current command the last one of the connection, once authentication has failed
// for good.
func (c *connection) endIfBroken() {
	if c.auth.Broken() {
		c.draining.Store(true)
	}
}
