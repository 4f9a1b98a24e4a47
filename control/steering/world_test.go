package steering

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
)

// worldStart is the time at which the owner's term begins.
var worldStart = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// world is an owner in miniature: a job, what the owner would see of it, and a ledger's shares.
type world struct {
	t    require.TestingT
	job  *Job
	view View
	out  strings.Builder
}

func newWorld(t require.TestingT, terms Terms) *world {
	w := &world{t: t, job: New(terms), view: View{Now: worldStart, Running: true}}
	w.view.P = map[string]float64{}
	for rank := range terms.Spec.Ranks {
		w.view.Status.Ranks = append(w.view.Status.Ranks, ledger.RankStatus{Rank: rank, Share: Undivided})
	}
	return w
}

// step lets time pass, has the job reviewed, and carries out the decision.
func (w *world) step(d time.Duration) Decision {
	w.view.Now = w.view.Now.Add(d)
	w.view.Seconds = w.view.Now.Sub(worldStart).Seconds()
	decision := w.job.Step(w.view)
	if decision.T > 0 {
		w.view.T = decision.T
	}
	if a := decision.Allocation; a != nil {
		w.view.Allocation, w.view.Status.Allowed = *a, a.Workers
	}
	w.carryOut(decision.Shares)
	return decision
}

func (w *world) carryOut(shares []Share) {
	for _, s := range shares {
		w.view.Status.Ranks[s.Rank].Share = s.Ratio
	}
}

// worker finds or adds a worker.
func worker(list *[]Worker, name string) *Worker {
	node, drive, _ := strings.Cut(name, "/")
	id := fleet.DriveID{Node: node, Drive: drive}
	i := slices.IndexFunc(*list, func(w Worker) bool { return w.ID == id })
	if i < 0 {
		i = len(*list)
		*list = append(*list, Worker{ID: id, Drive: &apiv1.Drive{Name: drive, Threads: 1}, Ready: true})
	}
	return &(*list)[i]
}

// TestScripts runs testdata/*.txt: blocks of commands and their results.
func TestScripts(t *testing.T) {
	goldenfile.Scripts(t, func(t *testing.T, script string) string {
		var w *world
		return goldenfile.Blocks(script, func(command string) string {
			words := strings.Fields(command)
			if words[0] == "job" {
				w = newWorld(t, termsOf(t, words[1:]))
				return ""
			}
			w.out.Reset()
			w.do(words)
			return w.out.String()
		})
	})
}

// termsOf reads the words of a job: ranks, most, not, offload.
func termsOf(t *testing.T, words []string) Terms {
	terms := Terms{ID: "x", Spec: &apiv1.JobSpec{Ranks: 1}, BatchRows: 10}
	for name, value := range values(words) {
		switch name {
		case "ranks":
			terms.Spec.Ranks = uint32(number(t, value))
		case "most":
			terms.Spec.MaxDrives = int32(number(t, value))
		case "not":
			for kind := range strings.SplitSeq(value, ",") {
				terms.Makers |= map[string]ledger.Makers{"held": ledger.NoDrives | ledger.NoCPUs | ledger.NoCards,
					"any": ledger.NoAny, "own": ledger.NoOwn}[kind]
			}
		case "offload":
			o, err := record.ParseOffload(value)
			require.NoError(t, err)
			terms.Offload = o
		default:
			require.Fail(t, "an unknown word of a job", name)
		}
	}
	return terms
}

// values yields the words NAME=VALUE in their order; a word without a value has the value 1.
func values(words []string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for _, word := range words {
			name, value, given := strings.Cut(word, "=")
			if !given {
				value = "1"
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

func number(t require.TestingT, s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return n
}

// do carries out a command of a script.
func (w *world) do(words []string) {
	switch name, rest := words[0], words[1:]; name {
	case "partition": // NAME ROWS DRIVE...
		w.view.Partitions = append(w.view.Partitions, dataset.Partition{Name: rest[0], Rows: int64(number(w.t, rest[1]))})
		var at []fleet.DriveID
		for _, drive := range rest[2:] {
			at = append(at, worker(&w.view.Holders, drive).ID)
		}
		w.view.Holding = append(w.view.Holding, at)
	case "drive":
		w.change(worker(&w.view.Holders, rest[0]), rest[1:])
	case "worker":
		d := worker(&w.view.Workers, rest[0])
		d.Drive.Reach = apiv1.ReachAny
		w.change(d, rest[1:])
	case "gone":
		w.remove(rest[0])
	case "see":
		w.see(rest)
	case "rank":
		w.rank(rest)
	case "attach": // RANK, and "same" for a session of the same run
		w.job.Attached(uint32(number(w.t, rest[0])), len(rest) > 1)
	case "report":
		w.report(rest)
	case "step", "steps":
		for range max(int(number(w.t, append(rest, "1")[0])), 1) {
			w.describe(w.step(time.Second))
		}
	case "review":
		shares := w.job.ReviewShares(w.view)
		w.carryOut(shares)
		w.describe(Decision{Shares: shares})
	case "allocate":
		a, err := w.job.Allocate(&w.view.Supply, &w.view.Rates, w.view.ShortMeasured)
		if err != nil {
			fmt.Fprintf(&w.out, "error: %v\n", err)
			return
		}
		w.view.Allocation, w.view.Status.Allowed = a, a.Workers
		fmt.Fprintf(&w.out, "%d drives of %d wanted, %d workers, stall %v: %s\n", a.Drives, a.Wanted, a.Workers,
			a.ExpectedStall, a.Note)
	case "now":
		a := w.job.AllocationNow(w.view.Allocation, &w.view.Supply, &w.view.Rates)
		fmt.Fprintf(&w.out, "%d drives, stall %v: %s\n", a.Drives, a.ExpectedStall, a.Note)
	case "measured": // WORKER P
		w.measured(rest[0], number(w.t, rest[1]))
	case "delivered": // mini-batches
		w.job.Delivered(uint64(number(w.t, rest[0])))
	case "failed":
		w.job.NotMeasured(worker(&w.view.Workers, rest[0]).ID, w.view.Now)
	case "pool":
		fmt.Fprintf(&w.out, "%d workers\n", w.job.PoolWorkers(w.view.Running))
	case "status":
		s := &apiv1.RankStatus{Rank: uint32(number(w.t, rest[0]))}
		w.job.Describe(s)
		fmt.Fprintf(&w.out, "stall %g s, queue %g, t %g: %s\n", s.StallSeconds, s.QueueBatches, s.TRowsPerSecond, s.Offload)
	default:
		require.Fail(w.t, "an unknown command", name)
	}
}

// change changes a worker: threads, p, serves, prepared, drained.
func (w *world) change(d *Worker, words []string) {
	for name, value := range values(words) {
		switch name {
		case "threads":
			d.Drive.Threads = int32(number(w.t, value))
		case "p":
			w.view.P[d.Name()] = number(w.t, value)
		case "serves":
			d.Drive.Serves = &apiv1.RankName{Job: w.job.ID, Rank: uint32(number(w.t, value))}
		case "prepared":
			d.Prepared = value == "1"
		default:
			require.Fail(w.t, "an unknown word of a worker", name)
		}
	}
}

// remove takes a drive or worker that has gone from the view.
func (w *world) remove(name string) {
	gone := func(d Worker) bool { return d.Name() == name }
	w.view.Holders = slices.DeleteFunc(w.view.Holders, gone)
	w.view.Workers = slices.DeleteFunc(w.view.Workers, gone)
	for i := range w.view.Holding {
		w.view.Holding[i] = slices.DeleteFunc(slices.Clone(w.view.Holding[i]), func(at fleet.DriveID) bool {
			return gone(Worker{ID: at})
		})
	}
}

// see changes what the view says of the job: running, t, left, orphans, unheld, epoch, after, startable, busy, working.
func (w *world) see(words []string) {
	v := &w.view
	for name, value := range values(words) {
		n := number(w.t, value)
		switch name {
		case "running":
			v.Running = n > 0
		case "t":
			v.T = n
		case "left":
			v.Status.RowsLeft = int64(n)
		case "orphans":
			v.Status.Orphans = int64(n)
		case "unheld":
			v.Status.Unheld = int64(n)
		case "epoch":
			v.EpochRows = n
		case "after":
			v.EpochsAfter = n
		case "startable":
			v.Startable = int(n)
		case "busy":
			v.Busy = n
		case "working":
			v.Status.Running = make([]ledger.DriveID, int(n))
		default:
			require.Fail(w.t, "an unknown word of a view", name)
		}
	}
}

// rank changes what the ledger says of a rank: attached, own.
func (w *world) rank(words []string) {
	r := &w.view.Status.Ranks[int(number(w.t, words[0]))]
	for name, value := range values(words[1:]) {
		switch name {
		case "attached":
			r.Attached = value == "1"
		case "own":
			r.Own = int(number(w.t, value))
		default:
			require.Fail(w.t, "an unknown word of a rank", name)
		}
	}
}

// report passes a Lease call with a report to the job.
func (w *world) report(words []string) {
	r := &apiv1.RankReport{}
	for name, value := range values(words[1:]) {
		switch name {
		case "t":
			r.TRowsPerSecond = number(w.t, value)
		case "stall":
			r.StallSeconds = number(w.t, value)
		case "queue":
			r.QueueBatches = number(w.t, value)
		case "blocked":
			r.Blocked = value == "1"
		case "profiling":
			r.Profiling = value
		case "training":
			r.TrainingSeconds = number(w.t, value)
		case "own", "others": // ROWS/BUSY
			rows, busy, _ := strings.Cut(value, "/")
			side := &apiv1.SideReport{Rows: number(w.t, rows), BusySeconds: number(w.t, busy)}
			if name == "own" {
				r.Own = side
			} else {
				r.Others = side
			}
		case "profile": // GTHP/LTHP/RTHP
			rates := strings.Split(value, "/")
			r.Profile = &apiv1.OffloadMetrics{Gthp: number(w.t, rates[0]), Lthp: number(w.t, rates[1]), Pcycle: 1e-6,
				Rthp: number(w.t, rates[2]), Ocycle: 1e-7}
		default:
			require.Fail(w.t, "an unknown word of a report", name)
		}
	}
	require.NoError(w.t, CheckReport(r))
	w.job.Called(uint32(number(w.t, words[0])), r)
}

// measured ends the measurement of a worker.
func (w *world) measured(name string, p float64) {
	holder := slices.ContainsFunc(w.view.Holders, func(d Worker) bool { return d.Name() == name })
	w.view.P[name] = p
	node, drive, _ := strings.Cut(name, "/")
	if a := w.job.Measured(fleet.DriveID{Node: node, Drive: drive}, holder, w.view); a != nil {
		w.view.Allocation = *a
		fmt.Fprintf(&w.out, "%d wanted, stall %v\n", a.Wanted, a.ExpectedStall)
	}
}

// describe writes a decision down.
func (w *world) describe(d Decision) {
	say := func(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }
	if d.NeedsWorkers {
		say("needs workers")
	}
	if d.T > 0 {
		say("t %g", d.T)
	}
	if d.Err != nil {
		say("error: %v", d.Err)
	}
	if a := d.Allocation; a != nil {
		say("%d drives, %d workers: %s", a.Drives, a.Workers, a.Note)
	}
	for _, s := range d.Shares {
		say("rank %d: share %.3g: %s", s.Rank, s.Ratio, s.Why)
	}
	if d.Measure != nil {
		say("measure %s", (&Worker{ID: *d.Measure}).Name())
	}
}

// TestMeanP: the mean does not depend on the order of a map.
func TestMeanP(t *testing.T) {
	p := map[string]float64{}
	for i := range 100 {
		p[strconv.Itoa(i)] = math.Pow(1.7, float64(i))
	}
	r := Rates{P: p}
	for range 100 {
		again := Rates{P: maps.Clone(p)}
		require.InDelta(t, r.MeanP(), again.MeanP(), 0)
	}
	require.Zero(t, (&Rates{}).MeanP())
}
