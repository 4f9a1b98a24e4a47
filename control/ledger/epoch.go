package ledger

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// Epoch begins an epoch of a job.
type Epoch struct {
	Job        string
	Number     uint64
	Digest     dataset.Digest // the job's, as tokens name it
	Plan       *dataset.Plan
	Partitions []string       // by the plan's partition index: the name that Drive.Partitions has for the partition
	Resume     *dataset.Token // mini-batches that are not owed; if it is nil or of another epoch, all are owed
}

// epoch is an epoch with its state. The ranges of the shares follow each other from number 0. The mini-batches behind
// the last range, fewer than there are ranks, belong to no rank.
type epoch struct {
	job        *job
	number     uint64
	digest     dataset.Digest
	plan       *dataset.Plan
	partitions []string
	splits     int
	batch      int
	leftOut    int64          // rows of dropped tails, and of mini-batches that belong to no rank
	rows       int64          // rows of the mini-batches that ranks own
	resumed    numberset.Runs // mini-batches that were delivered before the job was resumed
	base       numberset.Runs // fragments of resumed
	shares     []share
	done       numberset.Bits // splits of which every owned number is delivered
	runs       int            // runs counts the runs of owed numbers in the partial splits of all shares, see MaxRuns.
	announced  bool           // Effects.Done has named the epoch
	journal    journal
	placement
	reading
}

// Begin adds an epoch with its plan. Begin of a known epoch changes nothing. All ranks of a job start in the first
// epoch that is begun for the job. If a rank is in a later epoch, its whole share of this epoch counts as delivered.
// Errors wrap ErrUnknown, ErrArgument or dataset's.
func (l *Ledger) Begin(b Epoch, now time.Time) error {
	j, err := l.findJob(b.Job)
	if err != nil {
		return err
	}
	if j.epoch(b.Number) != nil {
		return nil
	}
	e, err := newEpoch(j, b)
	if err != nil {
		return fmt.Errorf("job %s: begin epoch %d: %w", b.Job, b.Number, err)
	}
	if !j.begun {
		j.begun, j.dirtyRanks = true, true
		for _, r := range j.ranks {
			r.epoch, r.wanted = b.Number, b.Number
		}
	}
	for i := range e.shares {
		if sh := &e.shares[i]; j.ranks[i].epoch > b.Number {
			e.rewind(sh, numberset.Runs{{From: sh.lo, To: sh.hi}})
		}
	}
	at := sort.Search(len(j.epochs), func(i int) bool { return j.epochs[i].number > b.Number })
	j.epochs = append(j.epochs, nil)
	copy(j.epochs[at+1:], j.epochs[at:])
	j.epochs[at] = e
	for _, d := range l.drives {
		e.updateHolder(d)
	}
	for _, r := range j.ranks {
		l.advanceRank(j, r)
	}
	if slices.ContainsFunc(j.ranks, func(r *rank) bool { return r.epoch <= e.number }) {
		l.announceComplete(e)
	} else { // begun again for a rank that goes back: the epoch was announced before
		e.announced = e.complete()
	}
	l.schedule(now)
	return nil
}

func newEpoch(j *job, b Epoch) (*epoch, error) {
	if b.Plan == nil {
		return nil, fmt.Errorf("%w: no plan", ErrArgument)
	}
	if err := distinct(b.Partitions); err != nil {
		return nil, err
	}
	n := b.Plan.Splits()
	e := &epoch{
		job: j, number: b.Number, digest: b.Digest, plan: b.Plan, partitions: b.Partitions,
		splits: n, batch: b.Plan.Options().Batch, done: numberset.NewBits(n), journal: newJournal(n),
		placement: newPlacement(b.Partitions),
	}
	total := b.Plan.MiniBatches()
	if b.Resume != nil && b.Resume.Epoch == b.Number {
		if _, err := dataset.Resume(*b.Resume, b.Digest, total); err != nil {
			return nil, err
		}
		e.resumed = numberset.OfToken(b.Resume)
		e.base = e.fragmentsOf(e.resumed)
	}
	for s := range b.Plan.All() {
		if s.Partition >= len(b.Partitions) {
			return nil, fmt.Errorf("%w: partition %d of the plan has no name: there are %d", ErrArgument, s.Partition,
				len(b.Partitions))
		}
	}
	e.shares = make([]share, j.Ranks)
	e.cutShares(total, j.Tail)
	e.leftOut = e.countLeftOut()
	for i := range e.shares {
		e.shares[i].rank = j.ranks[i]
		e.prepareShare(&e.shares[i])
	}
	e.countRowsLeft(e.left)
	e.rows, e.uncounted = sum(e.left), false
	for p := range n {
		e.settleSplit(p)
	}
	e.journal.settled()
	return e, nil
}

// cutShares cuts the owed mini-batches into shares: contiguous runs of equal count.
func (e *epoch) cutShares(total uint64, tail Tail) {
	ranks := uint64(len(e.shares))
	owed := total - e.resumed.Count(0, total)
	each, more := owed/ranks, owed%ranks
	if tail == DropTail {
		more = 0
	}
	at := uint64(0)
	for i := range e.shares {
		n := each
		if uint64(i) < more {
			n++
		}
		sh := &e.shares[i]
		sh.miniBatches.From = at
		at = e.resumed.EndOfMissing(at, n)
		if i == len(e.shares)-1 && owed == each*ranks+more {
			at = total // including the resumed mini-batches behind the last owed one
		}
		sh.miniBatches.To = at
		fragments := e.plan.FragmentsOf(sh.miniBatches)
		sh.lo, sh.hi = fragments.From, fragments.To
		sh.owned = amount{fragments: sh.hi - sh.lo - e.base.Count(sh.lo, sh.hi), miniBatches: n}
	}
}

// countLeftOut counts the rows that no rank gets.
func (e *epoch) countLeftOut() int64 {
	rows := e.plan.LeftOut()
	for _, r := range e.base.Gaps(e.shares[len(e.shares)-1].hi, e.plan.Fragments()) {
		for at := r.From; at < r.To; {
			s := e.split(e.placeOf(at))
			end := min(r.To, s.End())
			rows += e.rowsOf(s, at, end)
			at = end
		}
	}
	return rows
}

// rowsDelivered counts the rows of the mini-batches that ranks own and have acknowledged.
func (e *epoch) rowsDelivered() int64 {
	e.refreshPlacement()
	rows := e.rows - sum(e.left)
	for i := range e.shares {
		sh := &e.shares[i]
		for _, le := range sh.rank.leases {
			if le.epoch != e {
				continue
			}
			s := e.split(le.Split)
			for _, pending := range sh.deliveredOf(e, s).Gaps(le.From, le.To) {
				rows -= e.rowsOf(s, pending.From, pending.To)
			}
		}
	}
	return rows
}

// sum adds up the rows of partitions.
func sum(rows []int64) (total int64) {
	for _, n := range rows {
		total += n
	}
	return total
}

// split returns the split at a place of the plan.
func (e *epoch) split(place int) dataset.Split {
	s, _ := e.plan.Split(place)
	return s
}

// placeOf returns the split that a number of the plan is in.
func (e *epoch) placeOf(number uint64) int {
	if number >= e.plan.Fragments() {
		return e.splits
	}
	f, _ := e.plan.Fragment(number)
	return f.Split
}

// rowsOf counts the rows of fragments [from, to) of a split.
func (e *epoch) rowsOf(s dataset.Split, from, to uint64) int64 {
	return s.RowsBefore(e.batch, int(to-s.FirstFragment)) - s.RowsBefore(e.batch, int(from-s.FirstFragment))
}

// sharesOf returns the shares that own numbers of a split.
func (e *epoch) sharesOf(s dataset.Split) []share {
	return e.sharesBetween(s.FirstFragment, s.End())
}

// sharesBetween returns the shares that own numbers of [from, to).
func (e *epoch) sharesBetween(from, to uint64) []share {
	i := sort.Search(len(e.shares), func(i int) bool { return e.shares[i].hi > from })
	k := i
	for k < len(e.shares) && e.shares[k].lo < to {
		k++
	}
	return e.shares[i:k]
}

// settleSplit computes again whether a split is delivered.
func (e *epoch) settleSplit(place int) {
	done := true
	sharesOfSplit := e.sharesOf(e.split(place))
	for i := range sharesOfSplit {
		if sh := &sharesOfSplit[i]; sh.lo < sh.hi && !sh.done.Get(place-sh.first) {
			done = false
		}
	}
	if done == e.done.Get(place) {
		return
	}
	if done {
		e.done.Set(place)
	} else {
		e.done.Clear(place)
	}
	e.journal.splitChanged(place)
}

// complete reports whether every owned number is delivered.
func (e *epoch) complete() bool {
	for i := range e.shares {
		if !e.shares[i].complete() {
			return false
		}
	}
	return true
}

// announceComplete adds the epoch to the effects, once, when it is complete.
func (l *Ledger) announceComplete(e *epoch) {
	if done := e.complete(); done != e.announced {
		e.announced = done
		if done {
			l.effects.Done = append(l.effects.Done, EpochRef{e.job.ID, e.number})
		}
	}
}

// checkToken checks a token against the epoch and a rank's share of it.
func (e *epoch) checkToken(t *dataset.Token, rank int) error {
	if _, err := dataset.Resume(*t, e.digest, e.plan.MiniBatches()); err != nil {
		return err
	}
	own := e.shares[rank].miniBatches
	has := numberset.OfToken(t)
	if err := e.checkRoom(len(has.Within(own.From, own.To))); err != nil {
		return err
	}
	for _, r := range e.resumed.Within(own.From, own.To) {
		if !has.Covers(r.From, r.To) {
			return fmt.Errorf("%w: the token lacks mini-batches of [%d, %d), which the job resumed as delivered: "+
				"submit the job again with this token", ErrArgument, r.From, r.To)
		}
	}
	return nil
}

// checkRoom refuses runs of delivered numbers with which the epoch's unfinished splits would have too many.
func (e *epoch) checkRoom(runs int) error {
	if e.runs+runs > format.MaxRuns {
		return fmt.Errorf("%w: the delivered mini-batches of epoch %d's unfinished splits are in %d runs, and %d more are "+
			"beyond the limit of %d: acknowledge mini-batches in the order in which they came", ErrArgument, e.number, e.runs,
			runs, format.MaxRuns)
	}
	return nil
}

// deliveredIn appends the delivered numbers of a share's range, including the resumed ones.
func (e *epoch) deliveredIn(out numberset.Runs, sh *share) numberset.Runs {
	for p := sh.first; p < sh.last; {
		if end := sh.first + sh.done.Next(p-sh.first, sh.last-sh.first, false); end > p {
			from, _ := sh.portion(e.split(p))
			_, to := sh.portion(e.split(end - 1))
			out = out.Append(from, to)
			p = end
			continue
		}
		for _, r := range sh.deliveredOf(e, e.split(p)) {
			out = out.Append(r.From, r.To)
		}
		p++
	}
	return out
}

// RankToken returns the delivered mini-batches of a rank's range in the rank's epoch, including the resumed ones.
func (l *Ledger) RankToken(id string, number uint32) (dataset.Token, error) {
	j, err := l.findJob(id)
	if err != nil {
		return dataset.Token{}, err
	}
	if int64(number) >= int64(len(j.ranks)) {
		return dataset.Token{}, fmt.Errorf("%w: job %s: rank %d of %d", ErrUnknown, id, number, len(j.ranks))
	}
	e := j.epoch(j.ranks[number].epoch)
	if e == nil {
		return dataset.Token{}, fmt.Errorf("%w: job %s: epoch %d was not begun", ErrUnknown, id, j.ranks[number].epoch)
	}
	return l.tokenOf(e, e.shares[number:number+1], nil)
}

// tokenOf returns the delivered mini-batches of shares that follow each other, and of more, which has resumed fragments
// behind them.
func (l *Ledger) tokenOf(e *epoch, shares []share, more numberset.Runs) (dataset.Token, error) {
	var has numberset.Runs
	for i := range shares {
		has = e.deliveredIn(has, &shares[i])
	}
	for _, r := range more {
		has = has.Append(r.From, r.To)
	}
	whole := e.miniBatchesOf(has)
	t := whole.Token(e.digest, e.number)
	if fragments := e.fragmentsOf(whole); !slices.Equal(fragments, has) {
		return t, l.breaks(e, deliveredWhole, "of the fragments %v, the whole mini-batches have %v", has, fragments)
	}
	return t, l.checkCount(e, t, shares, e.miniBatchesOf(more))
}

// Token returns the checkpoint of the whole job, of all ranks together. A token is of one epoch: the earliest epoch
// that a rank is in. It does not contain the numbers that other ranks have delivered of a later epoch. If the
// trainer takes the token at the same step on all ranks, there are no such numbers.
func (l *Ledger) Token(id string) (dataset.Token, error) {
	j, err := l.findJob(id)
	if err != nil {
		return dataset.Token{}, err
	}
	first := uint64(math.MaxUint64)
	for _, r := range j.ranks {
		first = min(first, r.epoch)
	}
	e := j.epoch(first)
	if !j.begun || e == nil {
		return dataset.Token{}, fmt.Errorf("%w: job %s: no epoch was begun", ErrUnknown, id)
	}
	ofNoRank := e.base.Within(e.shares[len(e.shares)-1].hi, e.plan.Fragments())
	t, err := l.tokenOf(e, e.shares, ofNoRank)
	if err == nil && len(t.Ranges) > dataset.MaxTokenRanges {
		return dataset.Token{}, fmt.Errorf("%w: job %s: the token would have %d runs, at most %d", ErrArgument, id,
			len(t.Ranges), dataset.MaxTokenRanges)
	}
	return t, err
}
