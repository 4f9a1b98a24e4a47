package lifecycle

import (
	"time"

	"github.com/millrace/millrace/trainmgr/control/record"
)

// Duty is what the owner has to do next for a job and cannot do at once: it takes calls to nodes, or to etcd.
type Duty uint8

// The duties, and the events that answer them.
const (
	Rest            Duty = iota // nothing until the next event, or until Review
	Prepare                     // have the nodes prepare Job.Preparing: Prepared or PrepareFailed, Delayed meanwhile
	Measure                     // measure P of the drives: Measured or Fail, Delayed meanwhile
	Store                       // write the state: Storing, and StoreFailed if it was not written
	Commit                      // write the state that follows: StoringNext, then Committed or CommitFailed
	Confirm                     // make the ledger's acknowledgements durable: Confirmed
	StoreGeneration             // write the data of Preparing: GenerationStored or GenerationDropped
	Retire                      // the job has ended and is stored so: have its nodes forget it
)

// String is the duty as scripts and logs show it.
func (d Duty) String() string {
	return [...]string{"rest", "prepare", "measure", "store", "commit", "confirm", "store generation", "retire"}[d]
}

// storeEvery is the least time between two writes of a state that changes in small things only.
const storeEvery = time.Second

// generationStep is how far a further generation is.
type generationStep uint8

const (
	found    generationStep = iota // its partitions are known
	stored                         // its data are in etcd: a later leader will not take its number for another
	prepared                       // its nodes are prepared; the state that has it is not stored yet
)

// Review has the end of a delivered job looked into again: time has passed, or new partitions may have appeared.
func (j *Job) Review() { j.unconfirmed = j.delivered && j.next == nil && !j.Phase().Ended() }

// Duty returns what to do next.
func (j *Job) Duty(now time.Time) Duty {
	ended := j.Phase().Ended()
	switch {
	case j.unconfirmed && !ended:
		return Confirm
	case j.hasNextState():
		return Commit
	case j.unwritten && (j.urgent || now.Sub(j.writtenAt) >= storeEvery):
		return Store
	case ended && !j.unwritten:
		return Retire
	case ended:
		return Rest
	case j.Phase() == record.Preparing:
		return Prepare
	case j.Phase() == record.Measuring:
		return Measure
	case j.next != nil && j.nextStep == found:
		return StoreGeneration
	case j.next != nil:
		return Prepare
	}
	return Rest
}

// hasNextState reports whether the job goes on as soon as the state that follows is durable.
func (j *Job) hasNextState() bool {
	return j.Phase() == record.Measuring && j.measured || j.next != nil && j.nextStep == prepared && !j.Phase().Ended()
}

// Unwritten reports whether the state differs from what is stored.
func (j *Job) Unwritten() bool { return j.unwritten }

// Storing returns the state to write, which is taken to be stored from now on. Say StoreFailed if it was not.
func (j *Job) Storing(now time.Time) record.State {
	j.state.Stays, j.state.Runs = j.ends(), j.runs()
	j.unwritten, j.urgent, j.writtenAt = false, false, now
	return j.state
}

// StoringNext returns the state in which the job will be once that is durable, to be written before anything follows
// from it. A job that has ended meanwhile stays ended.
func (j *Job) StoringNext(now time.Time) record.State {
	next := j.Storing(now)
	if !j.hasNextState() {
		return next
	}
	next.Phase, next.Why = record.Running, ""
	if j.next != nil {
		next.Generations, next.Taken = j.withNext(), j.next.Number+1
	}
	return next
}

// StoreFailed says that what Storing or StoringNext returned was not written, as far as is known.
func (j *Job) StoreFailed() { j.unwritten, j.urgent = true, j.Phase().Ended() }

// Prepared says that the nodes are prepared for Preparing.
func (j *Job) Prepared() {
	switch {
	case j.Phase() == record.Preparing:
		j.transition(onPrepared, "")
	case j.next != nil:
		j.nextStep = prepared
	}
}

// PrepareFailed says that the nodes cannot be prepared. A job that waits for a further generation tries again.
func (j *Job) PrepareFailed(why string, now time.Time) {
	switch {
	case j.Phase() == record.Preparing:
		j.Fail(why, now)
	case j.next != nil:
		j.next = nil
		j.wait(why)
	}
}

// Delayed says what preparing or measuring waits for.
func (j *Job) Delayed(why string) {
	switch j.Phase() {
	case record.Preparing, record.Measuring:
		j.transition(onDelayed, why)
	default:
		j.wait(why)
	}
}

func (j *Job) wait(why string) {
	if j.Phase().Begun() {
		j.transition(onWaits, why)
	}
}

// Committed says that what StoringNext returned is durable: the job runs. A leader that found it being measured would
// begin with nothing delivered, and one that did not know its generation would take the partitions again; so nothing
// can be acknowledged before.
func (j *Job) Committed() {
	switch {
	case !j.hasNextState(): // the job has ended meanwhile
	case j.next != nil:
		j.beginNext()
	default:
		j.measured = false
		j.machine.emit(BeginEpoch{Job: j.ID, Epoch: j.FirstEpoch})
		j.transition(onCommitted, "")
	}
}

// CommitFailed says that what StoringNext returned may not be durable. A further generation is looked for again.
func (j *Job) CommitFailed() {
	j.StoreFailed()
	j.next = nil
}
