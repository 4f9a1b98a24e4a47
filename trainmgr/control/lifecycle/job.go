package lifecycle

import (
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// Terms are the values that a job's specification fixes for the whole of the job's life.
type Terms struct {
	ID            string
	Name          string
	Submitted     time.Time
	Ranks         int
	Epochs        uint64        // of every edition
	FirstEpoch    uint64        // in which the job begins: that of the token it resumes from
	Follow        bool          // it takes partitions that appear as further editions
	MaxUnattended time.Duration // without a call of any rank; 0: Config.AbandonAfter
}

// Job is the life of one job.
type Job struct {
	Terms
	machine *Machine
	state   record.State
	ranks   []Rank

	measured        bool            // P is known; the job runs once the state that says so is stored
	nextEdition     *record.Edition // a further edition that is being stored and prepared; nil: none
	nextEditionStep editionStep     // how far nextEdition is
	delivered       bool            // every mini-batch of every epoch of every edition is acknowledged
	deliveredAt     time.Time       // when the last mini-batch was acknowledged
	unconfirmed     bool            // the job has the duty Confirm: it is delivered, and may end
	unwritten       bool            // the state differs from the stored one
	storeAtOnce     bool            // the state is to be written at once, not when storeEvery has gone by
	writtenAt       time.Time       // when the state was written last
}

// Submission returns the state of a job that is being submitted: store it, then Add it.
func Submission(first record.Edition) record.State {
	return record.State{Phase: record.Preparing, Editions: []record.Edition{first}, Taken: 1}
}

// Add takes a stored job: a new submission, or a job of an earlier leader. Where that leader died while it measured P
// the nodes are prepared again.
func (m *Machine) Add(t Terms, stored record.State) *Job {
	j := &Job{Terms: t, machine: m, state: stored, ranks: make([]Rank, t.Ranks)}
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

// State returns the job's state in the form in which it is stored. Its maps and slices are the job's: do not change
// them.
func (j *Job) State() record.State { return j.state }

// Phase returns the job's phase.
func (j *Job) Phase() record.Phase { return j.state.Phase }

// Words returns the phase and its reason as users read them.
func (j *Job) Words() string { return j.state.Phase.Words(j.state.Why) }

// Delivered reports whether every mini-batch of every epoch there is is acknowledged.
func (j *Job) Delivered() bool { return j.delivered }

// Editions returns the editions that ranks may be in, in their order.
func (j *Job) Editions() []record.Edition { return j.state.Editions }

// EditionOf returns the edition of an epoch. It reports false where there is none any more, or none yet.
func (j *Job) EditionOf(epoch uint64) (record.Edition, bool) {
	for _, e := range j.state.Editions {
		if epoch >= e.First && epoch < e.First+j.Epochs {
			return e, true
		}
	}
	return record.Edition{}, false
}

// EndEpoch returns the number of the epoch after the last known one.
func (j *Job) EndEpoch() uint64 {
	if n := len(j.state.Editions); n > 0 {
		return j.state.Editions[n-1].First + j.Epochs
	}
	return 0
}

// hasEditionOf reports whether an edition, or the next one, has the digest.
func (j *Job) hasEditionOf(digest dataset.Digest) bool {
	return j.nextEdition != nil && j.nextEdition.Digest == digest ||
		slices.ContainsFunc(j.state.Editions, func(e record.Edition) bool { return e.Digest == digest })
}

// Cancel ends the job at its owner's request. It changes nothing if the job has ended.
func (j *Job) Cancel(now time.Time) { j.endJob(onCancelled, "", now) }

// Fail ends a job that cannot go on.
func (j *Job) Fail(why string, now time.Time) { j.endJob(onFailed, why, now) }

// endJob ends the job. Its ledger and launchers remain until Conclude.
func (j *Job) endJob(on phaseEvent, why string, now time.Time) {
	if j.Phase().Ended() || !j.transition(on, why) {
		return
	}
	j.state.Ended = now.UTC().Truncate(time.Second)
	delete(j.machine.runningByName, j.Name)
	j.machine.emit(EndJob{Job: j.ID, Phase: j.Phase()})
}

// Conclusion holds what the leader keeps of a job that has ended.
type Conclusion struct {
	Status      []byte // apiv1.JobStatus
	Token       []byte // of an abandoned job: its acknowledged mini-batches
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

func (j *Job) wakeAllRanks() {
	for i := range j.ranks {
		j.machine.emit(WakeRank{Job: j.ID, Rank: uint32(i)})
	}
}
