package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// TestScripts runs testdata/*.txt: blocks of commands and their results.
func TestScripts(t *testing.T) {
	goldenfile.Scripts(t, func(t *testing.T, script string) string {
		s := &scripted{
			t: t, now: scriptStart, stored: map[string]record.State{}, terms: map[string]Terms{},
			records: map[string][]byte{}, plans: map[string]*dataset.Manifest{}, sessions: map[string]ledger.Session{},
		}
		s.restart(1)
		return goldenfile.Blocks(script, func(command string) string {
			s.out.Reset()
			s.do(strings.Fields(command))
			s.carryOut()
			return s.out.String()
		})
	})
}

// scripted is a leader in miniature: the machine and a ledger in memory, and an etcd that outlives them.
type scripted struct {
	t       *testing.T
	out     strings.Builder
	machine *Machine
	ledger  *ledger.Ledger
	now     time.Time
	fence   uint64 // of the present leader
	drives  []ledger.Drive

	attachWithin time.Duration

	stored  map[string]record.State
	records map[string][]byte // of the ledger, by JOB/KEY
	terms   map[string]Terms
	plans   map[string]*dataset.Manifest // by JOB/GENERATION

	sessions map[string]ledger.Session // by JOB/RANK, or as a script names them
}

var scriptStart = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func (s *scripted) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// restart makes the machine and the ledger of a leader with this fence from the stored records.
func (s *scripted) restart(fence uint64) {
	s.fence = fence
	s.machine = New(Config{AbandonAfter: 24 * time.Hour, AttachWithin: s.attachWithin})
	s.ledger = ledger.New(ledger.Config{Fence: fence, LeaseTTL: time.Hour})
	for _, d := range s.drives {
		require.NoError(s.t, s.ledger.PutDrive(d, s.now))
	}
	for _, id := range slices.Sorted(maps.Keys(s.stored)) {
		j := s.machine.Add(s.terms[id], s.stored[id])
		if j.Phase().Ended() {
			continue
		}
		require.NoError(s.t, s.ledger.AddJob(ledger.Job{ID: id, Ranks: j.Ranks}))
		if j.Phase().Begun() {
			s.restoreLedger(j)
		}
	}
	s.carryOut()
}

func (s *scripted) restoreLedger(j *Job) {
	if data, ok := s.records[j.ID+"/ranks"]; ok {
		require.NoError(s.t, s.ledger.Restore(format.Record{Job: j.ID, Kind: format.RanksRecord, Data: data}))
	}
	live := s.ledger.Live(j.ID)
	if len(live) == 0 {
		live = []uint64{j.FirstEpoch}
	}
	for _, epoch := range live {
		s.begin(j, epoch)
	}
	for _, k := range slices.Sorted(maps.Keys(s.records)) {
		if job, key, _ := strings.Cut(k, "/"); job == j.ID && key != "ranks" {
			r, err := format.RecordOf(job, key, s.records[k])
			require.NoError(s.t, err)
			require.NoError(s.t, s.ledger.Restore(r))
		}
	}
	require.NoError(s.t, s.ledger.EndRestore(j.ID))
}

// begin has the ledger begin an epoch: of every partition, mini-batches of 10 rows and splits of 2 mini-batches.
func (s *scripted) begin(j *Job, epoch uint64) {
	g, ok := j.EditionOf(epoch)
	require.True(s.t, ok)
	m := s.plans[fmt.Sprintf("%s/%d", j.ID, g.Number)]
	plan, err := dataset.NewPlan(m, dataset.Options{Batch: 10, SplitBatches: 2, Shuffle: dataset.ShuffleNone,
		Epoch: epoch})
	require.NoError(s.t, err)
	e := ledger.Epoch{Job: j.ID, Number: epoch, Digest: g.Digest, Plan: plan}
	for _, p := range m.Partitions {
		e.Partitions = append(e.Partitions, p.Name)
	}
	require.NoError(s.t, s.ledger.Begin(e, s.now))
}

// manifest reads NAME:ROWS,... of the partitions that an edition of a job has.
func (s *scripted) manifest(job string, edition int, data string) dataset.Digest {
	var parts []dataset.Partition
	for p := range strings.SplitSeq(data, ",") {
		name, rows, _ := strings.Cut(p, ":")
		n := int64(s.integer(rows))
		parts = append(parts, dataset.Partition{Name: name, Bytes: n + 1, Rows: n, RowGroups: []int64{n}})
	}
	m, err := dataset.NewManifest(parts)
	require.NoError(s.t, err)
	s.plans[fmt.Sprintf("%s/%d", job, edition)] = m
	d, err := m.Digest()
	require.NoError(s.t, err)
	return d
}

func (s *scripted) integer(w string) int {
	n, err := strconv.Atoi(w)
	require.NoError(s.t, err)
	return n
}

func (s *scripted) duration(w string) time.Duration {
	d, err := time.ParseDuration(w)
	require.NoError(s.t, err)
	return d
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

// do carries out a command of a script.
func (s *scripted) do(w []string) {
	switch w[0] {
	case "leader": // fence=N [within=DURATION]
		if v := option(w, "within"); v != "" {
			s.attachWithin = s.duration(v)
		}
		s.restart(uint64(s.integer(option(w, "fence"))))
		return
	case "drive":
		node, name, _ := strings.Cut(w[1], "/")
		d := ledger.Drive{
			ID: ledger.DriveID{Node: node, Name: name}, Streams: 2, Partitions: strings.Split(option(w, "holds"), ","),
		}
		s.drives = append(s.drives, d)
		require.NoError(s.t, s.ledger.PutDrive(d, s.now))
		return
	case "clock":
		s.now = s.now.Add(s.duration(w[1]))
		s.machine.Tick(s.now)
		s.ledger.Tick(s.now)
		return
	case "close":
		s.machine.ConnectionClosed(presence.Conn(s.integer(w[1])), s.now)
		return
	case "submit":
		s.submit(w)
		return
	}
	j := s.machine.Find(w[1])
	require.NotNil(s.t, j, "job %s", w[1])
	if !s.jobEvent(j, w) {
		s.rankEvent(j, w)
	}
}

// submit reads: submit JOB [name=NAME] [ranks=N] [epochs=N] [follow=yes|once] [abandon=DURATION] data=NAME:ROWS,...
func (s *scripted) submit(w []string) {
	t := Terms{ID: w[1], Name: w[1], Ranks: 1, Epochs: 1, Follow: option(w, "follow") != "",
		FollowOnce: option(w, "follow") == "once"}
	if v := option(w, "name"); v != "" {
		t.Name = v
	}
	if v := option(w, "ranks"); v != "" {
		t.Ranks = s.integer(v)
	}
	if v := option(w, "epochs"); v != "" {
		t.Epochs = uint64(s.integer(v))
	}
	if v := option(w, "abandon"); v != "" {
		t.MaxUnattended = s.duration(v)
	}
	if was := s.machine.Running(t.Name); was != nil {
		s.say("%s runs already as %s, ending %v", t.Name, was.ID, was.Ending(s.now))
		return
	}
	st := Submission(record.Edition{Digest: s.manifest(t.ID, 0, option(w, "data")), Pieces: 1})
	s.stored[t.ID], s.terms[t.ID] = st, t
	s.machine.Add(t, st)
	require.NoError(s.t, s.ledger.AddJob(ledger.Job{ID: t.ID, Ranks: t.Ranks}))
}

// jobEvent does what concerns a whole job; it reports whether the command is one of those.
func (s *scripted) jobEvent(j *Job, w []string) bool {
	rest := strings.Join(w[2:], " ")
	switch w[0] {
	case "duty":
		s.say("%s: %v", j.ID, j.Duty(s.now))
	case "review":
		j.Review()
	case "prepared":
		j.Prepared()
	case "preparefails":
		j.PrepareFailed(rest, s.now)
	case "delayed":
		j.Delayed(rest)
	case "measured":
		j.Measured(map[string]float64{"n0/d0": 100}, 0, allocation.Allocation{Drives: s.integer(w[2])})
	case "fail":
		j.Fail(rest, s.now)
	case "cancel":
		j.Cancel(s.now)
	case "giveroom":
		s.say("%s gives its room: %v", j.ID, j.GiveRoom(w[2], s.now))
	case "withdrawn":
		j.Withdrawn()
	case "asks":
		j.Asked(s.now)
	case "store":
		s.store(j, j.Storing(s.now))
	case "commit":
		s.store(j, j.StoringNext(s.now))
		j.Committed()
	case "commitlost": // written, and the leader dies before it hears of that
		s.store(j, j.StoringNext(s.now))
	case "commitfails":
		j.StoringNext(s.now)
		j.CommitFailed()
	case "confirm":
		s.flush()
		j.Confirmed(s.now)
	case "found":
		number, _ := j.NextEdition()
		j.PartitionsFound(s.manifest(j.ID, number, w[2]))
	case "missing":
		j.PartitionsMissing(rest)
	case "editionstored":
		j.EditionStored(1)
	case "status":
		s.status(j)
	default:
		return false
	}
	return true
}

// rankEvent reads: COMMAND JOB RANK [ARGUMENTS] [as=SESSION] [on=CONNECTION].
func (s *scripted) rankEvent(j *Job, w []string) {
	rank := uint32(s.integer(w[2]))
	name := w[1] + "/" + w[2]
	if v := option(w, "as"); v != "" {
		name = v
	}
	conn := presence.Conn(0)
	if v := option(w, "on"); v != "" {
		conn = presence.Conn(s.integer(v))
	}
	session := s.sessions[name]
	switch w[0] {
	case "attach":
		s.attach(j, rank, name, conn, w)
	case "call":
		j.Called(rank, conn, s.now)
	case "lease":
		s.lease(j, session, uint64(s.integer(w[3])), s.integer(w[4]), w)
		j.Called(rank, conn, s.now)
	case "ack":
		if err := s.ledger.Acknowledge(j.ID, session, uint64(s.integer(w[3])), s.runs(w[4]), s.now); err != nil {
			s.say("error: %v", err)
		}
	case "announce":
		j.Announces(rank, true)
	case "through":
		j.Through(rank)
	case "leave":
		j.Left(rank, s.now)
	case "giveup": // the caller of the rank's last lease call has gone
		r := j.Rank(rank)
		leases := r.TakeUnanswered()
		s.say("%s/%d gives back %s", j.ID, rank, leaseNames(leases))
		require.NoError(s.t, s.ledger.Release(j.ID, session, leases, ledger.Stopped, "", s.now))
	case "answer":
		s.answer(j, j.Rank(rank), rank)
	default:
		s.t.Fatalf("unknown command %q", strings.Join(w, " "))
	}
}

// attach reads: attach JOB RANK [run=NAME] [token=EPOCH:FROM-TO,...] [announces=yes].
func (s *scripted) attach(j *Job, rank uint32, name string, conn presence.Conn, w []string) {
	run, err := RunOf(option(w, "run"))
	require.NoError(s.t, err)
	var token *dataset.Token
	if v := option(w, "token"); v != "" {
		token = s.token(j, v)
	} else if consumed, foreign, err := j.ForeignRun(rank, run, func(n uint32) (uint64, uint64, error) {
		return s.ledger.Progress(j.ID, n)
	}); foreign {
		require.NoError(s.t, err)
		s.say("%s/%d is refused: another run consumed of rank %d", j.ID, rank, consumed)
		return
	}
	at, err := s.ledger.Attach(j.ID, rank, token, s.now)
	if err != nil {
		s.say("error: %v", err)
		return
	}
	s.sessions[name] = at.Session
	j.Attached(Attachment{at.Session, run, option(w, "announces") != "", conn}, s.now)
	s.say("%s/%d attached in epoch %d", j.ID, rank, at.Epoch)
	st, err := s.ledger.Status(j.ID, s.now)
	require.NoError(s.t, err)
	j.WentBack(st.Epoch, st.Delivered, st.MiniBatches)
}

func (s *scripted) token(j *Job, w string) *dataset.Token {
	epoch, runs, _ := strings.Cut(w, ":")
	g, ok := j.EditionOf(uint64(s.integer(epoch)))
	require.True(s.t, ok)
	t := &dataset.Token{Job: g.Digest, Epoch: uint64(s.integer(epoch))}
	if runs != "" {
		all := s.runs(runs)
		t.Mark, t.Ranges = all[0].To, all[1:]
	}
	return t
}

func (s *scripted) runs(w string) (runs []dataset.Range) {
	for p := range strings.SplitSeq(w, ",") {
		var r dataset.Range
		_, err := fmt.Sscanf(p, "%d-%d", &r.From, &r.To)
		require.NoError(s.t, err, "FROM-TO, exclusive: %q", p)
		runs = append(runs, r)
	}
	return runs
}

// lease reads: lease JOB RANK EPOCH PIECES [held=LEASE,...].
func (s *scripted) lease(j *Job, session ledger.Session, epoch uint64, pieces int, w []string) {
	r := j.Rank(session.Rank)
	if r.FencedOff(session) {
		s.say("%s/%d: the session was fenced off", j.ID, session.Rank)
		return
	}
	var held []uint64
	for _, name := range strings.FieldsFunc(option(w, "held"), func(c rune) bool { return c == ',' }) {
		var fence, n uint64
		_, err := fmt.Sscanf(name, "L%d.%d", &fence, &n)
		require.NoError(s.t, err)
		held = append(held, fence<<32|n)
	}
	if len(held) > 0 && r.MustShow(session, s.fence) {
		s.say("%s/%d must show its leases", j.ID, session.Rank)
		return
	}
	revoked, err := s.ledger.Hold(j.ID, session, ledger.Progress{Held: held}, s.now)
	require.NoError(s.t, err)
	if len(revoked) > 0 {
		s.say("%s/%d holds %s no more", j.ID, session.Rank, leaseNames(revoked))
	}
	r.Held(session, held, s.leased(j, session.Rank))
	_, more := r.Wants(pieces)
	if err := s.ledger.Want(j.ID, session, epoch, more, s.now); err != nil {
		s.say("error: %v", err)
	}
}

func (s *scripted) leased(j *Job, rank uint32) func(uint64) bool {
	return func(lease uint64) bool { return s.ledger.Leased(j.ID, rank, lease) }
}

func (s *scripted) answer(j *Job, r *Rank, rank uint32) {
	grants, _, revoked := r.Answer(s.leased(j, rank))
	var leases []uint64
	for _, g := range grants {
		leases = append(leases, g.ID)
	}
	s.say("%s/%d is told: granted %s, revoked %s", j.ID, rank, leaseNames(leases), leaseNames(revoked))
}

func leaseNames(leases []uint64) string {
	if len(leases) == 0 {
		return "nothing"
	}
	names := make([]string, len(leases))
	for i, id := range leases {
		names[i] = fmt.Sprintf("L%d.%d", id>>32, id&(1<<32-1))
	}
	return strings.Join(names, " ")
}

// store writes a state to the etcd of the script.
func (s *scripted) store(j *Job, st record.State) {
	st.Editions, st.P = slices.Clone(st.Editions), maps.Clone(st.P)
	s.stored[j.ID] = st
	s.say("stored %s: %s, %d editions, ranks that announced their end %q", j.ID, st.Phase.Words(st.Why), st.Taken,
		st.Stays)
}

// flush makes the ledger's changes durable.
func (s *scripted) flush() {
	for {
		records := s.ledger.Flush(100)
		for _, r := range records {
			if key := r.Job + "/" + r.Key(); r.Data == nil {
				delete(s.records, key)
			} else {
				s.records[key] = slices.Clone(r.Data)
			}
		}
		if len(records) == 0 {
			return
		}
	}
}

func (s *scripted) status(j *Job) {
	s.say("%s is %s", j.ID, j.Words())
	for n := range j.ranks {
		at := j.Launcher(uint32(n))
		where := "was never attached"
		if at.Attached {
			where = "attached"
		} else if at.Why != "" {
			where = "detached: " + at.Why
		}
		s.say("rank %d: %s", n, where)
	}
}

// carryOut carries out the effects of the machine and of the ledger, as a leader does, and shows them.
func (s *scripted) carryOut() {
	for {
		events := s.ledger.Ready()
		s.ledgerEffects(events)
		effects := s.machine.Ready()
		for _, e := range effects {
			s.effect(e)
		}
		if len(effects) == 0 &&
			len(events.Grants)+len(events.Revoked)+len(events.Needed)+len(events.Done)+len(events.Failed) == 0 {
			return
		}
	}
}

// ledgerEffects passes the ledger's effects to the jobs.
func (s *scripted) ledgerEffects(e ledger.Effects) {
	for _, g := range e.Grants {
		s.say("%s/%d is granted %s: mini-batches [%d,%d) of epoch %d", g.Job, g.Rank, leaseNames([]uint64{g.ID}),
			g.From, g.To, g.Epoch)
		s.machine.Job(g.Job).Granted(g)
	}
	for _, v := range e.Revoked {
		s.say("%s/%d loses %s: %s", v.Job, v.Rank, leaseNames([]uint64{v.Lease}), v.Why)
		s.machine.Job(v.Job).Revoked(v)
	}
	for _, f := range e.Failed {
		s.machine.Job(f.Job).Fail(f.Why, s.now)
	}
	for _, d := range e.Done {
		s.say("%s: epoch %d is delivered", d.Job, d.Number)
		s.machine.Job(d.Job).EpochDelivered(d.Number, s.now)
	}
	for _, n := range e.Needed {
		s.machine.Job(n.Job).EpochNeeded(n.Number)
	}
}

// effect carries out an effect of the machine and shows it.
func (s *scripted) effect(e Effect) {
	switch e := e.(type) {
	case Moved:
		s.say("%s: %s -> %s", e.Job, e.From, e.To.Words(e.Why))
	case Refused:
		s.say("%s: %v", e.Job, e.Err)
	case BeginEpoch:
		s.say("%s: begin epoch %d", e.Job, e.Epoch)
		s.begin(s.machine.Job(e.Job), e.Epoch)
	case DetachRank:
		s.say("%s/%d is detached: %s", e.Job, e.Rank, e.Why)
		require.NoError(s.t, s.ledger.Detach(e.Job, e.Rank, e.Why, s.now))
	case EndJob:
		j := s.machine.Job(e.Job)
		c := Conclusion{Status: []byte(e.Phase)}
		if t, err := s.ledger.Token(e.Job); err == nil && e.Phase == record.Abandoned {
			c.Token, err = t.MarshalBinary()
			require.NoError(s.t, err)
			s.say("%s: keep the token: epoch %d, all below %d, and %d more", e.Job, t.Epoch, t.Mark,
				acknowledged(t.Ranges))
		}
		j.Conclude(c)
		require.NoError(s.t, s.ledger.RemoveJob(e.Job, s.now))
		s.ledger.Ready() // of a job that is removed
	case WakeRank: // of no interest
	case FindPartitions:
		s.say("%s: find partitions", e.Job)
	case DropEdition:
		s.say("%s: drop edition %d", e.Job, e.Number)
	case EditionBegun:
		s.say("%s: edition %d begins with epoch %d", e.Job, e.Edition.Number, e.Edition.First)
	default:
		s.t.Fatalf("unknown effect %T", e)
	}
}

func acknowledged(runs []dataset.Range) (n uint64) {
	for _, r := range runs {
		n += r.To - r.From
	}
	return n
}
