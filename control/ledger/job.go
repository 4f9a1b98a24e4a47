package ledger

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/offload"
)

// MaxRanks is the most ranks of a job: its record counts them in 16 bits.
const MaxRanks = 1<<16 - 1

// Tail selects the ranks that get the numbers that remain after an equal division.
type Tail uint8

// The tails.
const (
	DropTail Tail = iota // at most ranks-1 numbers at the end belong to no rank (the default)
	KeepTail             // the first ranks get one more number each
)

// Job holds the properties of a job that the ledger needs.
type Job struct {
	ID     string
	Ranks  int // 0 means 1
	Tail   Tail
	Order  dataset.Order // Deterministic grants a rank its numbers strictly in ascending order
	Weight float64       // share of a drive among jobs; 0 means 1
	Drives int           // holders that run at once; 0: no bound
	Makers Makers        // workers that make no split of the job
}

// job is a job with its state.
type job struct {
	Job
	failed  string
	ranks   []*rank
	epochs  []*epoch       // live, ascending
	begun   bool           // the ranks' epochs are set
	running []*drive       // in the order they joined; the first Drives of them are granted more
	streams map[*drive]int // streams that drives make for the job now

	activeWorkers int // keys of streams that are workers of reach Any
	redelivered   uint64
	dirtyRanks    bool
	forgotten     []format.Record // deletions of epochs that all ranks have left
	crew
	// Counts of pieces that were granted on holders, and on workers of reach Any that serve every rank.
	grantedHeld, grantedShared uint64

	doubts map[splitOf]doubt
}

// rank is one consumer's state.
type rank struct {
	number   uint32
	session  Session
	attached bool // attached in this leader's term, and not detached since
	epoch    uint64
	leases   []*lease // by epoch, then From
	streams  int      // streams that nodes make for the rank now
	want     int
	wanted   uint64    // epoch of want
	blocked  time.Time // since when the rank's queue is full and nothing was acknowledged; zero: the rank is not blocked
	turn     uint64    // counter at its last grant
	avoid    map[*drive]time.Time

	counters   *offload.Counters // keep the share of workers that serve every rank; nil: holders come first
	grantedOwn uint64            // pieces that were granted on workers that serve the rank alone
}

// AddJob adds a job. The job has no epoch yet. The error wraps ErrArgument.
func (l *Ledger) AddJob(j Job) error {
	if j.Ranks == 0 {
		j.Ranks = 1
	}
	if j.Weight == 0 {
		j.Weight = 1
	}
	switch {
	case j.ID == "" || l.job(j.ID) != nil:
		return fmt.Errorf("%w: job %q is there already, or has no id", ErrArgument, j.ID)
	case j.Ranks < 1 || j.Ranks > MaxRanks:
		return fmt.Errorf("%w: job %s: %d ranks, want 1 to %d", ErrArgument, j.ID, j.Ranks, MaxRanks)
	case !(j.Weight > 0) || math.IsInf(j.Weight, 0):
		return fmt.Errorf("%w: job %s: weight %v, want more than 0", ErrArgument, j.ID, j.Weight)
	case j.Drives < 0:
		return fmt.Errorf("%w: job %s: %d drives", ErrArgument, j.ID, j.Drives)
	case j.Order > dataset.Deterministic || j.Tail > KeepTail:
		return fmt.Errorf("%w: job %s: order %d, tail %d", ErrArgument, j.ID, j.Order, j.Tail)
	case j.Makers&allMakers == allMakers || j.Makers > allMakers:
		return fmt.Errorf("%w: job %s: no worker may make its splits", ErrArgument, j.ID)
	}
	n := &job{Job: j, streams: make(map[*drive]int), ranks: make([]*rank, j.Ranks)}
	for i := range n.ranks {
		n.ranks[i] = &rank{number: uint32(i), avoid: make(map[*drive]time.Time)}
	}
	l.jobs = append(l.jobs, n)
	return nil
}

// RemoveJob forgets a job and revokes its leases. The caller deletes the job's records.
func (l *Ledger) RemoveJob(id string, now time.Time) error {
	j, err := l.findJob(id)
	if err != nil {
		return err
	}
	l.revokeAll(j, "the job was removed")
	l.jobs = slices.DeleteFunc(l.jobs, func(o *job) bool { return o == j })
	for _, d := range l.drives {
		delete(d.finish, j)
	}
	l.schedule(now)
	return nil
}

func (l *Ledger) failJob(j *job, why string) {
	if j.failed != "" {
		return
	}
	j.failed = why
	l.revokeAll(j, "the job failed")
	l.effects.Failed = append(l.effects.Failed, Failure{j.ID, why})
}

func (l *Ledger) revokeAll(j *job, why string) {
	for _, r := range j.ranks {
		for len(r.leases) > 0 {
			l.revoke(r.leases[0], why)
		}
		r.want = 0
	}
}

// Allocate sets how many drives the job runs at once; 0 means no bound. Drives above the bound are granted no more
// pieces of the job and finish their leases; the drives with the most rows left go on.
func (l *Ledger) Allocate(id string, drives int, now time.Time) error {
	j, err := l.findJob(id)
	if err != nil {
		return err
	}
	if drives < 0 {
		return fmt.Errorf("%w: job %s: %d drives", ErrArgument, id, drives)
	}
	if drives != 0 && len(j.running) > drives {
		slices.SortStableFunc(j.running, func(a, b *drive) int {
			x, y := j.rowsLeft(a), j.rowsLeft(b)
			switch {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
	}
	j.Drives = drives
	l.schedule(now)
	return nil
}

// Live lists the epochs that ranks are in, ascending. The caller has to Begin them after a restore. The list is
// empty if no epoch of the job was ever begun.
func (l *Ledger) Live(id string) []uint64 {
	j := l.job(id)
	if j == nil || !j.begun {
		return nil
	}
	var live []uint64
	for _, r := range j.ranks {
		live = append(live, r.epoch)
	}
	slices.Sort(live)
	return slices.Compact(live)
}

// Session is one attachment of one rank. A later session of the same rank, which has a greater fence and generation,
// fences it off.
type Session struct {
	Rank       uint32
	Fence      uint64 // Fence is that of the leader that attached the rank.
	Generation uint64 // the attach number, which grows with every attachment in the leader's term
}

const sessionBytes = 4 + 8 + 8

// Bytes is the session's wire form: rank u32, fence u64, generation u64, little-endian. It is no secret.
func (s Session) Bytes() []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, sessionBytes), s.Rank)
	b = binary.LittleEndian.AppendUint64(b, s.Fence)
	return binary.LittleEndian.AppendUint64(b, s.Generation)
}

// ParseSession reads the wire form. The error wraps ErrSession.
func ParseSession(b []byte) (Session, error) {
	if len(b) != sessionBytes {
		return Session{}, fmt.Errorf("%w: %d bytes, want %d", ErrSession, len(b), sessionBytes)
	}
	return Session{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:]),
		binary.LittleEndian.Uint64(b[12:])}, nil
}

// Attached is the answer to a rank that attaches.
type Attached struct {
	Session Session
	Epoch   uint64
	Token   dataset.Token   // the delivered mini-batches of the rank's range of the epoch, including the resumed ones
	Owned   []dataset.Range // mini-batches of the rank, delivered or not
}

// Attach makes the caller the rank's only consumer: an older session is fenced off and its leases come back. With a
// token the rank's delivered mini-batches become the token's, back or forward. If the token's epoch was not begun,
// Effects.Needed names it and the error wraps ErrUnknown. A token of another job is dataset.ErrOtherJob. A token
// without the mini-batches that the job itself resumed from is ErrArgument. Answer the caller when the records that
// Flush then returns are durable.
func (l *Ledger) Attach(id string, number uint32, token *dataset.Token, now time.Time) (Attached, error) {
	j, err := l.findJob(id)
	if err != nil {
		return Attached{}, err
	}
	if int64(number) >= int64(len(j.ranks)) {
		return Attached{}, fmt.Errorf("%w: job %s: rank %d of %d", ErrUnknown, id, number, len(j.ranks))
	}
	r := j.ranks[number]
	at := r.epoch
	if token != nil {
		at = token.Epoch
	}
	e := j.epoch(at)
	if e == nil {
		if j.begun {
			l.requestEpoch(j, at)
		}
		return Attached{}, fmt.Errorf("%w: job %s: epoch %d was not begun", ErrUnknown, id, at)
	}
	if token != nil {
		if err := e.checkToken(token, int(number)); err != nil {
			return Attached{}, fmt.Errorf("job %s: attach rank %d: %w", id, number, err)
		}
	}
	for len(r.leases) > 0 {
		l.reclaim(r.leases[0]) // no launcher is left that a revocation could reach
	}
	r.want, r.wanted, r.blocked = 0, at, time.Time{}
	clear(r.avoid)
	l.counter++
	r.session = Session{Rank: number, Fence: l.config.Fence, Generation: l.counter}
	r.attached, j.dirtyRanks = true, true
	if token != nil {
		r.epoch = at
		for _, o := range j.epochs {
			switch sh := &o.shares[number]; {
			case o == e:
				o.rewind(sh, o.fragmentsOf(numberset.OfToken(token)))
			case o.number > at:
				o.rewind(sh, nil)
			default:
				o.rewind(sh, numberset.Runs{{From: sh.lo, To: sh.hi}})
			}
			l.announceComplete(o)
		}
		l.forgetLeftEpochs(j)
	}
	l.schedule(now)
	sh := &e.shares[number]
	has, err := l.tokenOf(e, e.shares[number:number+1], nil)
	own := sh.miniBatches
	return Attached{Session: r.session, Epoch: at, Token: has, Owned: e.resumed.Gaps(own.From, own.To)}, err
}

// job finds a job, or returns nil.
func (l *Ledger) job(id string) *job {
	for _, j := range l.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

func (l *Ledger) findJob(id string) (*job, error) {
	if j := l.job(id); j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("%w: job %q", ErrUnknown, id)
}

// findConsumer finds the rank of a session that was not fenced off.
func (l *Ledger) findConsumer(id string, s Session) (*job, *rank, error) {
	j, err := l.findJob(id)
	if err != nil {
		return nil, nil, err
	}
	if int64(s.Rank) >= int64(len(j.ranks)) {
		return nil, nil, fmt.Errorf("%w: job %s: rank %d of %d", ErrUnknown, id, s.Rank, len(j.ranks))
	}
	r := j.ranks[s.Rank]
	if s.Generation == 0 || r.session != s {
		return nil, nil, fmt.Errorf("job %s: rank %d: %w", id, s.Rank, ErrSession)
	}
	r.attached = true
	return j, r, nil
}

func (j *job) epoch(number uint64) *epoch {
	for _, e := range j.epochs {
		if e.number == number {
			return e
		}
	}
	return nil
}

// requestEpoch adds an epoch that must be begun to the effects, once.
func (l *Ledger) requestEpoch(j *job, number uint64) {
	ref := EpochRef{j.ID, number}
	if !slices.Contains(l.effects.Needed, ref) {
		l.effects.Needed = append(l.effects.Needed, ref)
	}
}

// advanceRank moves a rank whose epoch is complete to the epoch that the rank wants, if that epoch is the next one
// and has begun.
func (l *Ledger) advanceRank(j *job, r *rank) {
	if r.wanted != r.epoch+1 {
		return
	}
	if e := j.epoch(r.epoch); e != nil && !e.shares[r.number].complete() {
		return
	}
	if j.epoch(r.wanted) == nil {
		l.requestEpoch(j, r.wanted)
		return
	}
	r.epoch = r.wanted
	j.dirtyRanks = true
	l.forgetLeftEpochs(j)
}

// forgetLeftEpochs drops the epochs that all ranks have left.
func (l *Ledger) forgetLeftEpochs(j *job) {
	first := uint64(math.MaxUint64)
	for _, r := range j.ranks {
		first = min(first, r.epoch)
	}
	for len(j.epochs) > 0 && j.epochs[0].number < first {
		j.forgotten = append(j.forgotten, j.epochs[0].deletions()...)
		j.epochs = slices.Delete(j.epochs, 0, 1)
	}
}
