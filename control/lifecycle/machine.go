package lifecycle

import (
	"slices"
	"time"

	"github.com/millrace/millrace/control/presence"
)

// Config holds the settings that apply to all jobs.
type Config struct {
	AbandonAfter time.Duration // a job ends if none of its ranks calls for this time; 0: never
	AttachWithin time.Duration // a job ends if none of its ranks attaches for this time; 0: AbandonAfter
	Presence     presence.Options
}

// Machine holds the lives of all jobs of a cluster.
type Machine struct {
	config           Config
	jobs             []*Job // in the order in which they were added; ended ones too
	byID             map[string]*Job
	runningByName    map[string]*Job // the jobs that have not ended
	launchers        *presence.Tracker
	lastAbandonCheck time.Time // when Tick last looked for abandoned jobs
	effects          []Effect
}

// New makes a machine without jobs.
func New(c Config) *Machine {
	if c.Presence.Silence <= 0 {
		c.Presence.Silence = presence.DefaultSilence
	}
	return &Machine{
		config: c, byID: map[string]*Job{}, runningByName: map[string]*Job{}, launchers: presence.New(c.Presence),
	}
}

// Ready returns the effects of the events since the last call, in their order.
func (m *Machine) Ready() []Effect {
	effects := m.effects
	m.effects = nil
	return effects
}

func (m *Machine) emit(e Effect) { m.effects = append(m.effects, e) }

// Job returns a job by its ID, or nil if the ID is not known.
func (m *Machine) Job(id string) *Job { return m.byID[id] }

// Find returns a job by its ID or its name: the running job of that name, else the job of that name that ended last.
// It returns nil if there is no such job.
func (m *Machine) Find(name string) *Job {
	if j := m.Job(name); j != nil {
		return j
	}
	if j := m.runningByName[name]; j != nil {
		return j
	}
	var last *Job
	for _, j := range m.jobs {
		if j.Name == name && (last == nil || j.endedAfter(last)) {
			last = j
		}
	}
	return last
}

// endedAfter reports whether a job ended after another job of its name. Ends are known to the second; of two jobs that
// ended in the same second, the job that was submitted later ended later.
func (j *Job) endedAfter(other *Job) bool {
	if order := j.state.Ended.Compare(other.state.Ended); order != 0 {
		return order > 0
	}
	return j.Submitted.After(other.Submitted)
}

// Running returns the job of a name that has not ended, or nil if there is none.
func (m *Machine) Running(name string) *Job { return m.runningByName[name] }

// Active counts the jobs that have not ended.
func (m *Machine) Active() int { return len(m.runningByName) }

// Ended returns the jobs whose end is stored, the oldest first, without the newest keep.
func (m *Machine) Ended(keep int) []*Job {
	var ended []*Job
	for _, j := range m.jobs {
		if j.Phase().Ended() && !j.unwritten {
			ended = append(ended, j)
		}
	}
	slices.SortStableFunc(ended, func(a, b *Job) int { return a.state.Ended.Compare(b.state.Ended) })
	return ended[:max(0, len(ended)-keep)]
}

// Forget drops a job that has ended.
func (m *Machine) Forget(id string) {
	delete(m.byID, id)
	m.jobs = slices.DeleteFunc(m.jobs, func(j *Job) bool { return j.ID == id })
}

// ConnectionClosed says that a launcher's connection is closed.
func (m *Machine) ConnectionClosed(c presence.Conn, now time.Time) { m.launchers.Closed(c, now) }

// Tick lets time pass. It detaches the ranks whose launchers are gone, and about once a second it looks which jobs no
// rank calls, and ends those that no rank has called for too long.
func (m *Machine) Tick(now time.Time) {
	m.detachDeparted(now)
	if since := now.Sub(m.lastAbandonCheck); since >= 0 && since < time.Second {
		return
	}
	m.lastAbandonCheck = now
	for _, j := range m.jobs {
		if j.Phase().Ended() || j.noteCalls(now) {
			continue
		}
		j.noteSilence()
		if (j.Phase().Begun() || j.Suspended()) && !j.delivered { // a job that is delivered ends by itself
			j.endIfAbandoned(now)
		}
	}
}

// detachDeparted detaches the ranks whose launchers are gone.
func (m *Machine) detachDeparted(now time.Time) {
	for _, d := range m.launchers.Tick(now) {
		j := m.Job(d.Job)
		if j == nil || j.Phase().Ended() {
			continue
		}
		j.ranks[d.Number].offers = nil
		m.emit(DetachRank{Job: d.Job, Rank: d.Number, Why: d.Why, Last: d.Last})
	}
}
