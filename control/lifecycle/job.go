package lifecycle

import "github.com/millrace/millrace/control/record"

// Job is the life of one job. Every part holds one subject, and its methods are the events and questions of this
// subject. A Job has the fields of its [Terms]. Job itself holds what the owner has to do ([Job.Duty]), which depends
// on all parts.
type Job struct {
	*life        // terms, phase, and the state as it is stored
	*rankSet     // ranks: grants, runs, announced ends
	*attendance  // launchers that come, call and go
	*room        // whether nodes are prepared for the job
	*editionList // epochs and the data that they go over
	*delivery    // what is acknowledged, and whether the job ends
	*rates       // P, T and the number of drives
}

// newJob makes the parts of a job.
func newJob(m *Machine, t Terms, state record.State) *Job {
	l := &life{Terms: t, machine: m, state: state}
	ranks := &rankSet{life: l, ranks: make([]Rank, t.Ranks)}
	editions, place := &editionList{life: l}, &room{life: l}
	if state.Suspended {
		place.has = roomLeaving
	}
	return &Job{
		life: l, rankSet: ranks, attendance: &attendance{life: l, members: ranks, room: place}, room: place,
		editionList: editions,
		delivery:    &delivery{life: l, editions: editions, members: ranks}, rates: &rates{life: l},
	}
}

// Submission returns the state of a job that is being submitted: store it, then Add it.
func Submission(first record.Edition) record.State {
	return record.State{Phase: record.Preparing, Editions: []record.Edition{first}, Taken: 1, Unattached: true}
}

// Add takes a stored job: a new submission, or a job of an earlier leader. Where that leader died while it measured P
// the nodes are prepared again.
func (m *Machine) Add(t Terms, stored record.State) *Job {
	j := newJob(m, t, stored)
	m.jobs = append(m.jobs, j)
	m.byID[t.ID] = j
	if j.Phase().Ended() {
		return j
	}
	m.runningByName[t.Name] = j
	if j.Phase() == record.Measuring {
		j.transition(onNewLeader, "")
	}
	if j.Phase().Begun() {
		j.restoreEnds()
		j.restoreRuns()
	}
	return j
}

// Conclusion holds what the leader keeps of a job that has ended.
type Conclusion struct {
	Status      []byte // apiv1.JobStatus
	Token       []byte // Token has the acknowledged mini-batches of an abandoned job.
	Redelivered uint64
}

// Conclude keeps the conclusion of a job that has ended, and forgets the job's launchers.
func (j *Job) Conclude(c Conclusion) {
	j.state.Final, j.state.Token, j.state.Redelivered = c.Status, c.Token, c.Redelivered
	j.machine.launchers.Forget(j.ID, len(j.ranks))
	for i := range j.ranks {
		j.ranks[i].offers = nil
	}
	j.wakeAllRanks()
}
