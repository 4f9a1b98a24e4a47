package protocol

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestScripts runs testdata/*.txt: blocks of commands and their results.
func TestScripts(t *testing.T) {
	goldenfile.Scripts(t, func(t *testing.T, script string) string {
		s := newScripted(t)
		return goldenfile.Blocks(script, func(command string) string {
			s.out.Reset()
			s.do(strings.Fields(command))
			s.settle()
			return s.out.String()
		})
	})
}

func newScripted(t *testing.T) *scripted {
	return &scripted{
		t: t, now: scriptStart, calls: map[string]*scriptedCall{}, grants: map[uint64]Grant{},
		fetches: map[string]*Fetch{}, cancelled: map[uint64]bool{},
		members: NewMembers([]string{"control-0", "control-1", "control-2"}, time.Minute, time.Minute),
	}
}

var scriptStart = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// scripted is a launcher in miniature: the machine, a trainer that counts, and calls that a script answers.
type scripted struct {
	t       *testing.T
	out     strings.Builder
	now     time.Time
	machine *Machine
	members Members
	calls   map[string]*scriptedCall // under way, by name
	grants  map[uint64]Grant

	cancelled map[uint64]bool // leases whose pieces are to end

	came         *dataset.Progress // fragments that have come
	acknowledged *dataset.Progress
	ordered      bool
	fetches      map[string]*Fetch // by node
	checkpoint   *Checkpoint       // The call for a token is for it.
	waits        []func() bool     // each reports whether what it waits for is reached, and shows it
	recording    []recordedStep
	lastFence    uint64 // The fence of the last answer to a lease call.
}

// scriptedCall is a call with its attempts.
type scriptedCall struct {
	attempts Attempts
	member   string    // The attempt under way asks it.
	again    time.Time // when the next attempt begins; zero: one is under way
	says     func() string
	failed   func(err error)
}

func (s *scripted) say(format string, args ...any) {
	fmt.Fprintf(&s.out, "%6s  %s\n", s.now.Sub(scriptStart), fmt.Sprintf(format, args...))
}

func (s *scripted) number(w string) uint64 {
	n, err := strconv.ParseUint(w, 10, 64)
	require.NoError(s.t, err)
	return n
}

// option returns the value of key=value among the words, or "".
func option(words []string, key string) string {
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok && k == key {
			return v
		}
	}
	return ""
}

func (s *scripted) runs(w string) (runs []dataset.Range) {
	for p := range strings.SplitSeq(w, ",") {
		var r dataset.Range
		if _, err := fmt.Sscanf(p, "%d-%d", &r.From, &r.To); err == nil {
			runs = append(runs, r)
		}
	}
	return runs
}

// epoch makes an epoch of 8 mini-batches of 10 rows in 4 splits: epoch N [owned=FROM-TO,...] [acked=FROM-TO,...]
// [boundary=none]. Splits have 2 mini-batches. With boundary=none they have 25, 25, 25 and 5 rows, so that mini-batches
// 2 and 7 have two fragments each, and the splits are the fragments [0, 3), [3, 6), [6, 9) and [9, 10).
func (s *scripted) epoch(w []string) Epoch {
	m, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Bytes: 1, Rows: 80, RowGroups: []int64{25, 25, 25, 5}}})
	require.NoError(s.t, err)
	number := s.number(w[0])
	options := dataset.Options{Batch: 10, SplitBatches: 2, Shuffle: dataset.ShuffleNone, Epoch: number}
	if option(w, "boundary") == "none" {
		options.Boundary = dataset.BoundaryNone
	}
	plan, err := dataset.NewPlan(m, options)
	require.NoError(s.t, err)
	e := Epoch{Number: number, Plan: plan, Owned: []dataset.Range{{From: 0, To: 8}}}
	if v := option(w, "owned"); v != "" {
		e.Owned = s.runs(v)
	}
	token := s.token(number, option(w, "acked"))
	for _, p := range []**dataset.Progress{&e.Durable, &s.acknowledged} {
		*p, err = dataset.Resume(token, token.Job, plan.MiniBatches())
		require.NoError(s.t, err)
	}
	s.came, err = dataset.Resume(dataset.Token{Job: token.Job, Epoch: number}, token.Job, plan.Fragments())
	require.NoError(s.t, err)
	for _, r := range append(token.Acknowledged(), dataset.ComplementRanges(e.Owned, plan.MiniBatches())...) {
		fragments := plan.FragmentsOf(r)
		for n := fragments.From; n < fragments.To; n++ {
			require.NoError(s.t, s.came.Ack(n))
		}
	}
	return e
}

func (s *scripted) token(epoch uint64, acked string) dataset.Token {
	t := dataset.Token{Job: dataset.Digest{1}, Epoch: epoch, Ranges: s.runs(acked)}
	if len(t.Ranges) > 0 && t.Ranges[0].From == 0 {
		t.Mark, t.Ranges = t.Ranges[0].To, t.Ranges[1:]
	}
	return t
}

func (s *scripted) progress() Progress {
	whole := uint64(0) // mini-batches
	for n := range s.acknowledged.Total() {
		if s.isWhole(n) {
			whole++
		}
	}
	p := Progress{Left: s.acknowledged.Total() - whole, Ordered: s.ordered}
	p.Queued = int(whole - s.acknowledged.Count()) // what the rank does not own counts as well
	p.Due, p.DueLate = s.came.Pending(0)
	return p
}

// isWhole reports whether every fragment of a mini-batch has come, or is not the rank's.
func (s *scripted) isWhole(number uint64) bool {
	fragments := s.machine.epoch.Plan.FragmentsOf(dataset.Range{From: number, To: number + 1})
	missing, ok := s.came.Pending(fragments.From)
	return !ok || missing >= fragments.To
}

// do carries out a command of a script.
func (s *scripted) do(w []string) {
	m := s.machine
	switch w[0] {
	case "attach": // attach SESSION EPOCH [owned=...] [acked=...] [boundary=none]: the rank's first, or a call's answer
		a := Attachment{Session: []byte(w[1]), Epoch: s.epoch(w[2:])}
		s.record(recordedStep{
			Step: "attached", Session: w[1], Epoch: a.Epoch.Number, Owned: recordedRanges(a.Epoch.Owned),
			Numbers: recordedRanges(s.runs(option(w, "acked"))), Boundary: option(w, "boundary"),
		})
		if m == nil {
			s.machine = New(Options{Pieces: 2, Acks: 4, AckDelay: 50 * time.Millisecond, Deadline: 15 * time.Second,
				Refused: 5 * time.Second}, a)
			return
		}
		if s.answered("attach") {
			m.Attached(a, s.now)
		}
	case "deliver": // deliver [ordered=yes]
		s.ordered = option(w, "ordered") != ""
		s.record(recordedStep{Step: "deliver", Ordered: s.ordered})
		if err := m.BeginDelivery(s.now); err != nil {
			s.say("error: %v", err)
		}
	case "answer":
		s.answer(w[1], w[2:])
	case "fail": // fail CALL other|later|final|leader=MEMBER [WORDS]
		s.fail(w[1], w[2], strings.Join(w[3:], " "))
	case "start":
		s.start()
	case "brings": // brings LEASE: every fragment of it
		s.record(recordedStep{Step: "brings", Lease: s.number(w[1])})
		g := s.grants[s.number(w[1])]
		for n := g.From; n < g.To; n++ {
			_ = s.came.Ack(n)
		}
		s.ended(g.Lease, Complete, "")
		if s.came.Count() == s.came.Total() {
			m.EveryBatchCame()
		}
	case "ends": // ends LEASE OUTCOME [WORDS]
		outcomes := map[string]Outcome{"unneeded": Unneeded, "interrupted": Interrupted, "failed": NodeFailed,
			"refused": DataRefused, "faulty": DataFaulty}
		if w[2] == "failed" {
			s.record(recordedStep{Step: "fails", Lease: s.number(w[1])})
		}
		s.ended(s.number(w[1]), outcomes[w[2]], strings.Join(w[3:], " "))
	case "node": // node NAME ADDRESS...
		m.Reached(w[1], w[2:])
	case "fetch": // fetch NODE busy|fault|final [after=DURATION]
		s.fetchFails(w[1:])
	case "step": // step FROM-TO: the trainer is done with mini-batches
		s.record(recordedStep{Step: "trained", Numbers: recordedRanges(s.runs(w[1]))})
		for _, r := range s.runs(w[1]) {
			for n := r.From; n < r.To; n++ {
				require.NoError(s.t, s.acknowledged.Ack(n))
				if err := m.Acknowledge(m.epoch.Number, n, s.now); err != nil {
					s.say("error: %v", err)
				}
			}
		}
	case "clock":
		d, err := time.ParseDuration(w[1])
		require.NoError(s.t, err)
		s.elapse(s.now.Add(d))
	default:
		s.await(w)
	}
}

// await begins something that the script's later answers complete.
func (s *scripted) await(w []string) {
	m := s.machine
	if w[0] != "flush" && w[0] != "stop" {
		s.record(recordedStep{Step: w[0]}) // checkpoint, end, leave, next
	}
	switch w[0] {
	case "flush":
		s.flush("the acknowledgements are durable", nil)
	case "next":
		m.BeginNextEpoch(s.now)
		s.wait(func() bool {
			in, after, err := m.NextEpoch()
			switch {
			case err != nil:
				s.say("no next epoch: %v", err)
			case in:
				s.record(recordedStep{Step: "entered", Epoch: m.epoch.Number})
				s.say("the rank is in epoch %d", m.epoch.Number)
			case after:
				s.record(recordedStep{Step: "through"})
				s.say("the rank is through")
			}
			return in || after || err != nil
		})
	case "stop":
		m.StopNextEpoch(s.now)
		s.drop("epoch", "attach")
		s.waits = nil
	case "end":
		m.EndDelivery(s.now)
		s.drop("ask", "report")
		s.wait(func() bool {
			ended, err := m.DeliveryEnded()
			if ended {
				s.say("the delivery has ended: %v", err)
			}
			return ended
		})
	case "leave":
		m.Leave(s.now)
		s.wait(func() bool {
			left, err, reportError := m.Left()
			if left {
				s.record(recordedStep{Step: "left", Lost: err != nil})
				s.say("the rank has left: %v, %v", err, reportError)
			}
			return left
		})
	case "checkpoint":
		s.ask(BeginCheckpoint(s.acknowledged.Token()))
	default:
		s.t.Fatalf("unknown command %q", strings.Join(w, " "))
	}
}

func (s *scripted) wait(reached func() bool) { s.waits = append(s.waits, reached) }

func (s *scripted) flush(then string, reached func()) {
	ticket := s.machine.Flush(s.now)
	s.wait(func() bool {
		durable, err := s.machine.Flushed(ticket)
		switch {
		case err != nil:
			s.say("the acknowledgements are lost: %v", err)
		case durable && then != "":
			s.say("%s", then)
		}
		if durable && reached != nil {
			reached()
		}
		return durable || err != nil
	})
}

// ask flushes and has a token sealed.
func (s *scripted) ask(c *Checkpoint) {
	s.flush("", func() {
		session := s.machine.AskToken(c)
		s.checkpoint = c
		s.begin("token", func() string { return "as " + string(session) }, s.noToken)
	})
}

func (s *scripted) noToken(err error) {
	s.record(recordedStep{Step: "unsealed"})
	s.say("no token: %v", err)
}

// begin begins a call.
func (s *scripted) begin(name string, says func() string, failed func(error)) {
	require.NotContains(s.t, s.calls, name, "one call at a time: %s", s.out.String())
	c := &scriptedCall{attempts: BeginAttempts(s.now), says: says, failed: failed}
	s.calls[name] = c
	s.attempt(name, c)
}

// attempt asks the preferred member.
func (s *scripted) attempt(name string, c *scriptedCall) {
	c.member, c.again = s.members.Preferred(), time.Time{}
	s.say("%s %s: %s", name, c.member, c.says())
}

// answered ends a call. It reports whether it was under way.
func (s *scripted) answered(name string) bool {
	if s.calls[name] == nil {
		s.say("no call under way: %s", name)
		return false
	}
	delete(s.calls, name)
	s.members.NoteAnswer()
	return true
}

// fail ends the attempt of a call that is under way.
func (s *scripted) fail(name, how, why string) {
	c := s.calls[name]
	if c == nil {
		s.say("no call under way: %s", name)
		return
	}
	how, leader, _ := strings.Cut(how, "=")
	s.recordFault(name, how, leader)
	fault := map[string]CallFault{"other": AskOther, "later": AskLater, "final": FinalAnswer, "leader": NotLeader}[how]
	retry := c.attempts.Failed(&s.members, c.member, fault, leader, s.now)
	switch {
	case retry.Never:
		delete(s.calls, name)
		s.say("%s fails after %v", name, retry.Waited)
		if strings.HasPrefix(why, "fenced") {
			c.failed(fmt.Errorf("%w: %s", ErrFenced, why))
		} else {
			c.failed(errors.New(why))
		}
	case retry.Pause == 0:
		s.attempt(name, c)
	default:
		s.say("%s again in %v", name, retry.Pause)
		c.again = s.now.Add(retry.Pause)
	}
}

// answer reads: answer CALL [fence=N] and, of lease calls, [grants=LEASE:FROM-TO@NODE,...] [revoked=LEASE]
// [ticket=LEASE] [adopt|done|epochdone|unknown=yes] [waiting=WORD]; of the call for a token, epoch=N acked=FROM-TO,...
func (s *scripted) answer(name string, w []string) {
	if !s.answered(name) {
		return
	}
	m, fence := s.machine, uint64(1)
	if v := option(w, "fence"); v != "" {
		fence = s.number(v)
	}
	switch name {
	case "acknowledge":
		s.record(recordedStep{Step: "acknowledged", Fence: fence})
		m.Acknowledged(fence, s.now)
	case "release":
		m.Released(s.now)
	case "token":
		sealed := s.token(s.number(option(w, "epoch")), option(w, "acked"))
		s.record(recordedStep{Step: "token", Epoch: sealed.Epoch, Numbers: recordedRanges(sealed.Acknowledged())})
		ok, err := m.TokenSealed(s.checkpoint, sealed, s.acknowledged.Token(), s.now)
		switch {
		case err != nil:
			s.noToken(err)
		case ok:
			s.record(recordedStep{Step: "sealed"})
			s.say("the token is the trainer's")
		default:
			s.ask(s.checkpoint)
		}
	default:
		purpose := map[string]Purpose{"ask": AskLeases, "report": ReportLeases, "epoch": AskEpoch}[name]
		a := s.leaseAnswer(fence, w)
		s.recordLeases(purpose, a)
		m.LeaseAnswered(purpose, a, s.progress(), s.now)
	}
}

func (s *scripted) leaseAnswer(fence uint64, w []string) LeaseAnswer {
	a := LeaseAnswer{
		Fence: fence, UnknownSession: option(w, "unknown") != "", JobDone: option(w, "done") != "",
		EpochDone: option(w, "epochdone") != "", Adopt: option(w, "adopt") != "", Waiting: option(w, "waiting"),
	}
	if v := option(w, "revoked"); v != "" {
		a.Revoked = append(a.Revoked, s.number(v))
	}
	if v := option(w, "ticket"); v != "" {
		a.Tickets = append(a.Tickets, RenewTicket{Lease: s.number(v)})
	}
	for p := range strings.SplitSeq(option(w, "grants"), ",") {
		g := Grant{Epoch: s.machine.epoch.Number, Drive: "d0"}
		if _, err := fmt.Sscanf(p, "%d:%d-%d@%s", &g.Lease, &g.From, &g.To, &g.Node); err != nil {
			continue
		}
		if f, err := s.machine.epoch.Plan.Fragment(g.From); err == nil {
			g.Split = f.Split
		}
		a.Grants = append(a.Grants, g)
	}
	return a
}

func (s *scripted) start() {
	for {
		id, ok, err := s.machine.StartPiece()
		if err != nil {
			if errors.Is(err, ErrFenced) {
				s.record(recordedStep{Step: "fenced"})
			}
			s.say("the delivery fails: %v", err)
		}
		if !ok {
			return
		}
		g := s.grants[id]
		s.say("lease %d starts in %v: fragments [%d,%d) of node %s", id, max(s.machine.NodePause(g.Node, s.now), 0),
			g.From, g.To, g.Node)
	}
}

func (s *scripted) ended(id uint64, outcome Outcome, why string) {
	verdict := s.machine.PieceEnded(id, outcome, why, s.now)
	s.say("lease %d %s", id, map[Verdict]string{Settled: "is settled", GoesBack: "goes back",
		EndsJob: "ends the job"}[verdict])
}

// fetchFails ends an attempt to fetch a mini-batch: NODE busy|fault|final [after=DURATION].
func (s *scripted) fetchFails(w []string) {
	f := s.fetches[w[0]]
	if f == nil {
		f = &Fetch{Node: w[0], Begun: s.now}
		s.fetches[w[0]] = f
	}
	var after time.Duration
	if v := option(w, "after"); v != "" {
		var err error
		after, err = time.ParseDuration(v)
		require.NoError(s.t, err)
	}
	fault := map[string]FetchFault{"busy": BusyFault, "fault": OtherFault, "final": FinalFault}[w[1]]
	again, pause, tries := s.machine.FetchFailed(f, s.machine.Address(w[0]), fault, after, s.now)
	if !again {
		delete(s.fetches, w[0])
		s.say("node %s fails after %d attempts", w[0], tries)
		return
	}
	s.say("node %s again in %v at %s", w[0], pause, s.machine.Address(w[0]))
}

// elapse lets time pass, and carries out what is due meanwhile.
func (s *scripted) elapse(until time.Time) {
	for range 1000 {
		next, name := s.machine.Deadline(), ""
		for n, c := range s.calls {
			if !c.again.IsZero() && (next.IsZero() || c.again.Before(next) || c.again.Equal(next) && n < name) {
				next, name = c.again, n
			}
		}
		if next.IsZero() || next.After(until) {
			s.now = until
			return
		}
		s.now = next
		if name != "" {
			s.attempt(name, s.calls[name])
		} else {
			s.machine.Tick(s.now)
		}
		s.settle()
	}
	s.t.Fatalf("the machine waits for %v, at %v", s.machine.Deadline(), s.now)
}

// settle carries out the effects of the machine, and shows what has been reached.
func (s *scripted) settle() {
	if s.machine == nil {
		return
	}
	for again := true; again; {
		again = false
		for _, e := range s.machine.Ready() {
			s.effect(e)
			again = true
		}
		waits := s.waits
		s.waits = nil
		for _, reached := range waits {
			if reached() {
				again = true
			} else {
				s.waits = append(s.waits, reached)
			}
		}
	}
}

// drop ends the calls of a delivery, or those for the next epoch, as the launcher does.
func (s *scripted) drop(names ...string) {
	for _, name := range names {
		if c := s.calls[name]; c != nil {
			delete(s.calls, name)
			c.failed(errors.New("the call was ended"))
		}
	}
}

// effect carries out an effect of the machine and shows it.
func (s *scripted) effect(e Effect) {
	m := s.machine
	switch e := e.(type) {
	case CallLease:
		name := map[Purpose]string{AskLeases: "ask", ReportLeases: "report", AskEpoch: "epoch"}[e.Purpose]
		s.begin(name, func() string {
			q := m.LeaseRequest(e.Purpose, s.progress(), s.now)
			s.recordRequest(e.Purpose, q)
			return requestWords(q)
		},
			func(err error) { m.LeaseFailed(e.Purpose, err, s.now) })
	case SendAcknowledgements:
		s.begin("acknowledge", func() string {
			s.record(recordedStep{
				Step: "acknowledge", Session: string(e.Session), Epoch: e.Epoch, Numbers: recordedRanges(e.Numbers),
			})
			return fmt.Sprintf("%v of epoch %d as %s", e.Numbers, e.Epoch, e.Session)
		},
			func(err error) { m.AcknowledgeFailed(err, s.now) })
	case Release:
		reason, _, _ := strings.Cut(e.Reason, ":")
		s.record(recordedStep{Step: "release", Session: string(e.Session), Leases: e.Leases, Reason: reason})
		s.begin("release", func() string { return fmt.Sprintf("%v as %s: %s", e.Leases, e.Session, e.Reason) },
			func(err error) { m.ReleaseFailed(err, s.now) })
	case Attach:
		s.begin("attach", func() string { return "again" }, func(err error) { m.AttachFailed(err, s.now) })
	case Granted:
		s.grants[e.Lease] = e.Grant
		s.say("lease %d is granted", e.Lease)
	case CancelPiece:
		s.cancelled[e.Lease] = true
		s.say("the piece of lease %d is cancelled: %s", e.Lease, map[Cancellation]string{Delivered: "delivered",
			Revoked: "revoked", Stuck: "stuck", NothingMissing: "nothing missing"}[e.Why])
	case RenewTicket:
		s.say("lease %d has another ticket", e.Lease)
	case AcknowledgeAgain:
		s.say("acknowledge epoch %d again: %d runs", e.Epoch, e.Runs)
	case TrainerWaits:
		s.say("the trainer has waited for %v: %s", e.Long, e.For)
	case Wake:
	default:
		s.t.Fatalf("unknown effect %T", e)
	}
}

// requestWords describes a lease call.
func requestWords(q LeaseRequest) string {
	words := fmt.Sprintf("epoch %d as %s", q.Epoch, q.Session)
	if q.Want > 0 {
		words += fmt.Sprintf(", wants %d within %v", q.Want, q.Wait)
	}
	if len(q.Held) > 0 {
		words += fmt.Sprintf(", holds %v, has fetched %v", q.Held, q.Fetched)
	}
	for _, g := range q.Adopt {
		words += fmt.Sprintf(", lease %d is [%d,%d) of split %d of %s/%s", g.Lease, g.From, g.To, g.Split, g.Node, g.Drive)
	}
	return words
}
