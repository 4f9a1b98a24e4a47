package upkeep

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestScripts runs testdata/*.txt: blocks of commands and their results.
func TestScripts(t *testing.T) {
	goldenfile.Scripts(t, func(t *testing.T, script string) string {
		s := &scripted{
			t: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), reports: map[string]*Report{},
			holds: map[string][]string{}, manifests: map[*dataset.Manifest]string{},
			editions: map[string]*dataset.Manifest{},
		}
		s.keeper = New(Config{
			Jobs:         func() []Job { return s.jobs },
			Holds:        func(node string, m *dataset.Manifest) bool { return slices.Contains(s.holds[node], s.manifests[m]) },
			KeepReturned: time.Minute,
		})
		return goldenfile.Blocks(script, func(command string) string {
			s.out.Reset()
			s.do(strings.Fields(command))
			s.carryOut()
			return s.out.String()
		})
	})
}

// scripted is a leader in miniature: jobs, the reports of nodes, and the calls that are under way.
type scripted struct {
	t         *testing.T
	out       strings.Builder
	keeper    *Keeper
	now       time.Time
	jobs      []Job
	reports   map[string]*Report
	holds     map[string][]string // by node: the editions of which it holds a partition
	editions  map[string]*dataset.Manifest
	manifests map[*dataset.Manifest]string
	calls     []Effect // that are under way, in the order in which they were made
}

func (s *scripted) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// digest returns the digest of an edition that a script names.
func digest(name string) (d dataset.Digest) {
	copy(d[:], name)
	return d
}

// name returns the name of an edition.
func name(d dataset.Digest) string { return strings.TrimRight(string(d[:]), "\x00") }

// manifest returns the manifest of an edition.
func (s *scripted) manifest(edition string) *dataset.Manifest {
	if s.editions[edition] == nil {
		m := &dataset.Manifest{}
		s.editions[edition], s.manifests[m] = m, edition
	}
	return s.editions[edition]
}

// option returns the value of key=value among the words, and whether it is there.
func option(words []string, key string) (string, bool) {
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok && k == key {
			return v, true
		}
	}
	return "", false
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

func (s *scripted) number(w string) uint64 {
	n, err := strconv.ParseUint(w, 10, 64)
	require.NoError(s.t, err)
	return n
}

// do carries out a command of a script.
func (s *scripted) do(w []string) {
	k := s.keeper
	switch w[0] {
	case "job":
		s.job(w)
	case "end": // JOB
		s.jobs = slices.DeleteFunc(s.jobs, func(j Job) bool { return j.ID == w[1] })
	case "join": // NODE [OPTIONS]: a node joins and reports everything at once
		k.Joined(s.report(w))
		k.Renewed(w[1])
		k.Reported(*s.reports[w[1]])
	case "joined":
		k.Joined(s.report(w))
	case "renewed":
		k.Renewed(w[1])
	case "beat":
		k.Reported(s.report(w))
	case "die":
		k.Died(w[1], "its node is dead")
	case "forget":
		k.Forgotten(w[1])
	case "ask": // NUMBER NODE EDITION
		k.Ask(s.number(w[1]), w[2], digest(w[3]))
	case "dismiss": // NUMBER EDITION
		k.Dismiss(s.number(w[1]), digest(w[2]))
	case "dropped":
		k.Dropped(digest(w[1]))
	case "workers":
		k.WorkersNeeded()
	case "withdraw":
		k.Withdrawn(w[1])
	case "answer":
		s.answer(w)
	case "clock":
		d, err := time.ParseDuration(w[1])
		require.NoError(s.t, err)
		s.now = s.now.Add(d)
		k.Tick(s.now)
	case "returned": // NODE LEASE
		k.LeaseReturned(w[1], s.number(w[2]), s.now)
	default:
		s.question(w)
	}
}

// question asks the keeper.
func (s *scripted) question(w []string) {
	k := s.keeper
	switch w[0] {
	case "refuses": // NODE SEEN
		leases, upTo := k.Returned(w[1], s.number(w[2]), s.now)
		s.say("%s refuses %v, up to %d", w[1], leases, upTo)
	case "prepared": // NODE EDITION
		s.say("%s is prepared for %s: %v", w[1], w[2], k.IsPrepared(w[1], digest(w[2])))
	case "takes": // NODE DRIVE
		s.say("%s/%s takes leases: %v", w[1], w[2], k.Takes(ledger.DriveID{Node: w[1], Name: w[2]}))
	case "failures": // EDITION
		for _, f := range k.Failures(digest(w[1])) {
			s.say("%s: %v, for lack of room: %v", f.Node, f.Err, f.NoRoom)
		}
	case "holders": // JOB EDITION
		s.say("lacks room: %v, held by %v", k.LacksRoom([]dataset.Digest{digest(w[2])}),
			k.RoomHolders(w[1], []dataset.Digest{digest(w[2])}))
	case "file": // EDITION PARTITION
		s.say("%s is a worker's own file: %v", w[2], k.OwnFiles(digest(w[1]))(w[2]))
	default:
		s.t.Fatalf("unknown command %q", strings.Join(w, " "))
	}
}

// job reads: job NAME [editions=EDITION,...] [unbegun=EDITION,...] [pass=EDITION] [makers=holders|workers]
// [needs=workers]. It adds the job, or replaces it.
func (s *scripted) job(w []string) {
	j := Job{ID: w[1], Ranks: 2}
	add := func(key string, e Edition) {
		names, _ := option(w, key)
		for _, n := range list(names) {
			e.Digest, e.Manifest = digest(n), s.manifest(n)
			j.Editions = append(j.Editions, e)
		}
	}
	add("editions", Edition{Begun: true})
	add("unbegun", Edition{})
	add("pass", Edition{Begun: true, Pass: true})
	switch makers, _ := option(w, "makers"); makers {
	case "holders":
		j.Makers = ledger.NoAny | ledger.NoOwn
	case "workers":
		j.Makers = ledger.NoDrives | ledger.NoCPUs | ledger.NoCards
	}
	_, j.NeedsWorkers = option(w, "needs")
	if i := slices.IndexFunc(s.jobs, func(o Job) bool { return o.ID == j.ID }); i >= 0 {
		s.jobs[i] = j
	} else {
		s.jobs = append(s.jobs, j)
	}
}

// report reads: NODE [incarnation=NAME] [drives=DRIVE:STATE,...] [holds=EDITION,...] [jobs=EDITION,...] [drains=yes]
// [asked=yes] [owned=yes] [sources=yes]. What is left out stays as it was. The state of a drive may be followed by
// ":any", or by ":JOB/RANK" of the rank that it serves alone.
func (s *scripted) report(w []string) Report {
	r := s.reports[w[1]]
	if r == nil {
		r = &Report{Node: w[1], Incarnation: "1"}
		s.reports[w[1]] = r
	}
	if v, ok := option(w, "incarnation"); ok {
		r.Incarnation = v
	}
	if v, ok := option(w, "holds"); ok {
		s.holds[w[1]] = list(v)
	}
	if v, ok := option(w, "jobs"); ok {
		r.Jobs = nil
		for _, e := range list(v) {
			r.Jobs = append(r.Jobs, digest(e))
		}
	}
	for key, to := range map[string]*bool{
		"drains": &r.SelfDrains, "asked": &r.DrainAsked, "owned": &r.Owned, "sources": &r.Sources,
	} {
		if v, ok := option(w, key); ok {
			*to = v == "yes"
		}
	}
	if v, ok := option(w, "drives"); ok {
		r.Drives = nil
		for _, d := range list(v) {
			r.Drives = append(r.Drives, s.drive(w[1], d))
		}
	}
	r.Drives = slices.Clone(r.Drives)
	return *r
}

func (s *scripted) drive(node, words string) Drive {
	w := strings.Split(words, ":")
	d := Drive{Drive: ledger.Drive{ID: ledger.DriveID{Node: node, Name: w[0]}, Streams: 1}, State: DriveState(w[1]),
		Why: "it says " + w[1]}
	if len(w) > 2 {
		d.Reach = ledger.Any
		if job, rank, ok := strings.Cut(w[2], "/"); ok {
			d.Serves = &ledger.RankRef{Job: job, Rank: uint32(s.number(rank))}
		}
	}
	return d
}

// answer reads: answer prepare|finish|drain NODE [EDITION] [as=noroom|refused|failed] [files=PARTITION,...]. It answers
// the call of this kind that was made first.
func (s *scripted) answer(w []string) {
	kind := w[1] + " " + w[2]
	if w[1] != "drain" {
		kind += " " + w[3]
	}
	i := slices.IndexFunc(s.calls, func(e Effect) bool { return callName(e) == kind })
	require.GreaterOrEqual(s.t, i, 0, "no call %q is under way", kind)
	e := s.calls[i]
	s.calls = slices.Delete(s.calls, i, i+1)
	var r Result
	switch as, _ := option(w, "as"); as {
	case "noroom":
		r = Result{Outcome: NoRoom, Err: errors.New("no memory is left")}
	case "refused":
		r = Result{Outcome: Refused, Err: errors.New("the node cannot do that")}
	case "failed":
		r = Result{Outcome: Failed, Err: errors.New("the node is not reached")}
	}
	files, _ := option(w, "files")
	r.OwnFiles = list(files)
	switch e := e.(type) {
	case Prepare:
		s.keeper.Prepared(e, r, s.now)
	case Finish:
		s.keeper.Finished(e)
	case Drain:
		s.keeper.Drained(e, r, s.now)
	}
}

// callName names a call of a node as scripts do.
func callName(e Effect) string {
	switch e := e.(type) {
	case Prepare:
		return "prepare " + e.Node + " " + name(e.Digest)
	case Finish:
		return "finish " + e.Node + " " + name(e.Digest)
	case Drain:
		return "drain " + e.Node
	}
	return ""
}

// carryOut shows the effects.
func (s *scripted) carryOut() {
	for effects := s.keeper.Ready(s.now); len(effects) > 0; effects = s.keeper.Ready(s.now) {
		for _, e := range effects {
			if callName(e) != "" {
				s.calls = append(s.calls, e)
			}
			s.effect(e)
		}
	}
}

func (s *scripted) effect(e Effect) {
	switch e := e.(type) {
	case Prepare:
		s.say("call %s: prepare %s for %s", e.Node, name(e.Digest), e.Job)
	case Finish:
		s.say("call %s: forget %s", e.Node, name(e.Digest))
	case Drain:
		s.say("call %s: drain %v", e.Node, e.Drain)
	case ListDrives:
		words := make([]string, len(e.Drives))
		for i, d := range e.Drives {
			if words[i] = d.ID.String(); d.Draining {
				words[i] += " (draining)"
			}
			if d.Reach == ledger.Source {
				words[i] += "(sources)"
			}
			if len(d.Partitions) > 0 {
				words[i] += fmt.Sprintf(" (own files %v)", d.Partitions)
			}
		}
		s.say("ledger: list %s", strings.Join(words, ", "))
	case DriveChanged:
		s.say("ledger: %v %s -> %s: %s", e.Drive, e.From, e.To, e.Why)
	case RemoveDrive:
		s.say("ledger: remove %v", e.Drive)
	case Enlist:
		if e.Ready {
			s.say("ledger: enlist %v for %s", e.Worker, e.Job)
		} else {
			s.say("ledger: %v works for %s no more", e.Worker, e.Job)
		}
	case NeedRoom:
		s.say("%s needs room on %s, which has %v", e.Job, e.Node, e.Holders)
	case Reply:
		if e.Err != nil {
			s.say("reply %d: %v", e.Call, e.Err)
		} else {
			s.say("reply %d: ok", e.Call)
		}
	}
}
