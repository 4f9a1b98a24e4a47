package protocol

import (
	"fmt"
	"time"
)

// finishedTime is how long the end of a rank that has finished waits for the control plane, longer than an election
// takes: the job stays for minutes for a rank that announced its end and did not report it.
const finishedTime = 20 * time.Second

// departure is the end of a rank.
type departure struct {
	leaving     bool
	left        bool
	reported    bool // The report of the end has succeeded or failed.
	calling     bool
	ticket      uint64    // The rank waits until this number of acknowledgements is durable.
	deadline    time.Time // The rank leaves at this time at the latest. Zero means that it does not leave, or has left.
	err         error
	reportError error // The report of the end failed for this reason.
}

// Finished reports whether every mini-batch of every epoch is acknowledged.
func (m *Machine) Finished() bool { return m.through }

// Leave makes the acknowledgements durable, and then reports the end of the rank to the control plane: the rank has
// finished, or its launcher detaches. Left reports whether Leave has succeeded or its time has elapsed. The caller has
// ended the delivery of the epoch.
func (m *Machine) Leave(now time.Time) {
	limit := closeTime
	if m.Finished() {
		limit = finishedTime
	}
	m.departure = departure{leaving: true, ticket: m.Flush(now), deadline: now.Add(limit)}
	m.advance(now)
}

// Left reports whether the rank has left. err is not nil if acknowledgements may not be durable. reportError is not nil
// if the report of the end failed.
func (m *Machine) Left() (left bool, err, reportError error) {
	return m.departure.left, m.departure.err, m.departure.reportError
}

// advanceDeparture takes the rank one step towards its end.
func (m *Machine) advanceDeparture(now time.Time) {
	d := &m.departure
	if !d.leaving {
		return
	}
	late := !now.Before(d.deadline)
	if !d.calling && !d.reported {
		durable, err := m.Flushed(d.ticket)
		if late && err == nil && !durable {
			err = errLate
		}
		switch {
		case err != nil:
			d.reported, d.err = true, fmt.Errorf("the last acknowledgements may not be durable: %w", err)
		case durable:
			reason := ReasonDetach
			if m.Finished() {
				reason = ReasonDone
			}
			d.calling = true
			m.emit(Release{Session: m.session, Reason: reason})
		}
	}
	if d.calling && late {
		d.calling, d.reported, d.reportError = false, true, errLate
	}
	if d.reported {
		d.leaving, d.left, d.deadline = false, true, time.Time{}
		m.emit(Wake{})
	}
}

// noteDeparted records the result of the report of the end.
func (m *Machine) noteDeparted(err error, now time.Time) {
	m.departure.calling, m.departure.reported, m.departure.reportError = false, true, err
	m.advance(now)
}
