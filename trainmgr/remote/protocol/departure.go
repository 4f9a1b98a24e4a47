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
	leaving  bool
	left     bool
	told     bool // the control plane was told, or cannot be told
	calling  bool
	ticket   uint64    // counts the acknowledgements that are to become durable
	deadline time.Time // zero: the rank does not leave, or has left
	err      error
	untold   error // why the control plane was not told
}

// Finished reports whether every mini-batch of every epoch is acknowledged.
func (m *Machine) Finished() bool { return m.through }

// Leave makes the acknowledgements durable, and then tells the control plane that the rank ends: that it is through,
// or that the launcher detaches. Left reports when that is done, or has taken too long. No epoch is being delivered.
func (m *Machine) Leave(now time.Time) {
	limit := closeTime
	if m.Finished() {
		limit = finishedTime
	}
	m.departure = departure{leaving: true, ticket: m.Flush(now), deadline: now.Add(limit)}
	m.advance(now)
}

// Left reports whether the rank has left. err says that acknowledgements may not be durable, and untold that the
// control plane was not told of the end.
func (m *Machine) Left() (left bool, err, untold error) {
	return m.departure.left, m.departure.err, m.departure.untold
}

// advanceDeparture takes the rank one step towards its end.
func (m *Machine) advanceDeparture(now time.Time) {
	d := &m.departure
	if !d.leaving {
		return
	}
	late := !now.Before(d.deadline)
	if !d.calling && !d.told {
		durable, err := m.Flushed(d.ticket)
		if late && err == nil && !durable {
			err = errLate
		}
		switch {
		case err != nil:
			d.told, d.err = true, fmt.Errorf("the last acknowledgements may not be durable: %w", err)
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
		d.calling, d.told, d.untold = false, true, errLate
	}
	if d.told {
		d.leaving, d.left, d.deadline = false, true, time.Time{}
		m.emit(Wake{})
	}
}

// noteDeparted says that the control plane was told of the end, or could not be told.
func (m *Machine) noteDeparted(err error, now time.Time) {
	m.departure.calling, m.departure.told, m.departure.untold = false, true, err
	m.advance(now)
}
