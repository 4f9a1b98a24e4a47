package lifecycle

import (
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// keptEditions is the number of latest editions that a job keeps: a rank that is behind may be in the last
// edition but one.
const keptEditions = 2

// Preparing returns the number of the edition that the nodes are to prepare: the further edition if there is
// one, else the last edition.
func (j *Job) Preparing() int {
	if j.nextEdition != nil {
		return j.nextEdition.Number
	}
	return j.state.Editions[len(j.state.Editions)-1].Number
}

// EpochNeeded records that a rank asks for an epoch that the ledger has not begun. It changes nothing if the job has
// no such epoch.
func (j *Job) EpochNeeded(epoch uint64) {
	if _, ok := j.EditionOf(epoch); ok && j.Phase().Begun() {
		j.machine.emit(BeginEpoch{Job: j.ID, Epoch: epoch})
	}
}

// EpochDelivered records that every mini-batch of an epoch is acknowledged. The acknowledgements need not be durable
// yet.
func (j *Job) EpochDelivered(epoch uint64, now time.Time) {
	if j.Phase().Begun() && epoch+1 >= j.EndEpoch() {
		j.delivered, j.deliveredAt = true, now
		j.Review()
	}
}

// Confirmed records that all acknowledgements are durable, so that a later leader finds nothing to deliver. The job
// ends, or waits for its ranks to be through, or looks for new partitions.
func (j *Job) Confirmed(now time.Time) {
	j.unconfirmed = false
	switch {
	case !j.delivered || j.Phase().Ended(): // a rank has gone back meanwhile
	case j.Follow:
		j.machine.emit(FindPartitions{Job: j.ID})
	case j.ranksMayReturn(now):
		j.waitFor("every mini-batch is delivered, for the ranks to say that they are through")
	default:
		j.endJob(onAllConsumed, "", now)
	}
}

// PartitionsMissing records that no new partitions were found, and the reason if there is one.
func (j *Job) PartitionsMissing(why string) {
	if why == "" {
		why = "new partitions"
	}
	j.waitFor(why)
}

// NextEdition returns the number and the first epoch that a further edition gets.
func (j *Job) NextEdition() (number int, first uint64) { return j.state.Taken, j.EndEpoch() }

// PartitionsFound records that new partitions were found, which form a further edition of this digest.
func (j *Job) PartitionsFound(digest dataset.Digest) {
	if j.Phase().Ended() || !j.delivered {
		return
	}
	number, first := j.NextEdition()
	j.nextEdition, j.nextEditionStep = &record.Edition{Number: number, First: first, Digest: digest}, editionFound
}

// EditionStored records that the data of the further edition are in etcd, in a given number of pieces.
func (j *Job) EditionStored(pieces int) {
	if j.nextEdition != nil {
		j.nextEdition.Pieces, j.nextEditionStep = pieces, editionStored
	}
}

// EditionDropped records that the further edition could not be stored. The job looks for it again.
func (j *Job) EditionDropped() { j.nextEdition = nil }

// editionsWithNext returns the editions with the further one, without those that no rank is in any more.
func (j *Job) editionsWithNext() []record.Edition {
	all := append(slices.Clone(j.state.Editions), *j.nextEdition)
	return all[max(0, len(all)-keptEditions):]
}

// beginNextEdition goes on with the further edition.
func (j *Job) beginNextEdition() {
	kept, next := j.editionsWithNext(), *j.nextEdition
	for _, e := range j.state.Editions {
		if e.Number < kept[0].Number {
			j.machine.emit(DropEdition{Job: j.ID, Number: e.Number})
		}
	}
	j.state.Editions, j.state.Taken = kept, next.Number+1
	j.nextEdition, j.delivered = nil, false
	j.machine.emit(BeginEpoch{Job: j.ID, Epoch: next.First})
	j.transition(onGoesOn, "")
	j.machine.emit(EditionBegun{Job: j.ID, Edition: next})
	j.wakeAllRanks()
}

// Ending reports whether the job has nothing left to deliver, waits for no rank, and so is about to be done.
func (j *Job) Ending(now time.Time) bool {
	return j.delivered && !j.Follow && !j.Phase().Ended() && !j.ranksMayReturn(now)
}

// WentBack records the job's progress after a rank attached with a token: the epoch of the ranks that are furthest
// behind, and how many of its mini-batches are acknowledged. A job of which every mini-batch was delivered runs
// again.
func (j *Job) WentBack(epoch, delivered, miniBatches uint64) {
	if !j.delivered || epoch+1 >= j.EndEpoch() && delivered >= miniBatches {
		return
	}
	j.delivered, j.unconfirmed = false, false
	if j.Phase() == record.Waiting {
		j.transition(onGoesOn, "")
	}
}
