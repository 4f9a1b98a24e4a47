package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/steering"
	"github.com/millrace/millrace/control/store"
	"github.com/millrace/millrace/control/upkeep"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// leader is the state of a member while it leads.
type leader struct {
	s       *Server
	o       *Options
	logger  *slog.Logger
	term    *store.Term
	journal *store.Journal
	key     []byte         // under which tokens are sealed
	signer  *ticket.Signer // It signs leases' tickets for this term.
	calls   nodeCalls
	copies  wantedCopies
	began   time.Time

	ctx    context.Context // ends with the term
	cancel context.CancelFunc
	wg     sync.WaitGroup
	fenced chan struct{} // closed by stepDown
	fence  sync.Once

	finishing chan struct{} // It has room for the calls that make nodes forget editions.

	// mu guards the machines and all jobs.
	mu struct {
		sync.Mutex
		fleet    *fleet.Fleet
		machine  *machine.Machine                 // It has the jobs as launchers know them.
		jobs     map[string]*job                  // The jobs of the machine by ID, with the leader's part of each.
		lastCall uint64                           // The number of the last Lease call.
		waiting  map[uint64]chan machine.Answered // Here Lease calls wait for their answers. The key is the call's number.
		upkeep   *upkeep.Keeper                   // It decides what each node has to be given or asked.
		lastAsk  uint64                           // The number of the last call of upkeep.Ask or upkeep.Dismiss.
		asking   map[uint64]chan error            // Here these calls wait for their answers. The key is the call's number.
		nearby   map[string]bool                  // The last heartbeats of these nodes came from this machine.
		claims   map[string]claim                 // The key is the name of a job.
	}
}

// newLeader makes this member the leader: it loads the stored jobs and starts their goroutines.
func newLeader(ctx context.Context, s *Server, term *store.Term) (*leader, error) {
	now := time.Now()
	l := &leader{
		s: s, o: &s.o, logger: s.logger.With("fence", term.Fence()), term: term, began: now,
		fenced: make(chan struct{}), finishing: make(chan struct{}, finishesAtOnce),
	}
	l.mu.fleet = fleet.New(fleet.Options{Beat: s.o.Beat, DeadAfter: s.o.DeadAfter})
	l.mu.machine = machine.New(machine.Config{
		Ledger: ledger.Config{Fence: term.Fence(), LeaseTTL: s.o.LeaseTTL, GrantAfter: now.Add(2 * s.o.Beat)},
		Lives: lifecycle.Config{
			AbandonAfter: s.o.AbandonAfter, AttachWithin: max(s.o.AttachWithin, 0),
			Presence: presence.Options{Silence: s.o.SessionTTL},
		},
	})
	l.mu.waiting, l.mu.asking = map[uint64]chan machine.Answered{}, map[uint64]chan error{}
	l.mu.jobs, l.mu.claims, l.mu.nearby = map[string]*job{}, map[string]claim{}, map[string]bool{}
	l.mu.upkeep = l.newUpkeep()
	l.copies.commit, l.copies.list = l.commit, map[string]*apiv1.PartitionCopies{}
	l.calls = nodeCalls{http: s.nodes, identity: s.o.Identity, fence: term.Fence(), reach: l.reachedAt}
	var err error
	if l.signer, err = ticket.NewSigner(term.Fence()); err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancel(ctx)
	if err := l.load(); err != nil {
		l.cancel()
		return nil, err
	}
	l.journal = term.NewJournal(store.JournalOptions{Source: l.flush, Flushed: func(took time.Duration, _ int) {
		s.metrics.flush.Observe(took.Seconds())
	}})
	if err := l.startPool(); err != nil {
		l.close()
		return nil, err
	}
	if s.jobFiles != nil {
		l.removeSelectionParts()
	}
	for _, j := range l.mu.jobs {
		if !j.Phase().Ended() {
			l.start(j)
		}
	}
	l.wg.Add(1)
	go l.tickLoop()
	return l, nil
}

// close ends every goroutine that the leader started.
func (l *leader) close() {
	l.cancel()
	l.journal.Close()
	l.wg.Wait()
}

// stepDown ends the term: a write was refused because another member leads, or an invariant is broken.
func (l *leader) stepDown() { l.fence.Do(func() { close(l.fenced) }) }

// noteFenced ends the term if the store says that the term is over.
func (l *leader) noteFenced(err error) {
	if errors.Is(err, store.ErrFenced) {
		l.stepDown()
	}
}

// commit writes records in one transaction, fenced by the term.
func (l *leader) commit(ctx context.Context, ops ...store.Op) error {
	err := l.term.Commit(ctx, ops...)
	l.noteFenced(err)
	return err
}

// sync makes the changes of the ledger durable. If dirty is false, it waits only for the changes that are being
// written.
func (l *leader) sync(ctx context.Context, dirty bool) error {
	err := l.journal.Sync(ctx, dirty)
	l.noteFenced(err)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		err = l.mu.machine.Ledger.Broken()
	}
	return err
}

// flush returns the writes for the journal. It ends the term if an invariant of the ledger is broken: the next leader
// begins with the records.
func (l *leader) flush(most int) []store.Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := l.mu.machine.Ledger.Flush(most)
	if err := l.mu.machine.Ledger.Broken(); err != nil {
		l.logger.Error("the term ends: the ledger is not in a state that can be", "error", err)
		l.stepDown()
	}
	ops := make([]store.Op, len(records))
	for i, r := range records {
		if r.Data == nil {
			ops[i] = store.Delete(record.Key(r.Job, r.Key()))
		} else {
			ops[i] = store.Put(record.Key(r.Job, r.Key()), r.Data)
		}
	}
	return ops
}

// limitReached returns the error of a call that is refused for longer than a caller would go on asking. err says what
// the caller can do.
func limitReached(err error) error {
	refused := connect.NewError(connect.CodeResourceExhausted, err)
	if d, detailErr := connect.NewErrorDetail(&apiv1.LimitReached{}); detailErr == nil {
		refused.AddDetail(d)
	}
	return refused
}

// wireError gives an error its code on the wire.
func (l *leader) wireError(err error) error {
	var wired *connect.Error
	var ended *machine.EndedError
	var broken *ledger.InvariantError
	code := connect.CodeInternal
	switch {
	case err == nil || errors.As(err, &wired):
		return err
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrClosed):
		return l.s.notLeader()
	case l.ctx.Err() != nil && errors.Is(err, context.Canceled), errors.Is(err, machine.ErrDeposed),
		errors.As(err, &broken):
		return l.s.notLeader()
	case errors.Is(err, store.ErrNoSpace):
		code = connect.CodeResourceExhausted
	case errors.Is(err, ledger.ErrSession), errors.As(err, &ended):
		code = connect.CodeAborted
	case errors.Is(err, ledger.ErrArgument), errors.Is(err, record.ErrSpec), errors.Is(err, dataset.ErrToken),
		errors.Is(err, dataset.ErrOtherJob), errors.Is(err, dataset.ErrNumber):
		code = connect.CodeInvalidArgument
	case errors.Is(err, ledger.ErrUnknown), errors.Is(err, fleet.ErrUnknown):
		code = connect.CodeNotFound
	case errors.Is(err, fleet.ErrRefused), errors.Is(err, fleet.ErrSelect):
		code = connect.CodeFailedPrecondition
	case errors.Is(err, fleet.ErrNotYet), errors.Is(err, store.ErrAway):
		code = connect.CodeUnavailable
	case errors.Is(err, jobfiles.ErrRoom):
		return limitReached(err)
	case isVocabularyError(err):
		code = vocabularyCode(err)
	case errors.Is(err, context.DeadlineExceeded):
		code = connect.CodeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = connect.CodeCanceled
	}
	return connect.NewError(code, err)
}

// tickLoop passes the time to the machines.
func (l *leader) tickLoop() {
	defer l.wg.Done()
	every := min(100*time.Millisecond, l.o.Beat)
	room := time.Now()
	for wait.Sleep(l.ctx, every) == nil {
		now := time.Now()
		l.mu.Lock()
		l.nodeEventsLocked(l.mu.fleet.Tick(now))
		l.mu.machine.Tick(now)
		l.mu.upkeep.Tick(now)
		l.settleLocked(now)
		pending := l.mu.machine.Ledger.Pending() > 0
		l.mu.Unlock()
		if pending {
			l.journal.Kick()
		}
		if now.Sub(room) > time.Minute {
			room = now
			l.wg.Add(1)
			go l.makeRoom()
		}
	}
}

// makeRoom erases ended jobs when etcd is full, so that it takes writes again.
func (l *leader) makeRoom() {
	defer l.wg.Done()
	ctx, cancel := context.WithTimeout(l.ctx, 30*time.Second)
	defer cancel()
	h, err := l.s.store.Healthy(ctx)
	if err != nil || !slices.Contains(h.Alarms, "NOSPACE") {
		return
	}
	l.logger.Error("etcd is full: acknowledgements fail until there is room; erasing ended jobs and compacting",
		"bytes", h.Bytes, "quota", h.Quota)
	err = l.s.store.MakeRoom(ctx, func(ctx context.Context) error { return l.forget(ctx, 0) })
	if err != nil {
		l.logger.Error("there is still no room in etcd", "error", err)
	}
}

// findLocked returns a job by its ID or by its name. A name means the running job of that name, or else the job that
// ended last.
func (l *leader) findLocked(ctx context.Context, id string) (*job, error) {
	life := l.mu.machine.Lives.Find(id)
	if life == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no job %s is known: millrace jobs list",
			quoteShort(id)))
	}
	j := l.mu.jobs[life.ID]
	return j, guard.MayUse(ctx, j.Owner)
}

// quoteShort quotes a caller's text, shortened, for an answer to the caller.
func quoteShort(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > 100 {
		return fmt.Sprintf("%.100q...", s)
	}
	return fmt.Sprintf("%q", s)
}

// active counts the jobs that run.
func (l *leader) active() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.machine.Lives.Active()
}

// waitsFor describes the partitions with which a job cannot go on, and the nodes that are not prepared for the job, and
// why.
func (j *job) waitsFor(l *ledger.Ledger, f *fleet.Fleet, nodes *upkeep.Keeper) string {
	const most = 4 // partitions that are named
	words, n := l.Missing(j.ID, most)
	var parts []string
	for _, w := range words {
		parts = append(parts, f.Lost(w))
	}
	if n > len(words) {
		parts = append(parts, "and "+quantity.Of(n-len(words), "more partition"))
	}
	return strings.Join(append(parts, j.unprepared(nodes, most)...), "; ")
}

// unprepared describes the nodes that could not be prepared for the job's last edition.
func (j *job) unprepared(nodes *upkeep.Keeper, most int) (parts []string) {
	g := j.latest()
	if g == nil {
		return nil
	}
	for _, f := range nodes.Failures(g.Digest) {
		why := f.Err.Error()
		if f.NoRoom {
			why = j.roomWords(nodes) + ": " + why
		}
		parts = append(parts, why)
	}
	slices.Sort(parts)
	if n := len(parts); n > most {
		parts = append(parts[:most], "and "+quantity.Of(n-most, "more node"))
	}
	return parts
}

// statusLocked describes a job.
func (l *leader) statusLocked(j *job, now time.Time) *apiv1.JobStatus {
	st := j.State()
	if len(st.Final) > 0 {
		s := &apiv1.JobStatus{}
		if err := proto.Unmarshal(st.Final, s); err == nil {
			return s
		}
	}
	a := j.allocationNow(l.mu.fleet)
	s := &apiv1.JobStatus{
		Id: j.ID, Spec: j.spec, State: j.Words(), SubmittedSeconds: float64(j.Submitted.UnixMilli()) / 1e3,
		Drives: int32(a.Drives), DrivesWanted: int32(a.Wanted), Allocation: a.Note,
		ExpectedStallSeconds: a.ExpectedStall.Seconds(), Redelivered: st.Redelivered,
		AbandonAfterSeconds: j.AbandonAfter().Seconds(), Owner: j.Owner,
	}
	for _, p := range st.P {
		s.PRowsPerSecond += p / float64(len(st.P))
	}
	if g := j.latest(); g != nil {
		j.describeEdition(s, g)
	}
	v, err := l.mu.machine.Ledger.Status(j.ID, now)
	if err != nil {
		return s // no epoch was begun
	}
	s.Epoch, s.Minibatches, s.Delivered = v.Epoch, v.MiniBatches, v.Delivered
	s.WaitsFor = j.waitsFor(l.mu.machine.Ledger, l.mu.fleet, l.mu.upkeep)
	s.Redelivered += v.Redelivered
	s.ShortMinibatches = v.ShortMiniBatches
	s.LeftOutRows, s.DeliveredRows = v.LeftOut, j.RowsBefore(v.Epoch)+v.RowsDone
	s.Workers, s.WorkersReady = int32(v.Allowed), int32(v.Enlisted)
	granted, _ := l.mu.machine.Ledger.GrantedSplits(j.ID) // the ledger has the job: Status found it
	s.SplitsHeld, s.SplitsAny, s.SplitsOwn = granted.Held, granted.Any, granted.Own
	if g := j.editionOf(v.Epoch); g != nil {
		j.describeEdition(s, g)
	}
	for _, r := range v.Ranks {
		s.Ranks = append(s.Ranks, j.rankStatus(r))
	}
	return s
}

// allocationNow returns the allocation of a job with the drives that hold its data now.
func (j *job) allocationNow(f *fleet.Fleet) allocation.Allocation {
	st := j.State()
	g := j.latest()
	if g == nil || !j.Phase().Begun() {
		return st.Allocation
	}
	s := steering.Supply{Partitions: g.data.Manifest.Partitions, Holding: g.holdersIn(f).byPartition}
	return j.steering.AllocationNow(st.Allocation, &s, &steering.Rates{T: st.T, P: st.P})
}

// describeEdition sets what the status of a job says of an edition.
func (j *job) describeEdition(s *apiv1.JobStatus, g *edition) {
	s.Digest, s.Rows, s.Selection = g.Digest[:], g.rows(), j.selectionStatus(g)
	if !g.needsSelection() {
		return
	}
	s.Digest = nil
	if p := s.Selection; j.selecting != nil && j.Phase() == record.Preparing {
		if s.State == string(record.Preparing) {
			s.State = record.Preparing.Words(fmt.Sprintf("%s: %d of %d tested, %d of %d partitions done",
				apiv1.SelectingRows, p.Tested, p.Rows, p.PartitionsDone, p.Partitions))
		}
	}
}

// rankStatus describes a rank.
func (j *job) rankStatus(r ledger.RankStatus) *apiv1.RankStatus {
	at := j.Launcher(r.Rank)
	s := &apiv1.RankStatus{
		Rank: r.Rank, Attached: at.Attached, Detached: at.Why, Minibatches: r.Owned, Delivered: r.Delivered,
		OwnWorkers: int32(r.Own), SplitsOwn: r.Granted, ShareElsewhere: r.Share,
	}
	if !at.Last.IsZero() {
		s.LastContactSeconds = seconds(at.Last)
	}
	j.steering.Describe(s)
	return s
}
