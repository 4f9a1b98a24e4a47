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

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/guard"
	"github.com/millrace/millrace/trainmgr/control/ledger"
	"github.com/millrace/millrace/trainmgr/control/presence"
	"github.com/millrace/millrace/trainmgr/control/record"
	"github.com/millrace/millrace/trainmgr/control/store"
)

// leader is what a member holds while it leads.
type leader struct {
	s       *Server
	o       *Options
	logger  *slog.Logger
	term    *store.Term
	journal *store.Journal
	key     []byte         // under which tokens are sealed
	signer  *ticket.Signer // of leases' tickets, for this term
	began   time.Time

	ctx    context.Context // ends with the term
	cancel context.CancelFunc
	wg     sync.WaitGroup
	fenced chan struct{} // closed when a write told that another leads
	fence  sync.Once

	handing [64]sync.RWMutex // see handed; locked before mu

	mu       sync.Mutex // guards what follows, the machines and all jobs
	fleet    *fleet.Fleet
	ledger   *ledger.Ledger
	presence *presence.Tracker // of the ranks' launchers
	jobs     map[string]*job   // by ID, ended ones too
	names    map[string]string // of jobs that run, to their ID
	nodes    map[string]*agent
	claims   map[string]chan struct{}          // names of jobs that are being stored; closed when that is over
	copies   map[string]*apiv1.PartitionCopies // by partition: how many copies are wanted

	settingCopies sync.Mutex // one SetCopies at a time; locked before mu
}

// newLeader takes over: it loads what is stored, and starts what has to run.
func newLeader(ctx context.Context, s *Server, term *store.Term) (*leader, error) {
	now := time.Now()
	l := &leader{
		s: s, o: &s.o, logger: s.logger.With("fence", term.Fence()), term: term, began: now, fenced: make(chan struct{}),
		fleet:    fleet.New(fleet.Options{Beat: s.o.Beat, DeadAfter: s.o.DeadAfter}),
		ledger:   ledger.New(ledger.Config{Fence: term.Fence(), LeaseTTL: s.o.LeaseTTL, GrantAfter: now.Add(2 * s.o.Beat)}),
		presence: presence.New(presence.Options{Silence: s.o.SessionTTL}),
		jobs:     map[string]*job{}, names: map[string]string{}, nodes: map[string]*agent{}, claims: map[string]chan struct{}{},
		copies: map[string]*apiv1.PartitionCopies{},
	}
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
	for _, j := range l.jobs {
		if !j.Phase.Ended() {
			l.wg.Add(1)
			go l.run(j)
		}
	}
	l.wg.Add(1)
	go l.tick()
	return l, nil
}

// close ends everything the leader started.
func (l *leader) close() {
	l.cancel()
	l.journal.Close()
	l.wg.Wait()
}

// stepDown is called when a write told that another leads.
func (l *leader) stepDown() { l.fence.Do(func() { close(l.fenced) }) }

// commit writes records of the control plane's own in one transaction.
func (l *leader) commit(ctx context.Context, ops ...store.Op) error {
	err := l.term.Commit(ctx, ops...)
	if errors.Is(err, store.ErrFenced) {
		l.stepDown()
	}
	return err
}

// sync makes what the ledger changed durable.
func (l *leader) sync(ctx context.Context, dirty bool) error {
	err := l.journal.Sync(ctx, dirty)
	if errors.Is(err, store.ErrFenced) {
		l.stepDown()
	}
	return err
}

// flush is the journal's source.
func (l *leader) flush(most int) []store.Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := l.ledger.Flush(most)
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

// wire gives an error its code on the wire.
func (l *leader) wire(err error) error {
	var wired *connect.Error
	code := connect.CodeInternal
	switch {
	case err == nil || errors.As(err, &wired):
		return err
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrClosed):
		return l.s.notLeader()
	case l.ctx.Err() != nil && errors.Is(err, context.Canceled):
		return l.s.notLeader()
	case errors.Is(err, store.ErrNoSpace):
		code = connect.CodeResourceExhausted
	case errors.Is(err, ledger.ErrSession):
		code = connect.CodeAborted
	case errors.Is(err, ledger.ErrArgument), errors.Is(err, record.ErrSpec), errors.Is(err, dataset.ErrToken), errors.Is(err, dataset.ErrOtherJob), errors.Is(err, dataset.ErrNumber):
		code = connect.CodeInvalidArgument
	case errors.Is(err, ledger.ErrUnknown), errors.Is(err, fleet.ErrUnknown):
		code = connect.CodeNotFound
	case errors.Is(err, fleet.ErrRefused), errors.Is(err, fleet.ErrSelect):
		code = connect.CodeFailedPrecondition
	case errors.Is(err, fleet.ErrNotYet), errors.Is(err, store.ErrAway):
		code = connect.CodeUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		code = connect.CodeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = connect.CodeCanceled
	}
	return connect.NewError(code, err)
}

// tick lets time pass in the machines.
func (l *leader) tick() {
	defer l.wg.Done()
	every := min(100*time.Millisecond, l.o.Beat)
	room, looked := time.Now(), time.Time{}
	for sleep(l.ctx, every) {
		now := time.Now()
		l.mu.Lock()
		l.nodeEvents(l.fleet.Tick(now), now)
		l.departures(now)
		l.ledger.Tick(now)
		if now.Sub(looked) >= time.Second {
			looked = now
			l.abandon(now)
		}
		l.ready(now)
		pending := l.ledger.Pending() > 0
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
	l.logger.Error("etcd is full: acknowledgements fail until there is room; erasing ended jobs and compacting", "bytes", h.Bytes, "quota", h.Quota)
	err = l.s.store.MakeRoom(ctx, func(ctx context.Context) error { return l.forget(ctx, 0) })
	if err != nil {
		l.logger.Error("there is still no room in etcd", "error", err)
	}
}

// ready carries out what the ledger decided. l.mu is held.
func (l *leader) ready(now time.Time) {
	for {
		e := l.ledger.Ready()
		for _, g := range e.Grants {
			if r := l.rank(g.Job, g.Rank); r != nil {
				r.grants = append(r.grants, offered{Grant: g})
				r.notify()
			}
		}
		for _, v := range e.Revoked {
			if r := l.rank(v.Job, v.Rank); r != nil {
				r.revoked = append(r.revoked, v.Lease)
				r.grants = slices.DeleteFunc(r.grants, func(g offered) bool { return g.ID == v.Lease })
				r.notify()
				l.logger.Debug("lease revoked", "job", v.Job, "rank", v.Rank, "lease", v.Lease, "why", v.Why)
			}
		}
		for _, b := range e.Back {
			if a := l.nodes[b.Drive.Node]; a != nil {
				a.back.add(b.ID, now)
			}
		}
		for _, f := range e.Failed {
			if j := l.jobs[f.Job]; j != nil {
				l.end(j, record.Failed, f.Why, now)
			}
		}
		for _, d := range e.Done {
			if j := l.jobs[d.Job]; j != nil && d.Number+1 >= j.end() {
				j.finished, j.since = true, now
				j.poke()
			}
		}
		again := false
		for _, n := range e.Needed {
			if j := l.jobs[n.Job]; j != nil && j.Phase.Begun() && j.generationOf(n.Number) != nil {
				if err := l.begin(j, n.Number, now); err != nil {
					l.end(j, record.Failed, err.Error(), now)
				}
				again = true // whoever waits for the epoch is granted pieces of it now
			}
		}
		if !again {
			return
		}
	}
}

// notify wakes the rank's Lease call.
func (r *rank) notify() {
	close(r.wake)
	r.wake = make(chan struct{})
}

func (l *leader) rank(id string, n uint32) *rank {
	if j := l.jobs[id]; j != nil && int64(n) < int64(len(j.ranks)) {
		return &j.ranks[n]
	}
	return nil
}

// begin makes an epoch known to the ledger. l.mu is held.
func (l *leader) begin(j *job, epoch uint64, now time.Time) error {
	g := j.generationOf(epoch)
	if g == nil {
		return fmt.Errorf("%w: job %s has no epoch %d", ledger.ErrUnknown, j.ID, epoch)
	}
	o := j.plan
	o.Epoch = epoch
	plan, err := dataset.NewPlan(g.data.Manifest, o)
	if err != nil {
		return fmt.Errorf("epoch %d: %w", epoch, err)
	}
	e := ledger.Epoch{Job: j.ID, Number: epoch, Digest: g.Digest, Plan: plan, Partitions: g.words}
	if j.resume != nil && j.resume.Epoch == epoch && g.Number == 0 {
		e.Resume = j.resume
	}
	return l.ledger.Begin(e, now)
}

// set moves a job to another phase. l.mu is held.
func (l *leader) set(j *job, to record.Phase, why string) {
	if j.Phase == to && j.Why == why {
		return
	}
	if j.Phase != to {
		if err := j.Phase.Follow(to); err != nil {
			l.logger.Error("a transition that cannot be", "job", j.ID, "error", err)
			return
		}
	}
	l.logger.Info("job", "job", j.ID, "from", string(j.Phase), "to", string(to), "why", why)
	j.Phase, j.Why, j.dirty, j.urgent = to, why, true, true
	close(j.changed)
	j.changed = make(chan struct{})
	j.poke()
}

// end ends a job. Its goroutine stores that, and tells the nodes. l.mu is held.
func (l *leader) end(j *job, to record.Phase, why string, now time.Time) {
	if j.Phase.Ended() {
		return
	}
	status := l.status(j, now)
	status.State = to.Words(why)
	for _, r := range status.Ranks {
		r.Attached = false
	}
	j.Redelivered = status.Redelivered
	j.Final, _ = proto.Marshal(status) // of plain fields: it cannot fail
	j.Ended = time.Now().UTC().Truncate(time.Second)
	l.set(j, to, why)
	delete(l.names, j.spec.Name)
	if err := l.ledger.RemoveJob(j.ID, now); err != nil && !errors.Is(err, ledger.ErrUnknown) {
		l.logger.Error("forget the job's splits", "job", j.ID, "error", err)
	}
	l.presence.Forget(j.ID, len(j.ranks))
	for i := range j.ranks {
		j.ranks[i].grants = nil
		j.ranks[i].notify()
	}
}

// find returns a job by its ID, or by its name: that which runs, else the last that ended. l.mu is held.
func (l *leader) find(ctx context.Context, id string) (*job, error) {
	j := l.jobs[id]
	if j == nil {
		j = l.jobs[l.names[id]]
	}
	if j == nil {
		for _, o := range l.jobs {
			if o.spec.Name == id && (j == nil || o.Ended.After(j.Ended)) {
				j = o
			}
		}
	}
	if j == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("no job %s is known: millrace jobs list", shorten(id)))
	}
	return j, guard.MayUse(ctx, j.Owner)
}

// shorten bounds what a caller wrote before it is sent back.
func shorten(s string) string {
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
	return len(l.names)
}

// waitsFor says which partitions a job cannot go on with, and why. l.mu is held.
func (l *leader) waitsFor(j *job) string {
	const most = 4 // that are named
	words, n := l.ledger.Missing(j.ID, most)
	var parts []string
	for _, w := range words {
		parts = append(parts, l.fleet.Lost(w))
	}
	if n > len(words) {
		parts = append(parts, fmt.Sprintf("and %d partitions more", n-len(words)))
	}
	return strings.Join(parts, "; ")
}

// status describes a job. l.mu is held.
func (l *leader) status(j *job, now time.Time) *apiv1.JobStatus {
	if len(j.Final) > 0 {
		s := &apiv1.JobStatus{}
		if err := proto.Unmarshal(j.Final, s); err == nil {
			return s
		}
	}
	s := &apiv1.JobStatus{
		Id: j.ID, Spec: j.spec, State: j.Phase.Words(j.Why), SubmittedSeconds: float64(j.Submitted.UnixMilli()) / 1e3,
		Drives: int32(j.Allocation.Drives), DrivesWanted: int32(j.Allocation.Wanted), Allocation: j.Allocation.Note,
		ExpectedStallSeconds: j.Allocation.ExpectedStall.Seconds(), Redelivered: j.Redelivered, AbandonAfterSeconds: l.abandonAfter(j).Seconds(),
		Owner: j.Owner,
	}
	for _, p := range j.P {
		s.PRowsPerSecond += p / float64(len(j.P))
	}
	if g := j.latest(); g != nil {
		s.Digest, s.Rows = g.Digest[:], g.data.Manifest.Rows()
	}
	v, err := l.ledger.Status(j.ID, now)
	if err != nil {
		return s // nothing was begun
	}
	s.Epoch, s.Minibatches, s.Delivered, s.WaitsFor = v.Epoch, v.MiniBatches, v.Delivered, l.waitsFor(j)
	s.Redelivered += v.Redelivered
	if g := j.generationOf(v.Epoch); g != nil {
		s.Digest, s.Rows = g.Digest[:], g.data.Manifest.Rows()
	}
	for _, r := range v.Ranks {
		there := l.presence.Of(presence.Rank{Job: j.ID, Number: r.Rank})
		rs := &apiv1.RankStatus{Rank: r.Rank, Attached: there.Attached, Detached: there.Why, Minibatches: r.Owned, Delivered: r.Delivered}
		if !there.Last.IsZero() {
			rs.LastContactSeconds = seconds(there.Last)
		}
		if k := l.rank(j.ID, r.Rank); k != nil {
			rs.StallSeconds = k.stalled
			if k.report != nil {
				rs.QueueBatches = k.report.QueueBatches
				rs.StallSeconds += k.report.StallSeconds
			}
		}
		s.Ranks = append(s.Ranks, rs)
	}
	return s
}
