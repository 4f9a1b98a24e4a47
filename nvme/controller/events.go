package controller

import (
	"context"
	"slices"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller/health"
)

// Bits of the Asynchronous Event Configuration feature. Bits 7:0 are those of the critical warning.
const (
	noticeNamespace = 1 << 8
	noticeFirmware  = 1 << 9
)

// events is a controller's queue of asynchronous events. The controller's mu guards it.
type events struct {
	waiting []chan uint32     // one for each outstanding request, oldest first
	pending []nvme.AsyncEvent // raised while no request waited; no event twice
	masked  []nvme.AsyncEvent // reported, and their log page not read since
	changed []uint32          // namespaces that changed since log page 04h was read
	raised  uint64            // how often something has happened, whether it was reported or not
}

func (e *events) forgetReports() { *e = events{waiting: e.waiting, raised: e.raised} }

// isEnabled reports whether a configuration (feature 0Bh) asks for an event.
func isEnabled(ev nvme.AsyncEvent, config uint32) bool {
	switch ev {
	case nvme.EventNamespaceChanged:
		return config&noticeNamespace != 0
	case eventDiscoveryChanged:
		return config&noticeDiscovery != 0
	case nvme.EventFirmware:
		return config&noticeFirmware != 0
	case nvme.EventReliability:
		return config&nvme.WarningReliability != 0
	case nvme.EventTemperature:
		return config&nvme.WarningTemperature != 0
	case nvme.EventSpare:
		return config&nvme.WarningSpare != 0
	}
	return false
}

// raiseEvent reports an event to the oldest waiting request, or keeps it for the next. An event whose log page has not
// been read since its last report is not reported again: the page will have it.
func (c *Controller) raiseEvent(ev nvme.AsyncEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raiseLocked(ev)
}

// raiseLocked is raiseEvent. The controller's mu is held.
func (c *Controller) raiseLocked(ev nvme.AsyncEvent) {
	e := &c.events
	e.raised++
	if !isEnabled(ev, c.features.AsyncEvents) || slices.Contains(e.masked, ev) || slices.Contains(e.pending, ev) {
		return
	}
	if len(e.waiting) == 0 {
		e.pending = append(e.pending, ev)
		return
	}
	e.masked = append(e.masked, ev)
	e.waiting[0] <- ev.Word()
	e.waiting = e.waiting[1:]
}

// rearmEvents re-arms the events that a log page reports, unless something has happened since raised had a value: the
// page was made after that and may not have it.
func (c *Controller) rearmEvents(lid uint8, raised uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &c.events
	if e.raised != raised {
		return false
	}
	e.masked = slices.DeleteFunc(e.masked, func(ev nvme.AsyncEvent) bool { return ev.Log == lid })
	e.pending = slices.DeleteFunc(e.pending, func(ev nvme.AsyncEvent) bool { return ev.Log == lid })
	if lid == nvme.LogChangedNamespaces {
		e.changed = nil
	}
	return true
}

func (c *Controller) namespaceChanged(nsid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.events.changed, nsid) {
		c.events.changed = append(c.events.changed, nsid)
		slices.Sort(c.events.changed)
	}
	c.raiseLocked(nvme.EventNamespaceChanged)
}

// healthChanged raises what the sensors' values warn of, by this controller's thresholds.
func (c *Controller) healthChanged(h health.Sensors) {
	w := c.criticalWarning(h)
	for bit, ev := range map[uint8]nvme.AsyncEvent{
		nvme.WarningSpare: nvme.EventSpare, nvme.WarningTemperature: nvme.EventTemperature,
		nvme.WarningReliability: nvme.EventReliability,
	} {
		if w&bit != 0 {
			c.raiseEvent(ev)
		}
	}
}

func (c *Controller) criticalWarning(h health.Sensors) uint8 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.CriticalWarning(c.features.Under, c.features.Over)
}

// asyncEventRequest waits for an event. It completes with Command Abort Requested when ctx ends.
func (c *Controller) asyncEventRequest(ctx context.Context) (uint32, nvme.Status) {
	c.mu.Lock()
	e := &c.events
	if len(e.pending) > 0 {
		ev := e.pending[0]
		e.pending = e.pending[1:]
		e.masked = append(e.masked, ev)
		c.mu.Unlock()
		return ev.Word(), nvme.Success
	}
	if len(e.waiting) == AsyncEventLimit {
		c.mu.Unlock()
		return 0, nvme.AsyncEventLimitExceeded
	}
	ch := make(chan uint32, 1)
	e.waiting = append(e.waiting, ch)
	c.mu.Unlock()
	select {
	case word := <-ch:
		return word, nvme.Success
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case word := <-ch: // raised in the same moment
		return word, nvme.Success
	default:
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(o chan uint32) bool { return o == ch })
	return 0, nvme.CommandAborted
}
