package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestScripts runs testdata/*.txt: blocks of a command and its results.
func TestScripts(t *testing.T) {
	goldenfile.Scripts(t, func(t *testing.T, script string) string {
		s := &scripted{t: t}
		s.restart(1, 0)
		return goldenfile.Blocks(script, func(command string) string {
			result := s.do(command)
			require.NoError(t, s.l.verify())
			return result
		})
	})
}

// scripted is a ledger that a script drives, with a clock, a store, and the jobs that a control plane remembers.
type scripted struct {
	t        *testing.T
	l        *Ledger
	now      time.Time
	jobs     []Job
	epochs   []Epoch
	sessions map[string]Session
	store    map[string][]byte
	words    []string
}

var scriptStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// restart makes the ledger of a leader with the given fence from the store.
func (s *scripted) restart(fence uint64, window time.Duration) string {
	if s.now.IsZero() {
		s.now, s.sessions, s.store = scriptStart, map[string]Session{}, map[string][]byte{}
	}
	s.l = New(Config{Fence: fence, GrantAfter: s.now.Add(window)})
	for _, j := range s.jobs {
		require.NoError(s.t, s.l.AddJob(j))
		if ranks, ok := s.store[j.ID+"/ranks"]; ok {
			require.NoError(s.t, s.l.Restore(format.Record{Job: j.ID, Kind: format.RanksRecord, Data: ranks}))
		}
		for _, n := range s.l.Live(j.ID) {
			for _, e := range s.epochs {
				if e.Job == j.ID && e.Number == n {
					require.NoError(s.t, s.l.Begin(e, s.now))
				}
			}
		}
	}
	keys := make([]string, 0, len(s.store))
	for k := range s.store {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		job, key, _ := strings.Cut(k, "/")
		if key == "ranks" {
			continue
		}
		r, err := format.RecordOf(job, key, s.store[k])
		require.NoError(s.t, err)
		require.NoError(s.t, s.l.Restore(r))
	}
	for _, j := range s.jobs {
		require.NoError(s.t, s.l.EndRestore(j.ID))
	}
	return s.effects(nil)
}

// arg returns the value of key=value among the words, or "".
func (s *scripted) arg(key string) string {
	for _, w := range s.words {
		if k, v, ok := strings.Cut(w, "="); ok && k == key {
			return v
		}
	}
	return ""
}

func (s *scripted) number(key string) int {
	v := s.arg(key)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	require.NoError(s.t, err, key)
	return n
}

func (s *scripted) atoi(w string) int {
	n, err := strconv.Atoi(w)
	require.NoError(s.t, err)
	return n
}

func driveID(w string) DriveID {
	node, name, _ := strings.Cut(w, "/")
	return DriveID{node, name}
}

func (s *scripted) runs(w string) (runs []dataset.Range) {
	for _, p := range list(w) {
		var r dataset.Range
		_, err := fmt.Sscanf(p, "%d-%d", &r.From, &r.To)
		require.NoError(s.t, err, "a run is FROM-TO, exclusive: %q", p)
		runs = append(runs, r)
	}
	return runs
}

func list(w string) []string {
	if w == "" {
		return nil
	}
	return strings.Split(w, ",")
}

// token reads EPOCH:RUNS.
func (s *scripted) token(job, w string) *dataset.Token {
	if w == "" {
		return nil
	}
	epoch, runs, _ := strings.Cut(w, ":")
	t := numberset.Runs(s.runs(runs)).Token(digestOf(job), uint64(s.atoi(epoch)))
	return &t
}

func digestOf(job string) (d dataset.Digest) { copy(d[:], job); return d }

func showID(id uint64) string { return fmt.Sprintf("L%d.%d", id>>32, id&(1<<32-1)) }

func (s *scripted) ids(w string) (ids []uint64) {
	for _, p := range list(w) {
		var a, b uint64
		_, err := fmt.Sscanf(p, "L%d.%d", &a, &b)
		require.NoError(s.t, err)
		ids = append(ids, a<<32|b)
	}
	return ids
}

func showIDs(ids []uint64) string {
	var b []string
	for _, id := range ids {
		b = append(b, showID(id))
	}
	return strings.Join(b, " ")
}

func showRuns(runs []dataset.Range) string {
	var b []string
	for _, r := range runs {
		b = append(b, fmt.Sprintf("%d-%d", r.From, r.To))
	}
	return strings.Join(b, ",")
}

func showToken(t dataset.Token) string {
	return fmt.Sprintf("%d:%s", t.Epoch, showRuns(numberset.OfToken(&t)))
}

// testPlan makes a plan of partitions NAME=ROWS.
func testPlan(t testing.TB, epoch uint64, o dataset.Options, partitions ...string) (*dataset.Plan, []string) {
	var parts []dataset.Partition
	var names []string
	for _, p := range partitions {
		name, rows, _ := strings.Cut(p, ":")
		n, err := strconv.ParseInt(rows, 10, 64)
		require.NoError(t, err)
		parts = append(parts, dataset.Partition{Name: name, Bytes: n + 1, Rows: n, RowGroups: []int64{n}})
		names = append(names, name)
	}
	m, err := dataset.NewManifest(parts)
	require.NoError(t, err)
	slices.Sort(names)
	o.Epoch = epoch
	plan, err := dataset.NewPlan(m, o)
	require.NoError(t, err)
	return plan, names
}

func (s *scripted) do(line string) string {
	s.words = strings.Fields(line)
	w := s.words
	switch w[0] {
	case "clock":
		d, err := time.ParseDuration(w[1])
		require.NoError(s.t, err)
		s.now = s.now.Add(d)
		s.l.Tick(s.now)
		return s.effects(nil)
	case "leader":
		window, _ := time.ParseDuration(s.arg("window"))
		return s.restart(uint64(s.number("fence")), window)
	case "job":
		j := Job{ID: w[1], Ranks: s.number("ranks"), Weight: float64(s.number("weight")), Drives: s.number("drives")}
		if s.arg("tail") == "keep" {
			j.Tail = KeepTail
		}
		for _, w := range list(s.arg("without")) {
			j.Makers |= map[string]Makers{"drives": NoDrives, "cpus": NoCPUs, "cards": NoCards, "any": NoAny,
				"own": NoOwn}[w]
		}
		if s.arg("order") == "deterministic" {
			j.Order = dataset.Deterministic
		}
		err := s.l.AddJob(j)
		if err == nil {
			s.jobs = append(s.jobs, j)
		}
		return s.effects(err)
	case "epoch":
		o := dataset.Options{Batch: 10, SplitBatches: s.number("split"), Shuffle: dataset.ShuffleNone}
		if boundary := s.arg("boundary"); boundary != "" {
			require.NoError(s.t, o.Boundary.UnmarshalText([]byte(boundary)))
		}
		plan, names := testPlan(s.t, uint64(s.atoi(w[2])), o, list(s.arg("data"))...)
		e := Epoch{Job: w[1], Number: uint64(s.atoi(w[2])), Digest: digestOf(w[1]), Plan: plan, Partitions: names,
			Resume: s.token(w[1], s.arg("resume"))}
		err := s.l.Begin(e, s.now)
		if err == nil {
			s.epochs = append(s.epochs, e)
		}
		return s.effects(err)
	case "drive":
		d := Drive{ID: driveID(w[1]), Streams: s.number("streams"), Partitions: list(s.arg("holds")),
			Draining: s.arg("state") == "draining"}
		d.Reach = map[string]Reach{"any": Any, "source": Source}[s.arg("reach")]
		d.Compute = map[string]Compute{"cpu": OnCPU, "card": OnCard}[s.arg("on")]
		if job, rank, ok := strings.Cut(s.arg("serves"), "/"); ok {
			d.Serves = &RankRef{job, uint32(s.atoi(rank))}
		}
		return s.effects(s.l.PutDrive(d, s.now))
	case "enlist", "delist": // JOB WORKER...
		out := ""
		for _, worker := range w[2:] {
			out += s.effects(s.l.Enlist(w[1], driveID(worker), w[0] == "enlist", s.now))
		}
		return out
	case "workers": // JOB NUMBER or all
		n := AllWorkers
		if w[2] != "all" {
			n = s.atoi(w[2])
		}
		return s.effects(s.l.AllowWorkers(w[1], n, s.now))
	case "share": // JOB RANK SHARE
		share, err := strconv.ParseFloat(w[3], 64)
		require.NoError(s.t, err)
		return s.effects(s.l.ShareSplits(w[1], uint32(s.atoi(w[2])), share, s.now))
	case "granted":
		n, err := s.l.GrantedSplits(w[1])
		require.NoError(s.t, err)
		return fmt.Sprintf("%d on holders, %d on workers without data, %d of these on workers of one rank\n", n.Held,
			n.Any, n.Own)
	case "missing":
		names, total := s.l.Missing(w[1], 4)
		return fmt.Sprintf("%d: %s\n", total, strings.Join(names, " "))
	case "drain", "undrain":
		return s.effects(s.l.DrainDrive(driveID(w[1]), w[0] == "drain", s.now))
	case "lose":
		return s.effects(s.l.LoseDrive(driveID(w[1]), strings.Join(w[2:], " "), s.now))
	case "remove":
		return s.effects(s.l.RemoveDrive(driveID(w[1]), s.now))
	case "removejob":
		err := s.l.RemoveJob(w[1], s.now)
		s.jobs = slices.DeleteFunc(s.jobs, func(j Job) bool { return j.ID == w[1] })
		return s.effects(err)
	case "allocate":
		return s.effects(s.l.Allocate(w[1], s.atoi(w[2]), s.now))
	case "flush": // all records, or the given number
		most := 1 << 20
		if len(w) > 1 {
			most = s.atoi(w[1])
		}
		return s.flush(most)
	case "token":
		t, err := s.l.Token(w[1])
		if err != nil {
			return err.Error() + "\n"
		}
		return showToken(t) + "\n"
	case "status":
		return s.status(w[1])
	case "drives":
		var b strings.Builder
		for _, d := range s.l.Drives() {
			fmt.Fprintf(&b, "%v: %d of %d streams, %d leases, %s\n", d.Drive, d.Busy, d.Streams, d.Leases, d.State)
		}
		return b.String()
	}
	return s.rankCommand(w)
}

// rankCommand carries out a command of a rank: COMMAND JOB RANK [ARGUMENTS] [as=SESSION].
func (s *scripted) rankCommand(w []string) string {
	job := w[1]
	who := w[1] + "/" + w[2]
	if as := s.arg("as"); as != "" {
		who = as
	}
	session := s.sessions[who]
	switch w[0] {
	case "attach":
		a, err := s.l.Attach(job, uint32(s.atoi(w[2])), s.token(job, s.arg("token")), s.now)
		if err != nil {
			return s.effects(err)
		}
		s.sessions[who] = a.Session
		return fmt.Sprintf("epoch %d owns %s has %s\n", a.Epoch, showRuns(a.Owned),
			showRuns(numberset.OfToken(&a.Token))) + s.effects(nil)
	case "want":
		return s.effects(s.l.Want(job, session, uint64(s.atoi(w[3])), s.atoi(w[4]), s.now))
	case "hold":
		gone, err := s.l.Hold(job, session, Progress{s.ids(s.arg("held")), s.ids(s.arg("fetched")), slices.Contains(w,
			"blocked")}, s.now)
		out := ""
		if len(gone) > 0 {
			out = "gone " + showIDs(gone) + "\n"
		}
		return out + s.effects(err)
	case "adopt":
		var leases []Lease
		for _, p := range w[3:] {
			var l Lease
			f := strings.Split(p, ":") // L1.2:epoch:split:from-to:node/drive[:fetched]
			require.GreaterOrEqual(s.t, len(f), 5)
			r := s.runs(f[3])[0]
			l = Lease{s.ids(f[0])[0], uint64(s.atoi(f[1])), s.atoi(f[2]), r.From, r.To, driveID(f[4]),
				strings.HasSuffix(p, ":fetched")}
			leases = append(leases, l)
		}
		gone, err := s.l.Adopt(job, session, leases, s.now)
		out := ""
		if len(gone) > 0 {
			out = "gone " + showIDs(gone) + "\n"
		}
		return out + s.effects(err)
	case "ack":
		return s.effects(s.l.Acknowledge(job, session, uint64(s.atoi(w[3])), s.runs(w[4]), s.now))
	case "release":
		reason := map[string]Reason{"stop": Stopped, "node": NodeFailed, "data": DataFailed}[w[4]]
		return s.effects(s.l.Release(job, session, s.ids(w[3]), reason, strings.Join(w[5:], " "), s.now))
	}
	s.t.Fatalf("unknown command %q", strings.Join(w, " "))
	return ""
}

func (s *scripted) effects(err error) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	e := s.l.Ready()
	for _, r := range e.Revoked {
		fmt.Fprintf(&b, "%s/%d revoke %s: %s\n", r.Job, r.Rank, showID(r.Lease), r.Why)
	}
	for _, g := range e.Grants {
		again := ""
		if g.Again {
			again = " again"
		}
		fmt.Fprintf(&b, "%s/%d grant %s e%d split %d [%d,%d) on %v%s\n", g.Job, g.Rank, showID(g.ID), g.Epoch, g.Split,
			g.From, g.To, g.Drive, again)
	}
	for _, r := range e.Needed {
		fmt.Fprintf(&b, "%s needs epoch %d\n", r.Job, r.Number)
	}
	for _, r := range e.Done {
		fmt.Fprintf(&b, "%s epoch %d done\n", r.Job, r.Number)
	}
	for _, f := range e.Failed {
		fmt.Fprintf(&b, "%s failed: %s\n", f.Job, f.Why)
	}
	return b.String()
}

// flush makes at most most records durable and shows them.
func (s *scripted) flush(most int) string {
	var b strings.Builder
	for {
		records := s.l.Flush(min(most, 3))
		if len(records) == 0 {
			if most > 0 {
				require.Zero(s.t, s.l.Pending())
			}
			return b.String()
		}
		most -= len(records)
		for _, r := range records {
			key := r.Job + "/" + r.Key()
			if r.Data == nil {
				delete(s.store, key)
				fmt.Fprintf(&b, "delete %s\n", key)
				continue
			}
			s.store[key] = bytes.Clone(r.Data)
			n, body := int(binary.LittleEndian.Uint16(r.Data[2:])), r.Data[format.HeaderBytes:]
			switch r.Kind {
			case format.RanksRecord:
				ranks, _ := format.DecodeRanks(r.Data)
				fmt.Fprintf(&b, "put %s", key)
				for _, k := range ranks {
					fmt.Fprintf(&b, " {session %d.%d epoch %d}", k.Fence, k.Generation, k.Epoch)
				}
				b.WriteString("\n")
			case format.MarkRecord:
				fmt.Fprintf(&b, "put %s %d\n", key, body[0])
			case format.ChunkRecord:
				fmt.Fprintf(&b, "put %s %d splits", key, n)
				for _, o := range body[:(n+7)/8] {
					fmt.Fprintf(&b, " %08b", o)
				}
				_, parts, err := format.DecodeChunk(r.Data, n)
				require.NoError(s.t, err)
				for _, p := range parts {
					fmt.Fprintf(&b, " split %d has %s", p.Split, showRuns(p.Runs))
				}
				b.WriteString("\n")
			}
		}
	}
}

func (s *scripted) status(job string) string {
	st, err := s.l.Status(job, s.now)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d: %d of %d delivered, %d leases, %d rows left, %d redelivered, running %v\n", st.Epoch,
		st.Delivered, st.MiniBatches, st.Leases, st.RowsLeft, st.Redelivered, st.Running)
	for _, r := range st.Ranks {
		fmt.Fprintf(&b, "rank %d: epoch %d, %d of %d delivered, %d out", r.Rank, r.Epoch, r.Delivered, r.Owned,
			r.Leased)
		if r.Out {
			b.WriteString(", all out")
		}
		if r.Waiting != "" {
			fmt.Fprintf(&b, ": %s", r.Waiting)
		}
		b.WriteString("\n")
	}
	return b.String()
}
