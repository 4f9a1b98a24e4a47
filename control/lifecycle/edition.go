package lifecycle

import (
	"slices"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/sdk/dataset"
)

// keptEditions is the number of latest editions that a job keeps: a rank that is behind may be in the last
// edition but one.
const keptEditions = 2

// editionList holds the editions of a job that ranks may be in, and the further edition that is on its way.
type editionList struct {
	*life
	next *record.Edition // the edition that is being stored and prepared; nil: there is none
	step editionStep     // how far next is
}

// editionStep is how far a further edition is.
type editionStep uint8

const (
	editionFound    editionStep = iota // its partitions are known
	editionStored                      // its data are in etcd: a later leader gives its number to no other edition
	editionPrepared                    // its nodes are prepared; the state that has it is not stored yet
)

// Editions returns the editions that ranks may be in, in their order.
func (l *editionList) Editions() []record.Edition { return l.state.Editions }

// endOf returns the number of the epoch after the last one of an edition. An edition's epochs follow those of the
// edition before it, so its first epoch counts from when its partitions joined the job.
func (l *editionList) endOf(e record.Edition) uint64 {
	if e.Number > 0 && l.FollowOnce {
		return e.First + 1
	}
	return e.First + l.Epochs
}

// EditionOf returns the edition of an epoch. It reports false where there is none any more, or none yet.
func (l *editionList) EditionOf(epoch uint64) (record.Edition, bool) {
	for _, e := range l.state.Editions {
		if epoch >= e.First && epoch < l.endOf(e) {
			return e, true
		}
	}
	return record.Edition{}, false
}

// EndEpoch returns the number of the epoch after the last known one.
func (l *editionList) EndEpoch() uint64 {
	if n := len(l.state.Editions); n > 0 {
		return l.endOf(l.state.Editions[n-1])
	}
	return 0
}

// hasEditionOf reports whether an edition, or the next one, has the digest.
func (l *editionList) hasEditionOf(digest dataset.Digest) bool {
	return l.next != nil && l.next.Digest == digest ||
		slices.ContainsFunc(l.state.Editions, func(e record.Edition) bool { return e.Digest == digest })
}

// Preparing returns the number of the edition that the nodes are to prepare: the further edition if there is
// one, else the last edition.
func (l *editionList) Preparing() int {
	if l.next != nil {
		return l.next.Number
	}
	return l.state.Editions[len(l.state.Editions)-1].Number
}

// EpochNeeded records that a rank asks for an epoch that the ledger has not begun. It changes nothing if the job has
// no such epoch.
func (l *editionList) EpochNeeded(epoch uint64) {
	if _, ok := l.EditionOf(epoch); ok && l.Phase().Begun() {
		l.machine.emit(BeginEpoch{Job: l.ID, Epoch: epoch})
	}
}

// NextEdition returns the number and the first epoch that a further edition gets.
func (l *editionList) NextEdition() (number int, first uint64) { return l.state.Taken, l.EndEpoch() }

// PartitionsMissing records that no new partitions were found, and the reason if there is one.
func (l *editionList) PartitionsMissing(why string) {
	if why == "" {
		why = "new partitions"
	}
	l.waitFor(why)
}

// EditionStored records that the data of the further edition are in etcd, in a given number of pieces.
func (l *editionList) EditionStored(pieces int) {
	if l.next != nil {
		l.next.Pieces, l.step = pieces, editionStored
	}
}

// Selected records the selection of an edition whose pipeline has a filter, and the digest that the edition has with
// it.
func (l *editionList) Selected(number int, digest dataset.Digest, s record.Selection) {
	if l.next != nil && l.next.Number == number {
		l.next.Digest, l.next.Selection = digest, &s
		return
	}
	editions := slices.Clone(l.state.Editions)
	for i := range editions {
		if editions[i].Number == number {
			editions[i].Digest, editions[i].Selection = digest, &s
			l.state.Editions, l.unwritten = editions, true
		}
	}
}

// EditionDropped records that the further edition could not be stored. The job looks for it again.
func (l *editionList) EditionDropped() { l.next = nil }

// withNext returns the editions with the further one, without those that no rank is in any more.
func (l *editionList) withNext() []record.Edition {
	all := append(slices.Clone(l.state.Editions), *l.next)
	return all[max(0, len(all)-keptEditions):]
}

// beginNext goes on with the further edition.
func (l *editionList) beginNext() {
	kept, next := l.withNext(), *l.next
	for _, e := range l.state.Editions {
		if e.Number < kept[0].Number {
			l.machine.emit(DropEdition{Job: l.ID, Number: e.Number})
		}
	}
	l.state.Editions, l.state.Taken = kept, next.Number+1
	l.next = nil
	l.machine.emit(BeginEpoch{Job: l.ID, Epoch: next.First})
	l.transition(onGoesOn, "")
	l.machine.emit(EditionBegun{Job: l.ID, Edition: next})
}
