package lifecycle

import (
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// keptGenerations is how many generations ranks may be in: a rank that is behind finds the last generation but one.
const keptGenerations = 2

// Preparing is the number of the generation that the nodes are to prepare: a further one, else the last one.
func (j *Job) Preparing() int {
	if j.next != nil {
		return j.next.Number
	}
	return j.state.Generations[len(j.state.Generations)-1].Number
}

// EpochNeeded says that a rank asks the ledger for an epoch that it has not begun. An epoch that the job does not have
// is asked for in vain.
func (j *Job) EpochNeeded(epoch uint64) {
	if _, ok := j.GenerationOf(epoch); ok && j.Phase().Begun() {
		j.machine.emit(BeginEpoch{Job: j.ID, Epoch: epoch})
	}
}

// EpochDelivered says that every mini-batch of an epoch is acknowledged, if not durably so.
func (j *Job) EpochDelivered(epoch uint64, now time.Time) {
	if j.Phase().Begun() && epoch+1 >= j.EndEpoch() {
		j.delivered, j.deliveredAt = true, now
		j.Review()
	}
}

// Confirmed says that the acknowledgements up to the last are durable: a later leader finds nothing to
// deliver. The job ends, or waits for its ranks to be through, or looks for new partitions.
func (j *Job) Confirmed(now time.Time) {
	j.unconfirmed = false
	switch {
	case !j.delivered || j.Phase().Ended(): // a rank has gone back meanwhile
	case j.Follow:
		j.machine.emit(FindPartitions{Job: j.ID})
	case j.ranksStay(now):
		j.wait("every mini-batch is delivered, for the ranks to say that they are through")
	default:
		j.end(onAllConsumed, "", now)
	}
}

// PartitionsMissing says that no new partitions were found, and why, if that has a reason.
func (j *Job) PartitionsMissing(why string) {
	if why == "" {
		why = "new partitions"
	}
	j.wait(why)
}

// NextGeneration returns the number and the first epoch that a further generation gets.
func (j *Job) NextGeneration() (number int, first uint64) { return j.state.Taken, j.EndEpoch() }

// PartitionsFound says that new partitions were found, which are a further generation of this digest.
func (j *Job) PartitionsFound(digest dataset.Digest) {
	if j.Phase().Ended() || !j.delivered {
		return
	}
	number, first := j.NextGeneration()
	j.next, j.nextStep = &record.Generation{Number: number, First: first, Digest: digest}, found
}

// GenerationStored says that the data of the further generation are in etcd, in a given number of pieces.
func (j *Job) GenerationStored(pieces int) {
	if j.next != nil {
		j.next.Pieces, j.nextStep = pieces, stored
	}
}

// GenerationDropped says that the further generation could not be stored. It is looked for again.
func (j *Job) GenerationDropped() { j.next = nil }

// withNext returns the generations with the further one, without those that no rank is in any more.
func (j *Job) withNext() []record.Generation {
	all := append(slices.Clone(j.state.Generations), *j.next)
	return all[max(0, len(all)-keptGenerations):]
}

// beginNext goes on with the further generation.
func (j *Job) beginNext() {
	kept, next := j.withNext(), *j.next
	for _, g := range j.state.Generations {
		if g.Number < kept[0].Number {
			j.machine.emit(DropGeneration{Job: j.ID, Number: g.Number})
		}
	}
	j.state.Generations, j.state.Taken = kept, next.Number+1
	j.next, j.delivered = nil, false
	j.machine.emit(BeginEpoch{Job: j.ID, Epoch: next.First})
	j.transition(onGoesOn, "")
	j.machine.emit(GenerationBegun{Job: j.ID, Generation: next})
	j.wakeAll()
}

// Ending reports whether the job has nothing left to deliver, waits for no rank, and so is about to be done.
func (j *Job) Ending(now time.Time) bool {
	return j.delivered && !j.Follow && !j.Phase().Ended() && !j.ranksStay(now)
}

// WentBack says where the job stands after a rank attached with a token: in which epoch the ranks are that are behind,
// and how many of its mini-batches are acknowledged. A job whose every mini-batch was delivered goes on.
func (j *Job) WentBack(epoch, delivered, miniBatches uint64) {
	if !j.delivered || epoch+1 >= j.EndEpoch() && delivered >= miniBatches {
		return
	}
	j.delivered, j.unconfirmed = false, false
	if j.Phase() == record.Waiting {
		j.transition(onGoesOn, "")
	}
}
