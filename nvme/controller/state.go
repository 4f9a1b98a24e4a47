package controller

import (
	"github.com/millrace/millrace/internal/transition"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/features"
)

// state is a controller's state, as CC and CSTS show it.
type state uint8

const (
	stateDisabled     state = iota // CC.EN 0, CSTS.RDY 0: not enabled yet
	stateReady                     // CSTS.RDY 1: executes commands
	stateDraining                  // reset: commands end; RDY becomes 0 after the last
	stateShuttingDown              // commands end and the flash is flushed, SHST 01b
	stateShutDown                  // SHST 10b: the power may go
	stateFailed                    // CSTS.CFS: only a reset leads out
	stateClosed                    // the association is over
)

type event uint8

const (
	eventEnable   event = iota // CC.EN becomes 1 with a configuration that this controller can run with
	eventDisable               // CC.EN becomes 0
	eventDrained               // the last outstanding command has ended
	eventShutdown              // CC.SHN becomes non-zero
	eventFlushed               // flash is flushed after the last command
	eventFail                  // the keep alive timer expired, or the configuration is not possible
	eventClose                 // the association ends
)

var stateNames = [...]string{"disabled", "ready", "draining", "shutting down", "shut down", "failed", "closed"}

var eventNames = [...]string{"enable", "disable", "drained", "shutdown", "flushed", "fail", "close"}

func (s state) String() string { return stateNames[s] }
func (e event) String() string { return eventNames[e] }

// transitions is the machine of a controller. docs/architecture.md shows it.
var transitions = transition.Table[state, event]{
	stateDisabled: {
		eventEnable: stateReady, eventShutdown: stateShuttingDown, eventFail: stateFailed, eventClose: stateClosed,
	},
	stateReady: {
		eventDisable: stateDraining, eventShutdown: stateShuttingDown, eventFail: stateFailed, eventClose: stateClosed,
	},
	stateDraining: {eventDrained: stateDisabled, eventFail: stateFailed, eventClose: stateClosed},
	stateShuttingDown: {
		eventFlushed: stateShutDown, eventDisable: stateDraining, eventFail: stateFailed, eventClose: stateClosed,
	},
	stateShutDown: {eventDisable: stateDraining, eventFail: stateFailed, eventClose: stateClosed},
	stateFailed:   {eventDisable: stateDraining, eventClose: stateClosed},
	stateClosed:   {},
}

// transition is the only function that changes the state. It reports whether the table allows the event; where it does
// not, the state stays. c.mu is held.
func (c *Controller) transition(on event) bool {
	next, ok := transitions.Next(c.state, on)
	if !ok {
		return false
	}
	c.sub.log.Debug("controller state", "cntlid", c.id, "from", c.state, "event", on, "to", next)
	c.state = next
	return true
}

// Property offsets (Base Specification 2.0, figure 35).
const (
	PropertyCAP   = 0x00 // 8 bytes
	PropertyVS    = 0x08
	PropertyCC    = 0x14
	PropertyCSTS  = 0x1c
	PropertyNSSR  = 0x20
	PropertyCRTO  = 0x68
	PropertyCMBSZ = 0x3c  // SPDK asks; there is no controller memory buffer
	PropertyPMR   = 0xe00 // SPDK asks; there is no persistent memory region
)

// Fields of CAP.
const (
	capContiguous = 1 << 16 // CQR
	capTimeout    = 20      // TO: 10 s in units of 500 ms, bits 31:24
	capCSSNVM     = 1 << 37
	capCSSMany    = 1 << 43 // CSS bit 6: without it Linux ignores namespaces whose command set is not NVM
	capCSSAdmin   = 1 << 44 // CSS bit 7: admin commands only can be selected
)

// Values of CC.CSS.
const (
	cssNVM   = 0
	cssMany  = 6
	cssAdmin = 7
)

// cc is the controller configuration property.
type cc uint32

func (v cc) isEnabled() bool   { return v&1 != 0 }
func (v cc) css() int          { return int(v >> 4 & 7) }
func (v cc) shutdownKind() int { return int(v >> 14 & 3) }

// isPossible reports whether this controller can run with the configuration: queue entries of 64 and 16 bytes, pages of
// 4 KiB, round robin arbitration, and a command set selection that CAP offers.
func (v cc) isPossible() bool {
	mps, ams, sq, cq := v>>7&15, v>>11&7, v>>16&15, v>>20&15
	return mps == 0 && ams == 0 && sq == 6 && cq == 4 && (v.css() == cssNVM || v.css() == cssMany || v.css() == cssAdmin)
}

// DefaultCC enables a controller with every command set. Linux writes this value.
const DefaultCC = 6<<16 | 4<<20 | cssMany<<4 | 1

// PropertyGet reads a property, as the Fabrics command Property Get does; size is 4 or 8 bytes.
func (c *Controller) PropertyGet(offset uint32, size int) (uint64, nvme.Status) {
	if offset == PropertyCAP {
		if size != 8 {
			return 0, nvme.InvalidField.Final()
		}
		return MaxDepth - 1 | capContiguous | capTimeout<<24 | capCSSNVM | capCSSMany | capCSSAdmin, nvme.Success
	}
	if size != 4 {
		return 0, nvme.InvalidField.Final()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch offset {
	case PropertyVS:
		return nvme.VersionSpec, nvme.Success
	case PropertyCC:
		return uint64(c.cc), nvme.Success
	case PropertyCSTS:
		return uint64(c.statusProperty()), nvme.Success
	case PropertyNSSR, PropertyCMBSZ, PropertyPMR:
		return 0, nvme.Success
	}
	return 0, nvme.InvalidField.Final()
}

// statusProperty returns the controller status property. c.mu is held.
func (c *Controller) statusProperty() uint32 {
	const rdy, cfs, shst = 1, 1 << 1, 2
	switch c.state {
	case stateReady, stateDraining:
		return rdy
	case stateShuttingDown:
		return uint32(c.cc)&rdy | 1<<shst
	case stateShutDown:
		return uint32(c.cc)&rdy | 2<<shst
	case stateFailed, stateClosed:
		return cfs
	}
	return 0
}

// PropertySet writes a property, as the Fabrics command Property Set does. Only CC can be written. It returns at once;
// CSTS shows when a reset or a shutdown is done.
func (c *Controller) PropertySet(offset uint32, size int, value uint64) nvme.Status {
	if offset != PropertyCC || size != 4 || value>>32 != 0 {
		return nvme.InvalidField.Final()
	}
	v := cc(value)
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.cc
	c.cc = v
	if !v.isEnabled() && old.isEnabled() {
		if c.transition(eventDisable) {
			c.resets++
			c.cancelAll(nvme.QueueDeleted)
			resets := c.resets
			c.background(func() { c.finishReset(resets) })
		}
		return nvme.Success
	}
	if v.isEnabled() && !old.isEnabled() {
		switch {
		case v.isPossible():
			c.plain.Store(v.css() == cssNVM)
			c.transition(eventEnable)
		default:
			c.failLocked("configuration is not possible")
		}
	}
	if v.shutdownKind() != 0 && old.shutdownKind() == 0 && c.transition(eventShutdown) {
		c.cancelAll(nvme.QueueDeleted)
		resets := c.resets
		c.background(func() { c.finishShutdown(resets) })
	}
	return nvme.Success
}

// finishReset waits for the commands that a reset has cancelled, and then gives back what the association held. It does
// nothing after a later reset, which drains itself.
func (c *Controller) finishReset(resets uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitIdle()
	if c.resets != resets {
		return
	}
	clear(c.queues)
	c.features = features.Default(c.kato, MaxQueues)
	c.events.forgetReports()
	c.dropHoldings()
	c.transition(eventDrained)
}

// finishShutdown waits for the commands that a shutdown has cancelled, and flushes the flash. What comes after a reset
// is not its own: other queues, and maybe another shutdown that has not flushed yet.
func (c *Controller) finishShutdown(resets uint64) {
	c.mu.Lock()
	c.waitIdle()
	if c.resets == resets {
		clear(c.queues)
	}
	c.mu.Unlock()
	if err := c.sub.syncAll(); err != nil {
		c.sub.log.Error("shutdown: flush flash", "cntlid", c.id, "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resets == resets {
		c.transition(eventFlushed)
	}
}

// failLocked puts the controller into the failed state, from which only a reset leads on. c.mu is held.
func (c *Controller) failLocked(why string) {
	if c.transition(eventFail) {
		c.sub.log.Warn("controller failed", "cntlid", c.id, "why", why)
		c.cancelAll(nvme.QueueDeleted)
	}
}
