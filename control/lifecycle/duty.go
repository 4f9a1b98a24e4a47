package lifecycle

import (
	"time"

	"github.com/millrace/millrace/control/record"
)

// Duty is the next work of the owner for a job, which takes time because it calls nodes or etcd.
type Duty uint8

// The duties, and the events that answer them.
const (
	Rest         Duty = iota // nothing until the next event, or until Review
	Prepare                  // have the nodes prepare Job.Preparing: Prepared or PrepareFailed, Delayed meanwhile
	Measure                  // measure P of the drives: Measured or Fail, Delayed meanwhile
	Store                    // write the state: Storing, and StoreFailed if it was not written
	Commit                   // write the state that follows: StoringNext, then Committed or CommitFailed
	Confirm                  // make the ledger's acknowledgements durable: Confirmed
	StoreEdition             // write the data of Preparing: EditionStored or EditionDropped
	Retire                   // the end of the job is stored: have its nodes forget it
	Withdraw                 // have the nodes forget the job, which no rank calls: Withdrawn
)

// String returns the duty's name in scripts and logs.
func (d Duty) String() string {
	return [...]string{"rest", "prepare", "measure", "store", "commit", "confirm", "store edition", "retire",
		"withdraw"}[d]
}

// storeEvery is the least time between two writes of a job's state while its phase does not change.
const storeEvery = time.Second

// Duty returns what to do next.
func (j *Job) Duty(now time.Time) Duty {
	ended := j.Phase().Ended()
	switch {
	case j.unconfirmed && !ended:
		return Confirm
	case j.hasNextState():
		return Commit
	case j.unwritten && (j.storeAtOnce || now.Sub(j.writtenAt) >= storeEvery):
		return Store
	case ended && !j.unwritten:
		return Retire
	case ended:
		return Rest
	case j.has == roomLeaving:
		return Withdraw
	case j.has == roomLeft:
		return Rest
	case j.has == roomReturning, j.Phase() == record.Preparing:
		return Prepare
	case j.Phase() == record.Measuring:
		return Measure
	case j.editionList.next != nil && j.editionList.step == editionFound:
		return StoreEdition
	case j.editionList.next != nil:
		return Prepare
	}
	return Rest
}

// hasNextState reports whether the job goes on as soon as the state that follows is durable.
func (j *Job) hasNextState() bool {
	if j.Phase() == record.Measuring && j.measured {
		return true
	}
	return j.editionList.next != nil && j.editionList.step == editionPrepared && !j.Phase().Ended()
}

// Storing returns the state to write and marks it as stored. Call StoreFailed if the write failed.
func (j *Job) Storing(now time.Time) record.State {
	j.state.Stays, j.state.Runs = j.describeEnds(), j.describeRuns()
	j.unwritten, j.storeAtOnce, j.writtenAt = false, false, now
	return j.state
}

// StoringNext returns the job's next state. The job enters that state once it is durable: write it first, then call
// Committed. A job that has ended meanwhile stays ended.
func (j *Job) StoringNext(now time.Time) record.State {
	next := j.Storing(now)
	if !j.hasNextState() {
		return next
	}
	next.Phase, next.Why = record.Running, ""
	if j.editionList.next != nil {
		next.Editions, next.Taken = j.withNext(), j.editionList.next.Number+1
	}
	return next
}

// StoreFailed records that the state that Storing or StoringNext returned may not have been written.
func (j *Job) StoreFailed() { j.unwritten, j.storeAtOnce = true, j.Phase().Ended() }

// Prepared records that the nodes are prepared for the edition Preparing, or, of a suspended job, for all editions that
// ranks may be in.
func (j *Job) Prepared() {
	switch {
	case j.has == roomReturning:
		j.returned()
	case !j.OnNodes(): // no rank calls any more
	case j.Phase() == record.Preparing:
		j.transition(onPrepared, "")
	case j.editionList.next != nil:
		j.editionList.step = editionPrepared
	}
}

// PrepareFailed records that the nodes cannot be prepared. A job that waits for a further edition tries again.
func (j *Job) PrepareFailed(why string, now time.Time) {
	switch {
	case !j.OnNodes(): // no rank calls any more
	case j.Phase() == record.Preparing, j.has == roomReturning:
		j.Fail(why, now)
	case j.editionList.next != nil:
		j.editionList.next = nil
		j.waitFor(why)
	}
}

// Delayed records what the duty Prepare or Measure waits for.
func (j *Job) Delayed(why string) {
	switch j.Phase() {
	case record.Preparing, record.Measuring:
		j.transition(onDelayed, why)
	default:
		j.waitFor(why)
	}
}

// Committed records that the state that StoringNext returned is durable: the job runs. Nothing can be acknowledged
// before: a later leader that found the job in the phase measuring would begin with nothing delivered, and a later
// leader that did not know the edition would take its partitions a second time.
func (j *Job) Committed() {
	switch {
	case !j.hasNextState(): // the job has ended meanwhile
	case j.editionList.next != nil:
		j.delivered = false
		j.beginNext()
		j.wakeAllRanks()
	default:
		// The times without a call count from here: launchers attach to a job that runs.
		j.measured, j.state.Unattended = false, time.Time{}
		j.machine.emit(BeginEpoch{Job: j.ID, Epoch: j.FirstEpoch})
		j.transition(onCommitted, "")
	}
}

// CommitFailed records that the state that StoringNext returned may not be durable. The job looks for a further
// edition again.
func (j *Job) CommitFailed() {
	j.StoreFailed()
	j.editionList.next = nil
}
