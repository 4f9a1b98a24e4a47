package lifecycle

import (
	"slices"
	"time"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/sdk/dataset"
)

// delivery holds how much of a job is acknowledged, and decides whether the job ends once all of it is.
type delivery struct {
	*life
	editions *editionList
	members  *rankSet

	delivered   bool      // every mini-batch of every epoch of every edition is acknowledged
	deliveredAt time.Time // when the last mini-batch was acknowledged
	unconfirmed bool      // the job has the duty Confirm: it is delivered, and may end
}

// Delivered reports whether every mini-batch of every epoch there is is acknowledged.
func (d *delivery) Delivered() bool { return d.delivered }

// EpochBegun records how many rows the ranks get of an epoch. Epochs begin in their order, and again after a change of
// the leader or if a rank goes back. If the leader died before the rows of an epoch were stored, the epoch counts with
// the rows of the epoch before it, or of the first one that was stored.
func (d *delivery) EpochBegun(epoch uint64, rows int64) {
	known := d.state.EpochRows
	switch last := len(known) - 1; {
	case last < 0:
		epoch = min(epoch, d.FirstEpoch)
	case epoch <= known[last].First, rows == known[last].Rows:
		return
	}
	d.state.EpochRows, d.unwritten = append(slices.Clone(known), record.EpochRows{First: epoch, Rows: rows}), true
}

// RowsBefore returns the rows that the ranks got of all epochs before one.
func (d *delivery) RowsBefore(epoch uint64) (rows int64) {
	for i, e := range d.state.EpochRows {
		end := epoch
		if i+1 < len(d.state.EpochRows) {
			end = min(end, d.state.EpochRows[i+1].First)
		}
		rows += int64(end-min(end, e.First)) * e.Rows
	}
	return rows
}

// EpochDelivered records that every mini-batch of an epoch is acknowledged. The acknowledgements need not be durable
// yet.
func (d *delivery) EpochDelivered(epoch uint64, now time.Time) {
	if d.Phase().Begun() && epoch+1 >= d.editions.EndEpoch() {
		d.delivered, d.deliveredAt = true, now
		d.Review()
	}
}

// Review has the job check again whether it ends, if all of it is delivered: time has passed, or new partitions may
// have appeared.
func (d *delivery) Review() {
	d.unconfirmed = d.delivered && d.editions.next == nil && !d.Phase().Ended()
}

// Confirmed records that all acknowledgements are durable, so that a later leader finds nothing to deliver. The job
// ends, or waits for its ranks to be through, or looks for new partitions.
func (d *delivery) Confirmed(now time.Time) {
	d.unconfirmed = false
	switch {
	case !d.delivered || d.Phase().Ended(): // a rank has gone back meanwhile
	case d.Follow:
		d.machine.emit(FindPartitions{Job: d.ID})
	case d.members.mayReturn(d.deliveredAt, now):
		why := "for the ranks to say that they are through"
		if d.state.Unattached {
			why = "for a rank to attach"
		}
		d.waitFor("every mini-batch is delivered, " + why)
	default:
		d.endJob(onAllConsumed, "", now)
	}
}

// PartitionsFound records that new partitions were found, which form a further edition of this digest.
func (d *delivery) PartitionsFound(digest dataset.Digest) {
	if d.Phase().Ended() || !d.delivered {
		return
	}
	number, first := d.editions.NextEdition()
	d.editions.next, d.editions.step = &record.Edition{Number: number, First: first, Digest: digest}, editionFound
}

// Ending reports whether the job has nothing left to deliver, waits for no rank, and so is about to be done.
func (d *delivery) Ending(now time.Time) bool {
	return d.delivered && !d.Follow && !d.Phase().Ended() && !d.members.mayReturn(d.deliveredAt, now)
}

// WentBack records the job's progress after a rank attached with a token: the epoch of the ranks that are furthest
// behind, and how many of its mini-batches are acknowledged. A job of which every mini-batch was delivered runs
// again.
func (d *delivery) WentBack(epoch, delivered, miniBatches uint64) {
	if !d.delivered || epoch+1 >= d.editions.EndEpoch() && delivered >= miniBatches {
		return
	}
	d.delivered, d.unconfirmed = false, false
	if d.Phase() == record.Waiting {
		d.transition(onGoesOn, "")
	}
}
