package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// paper is one job on drives, with a consumer that delivers the pieces that it is granted.
type paper struct {
	t       *testing.T
	l       *Ledger
	now     time.Time
	plan    *dataset.Plan
	names   []string
	session Session
	out     []Grant
	seen    map[uint64]int
	dropped int // mini-batches that came twice
}

func newPaper(t *testing.T, drives ...Drive) *paper {
	p := &paper{t: t, now: scriptStart, seen: map[uint64]int{}, l: New(Config{Fence: 1})}
	p.plan, p.names = testPlan(t, 0, dataset.Options{Batch: 10, SplitBatches: 4}, "2021-01-01:400", "2021-01-02:400",
		"2021-01-03:200")
	require.NoError(t, p.l.AddJob(Job{ID: "x"}))
	require.NoError(t, p.l.Begin(Epoch{Job: "x", Digest: digestOf("x"), Plan: p.plan, Partitions: p.names}, p.now))
	for _, d := range drives {
		require.NoError(t, p.l.PutDrive(d, p.now))
	}
	a, err := p.l.Attach("x", 0, nil, p.now)
	require.NoError(t, err)
	p.session = a.Session
	return p
}

// want asks for pieces and returns the granted pieces.
func (p *paper) want(n int) []Grant {
	require.NoError(p.t, p.l.Want("x", p.session, 0, n, p.now))
	g := p.l.Ready().Grants
	p.out = append(p.out, g...)
	return g
}

// deliver makes the trainer take numbers of the oldest lease.
func (p *paper) deliver(n uint64) {
	g := p.out[0]
	to := min(g.To, g.From+n)
	for i := g.From; i < to; i++ {
		if p.seen[i] > 0 {
			p.dropped++
			continue
		}
		p.seen[i]++
	}
	require.NoError(p.t, p.l.Acknowledge("x", p.session, 0, []dataset.Range{{From: g.From, To: to}}, p.now))
	if p.out[0].From = to; to == g.To {
		p.out = p.out[1:]
	}
}

// finish takes all remaining mini-batches; again is how many mini-batches may come twice.
func (p *paper) finish(again int) {
	for len(p.want(4)) > 0 || len(p.out) > 0 {
		p.deliver(100)
	}
	assert.Len(p.t, p.seen, int(p.plan.MiniBatches()))
	assert.Equal(p.t, again, p.dropped)
	token, err := p.l.Token("x")
	require.NoError(p.t, err)
	assert.Equal(p.t, p.plan.MiniBatches(), token.Mark)
}

var (
	bigDrive  = Drive{ID: DriveID{"n0", "d0"}, Streams: 2, Partitions: []string{"2021-01-01", "2021-01-02", "2021-01-03"}}
	twinDrive = Drive{ID: DriveID{"n1", "d0"}, Streams: 2, Partitions: []string{"2021-01-01", "2021-01-02", "2021-01-03"}}
)

// TestLedgerDoesItsPartOfDPPIIIB checks the sentences of DPP, section III-B, "DPP Control Plane", that the ledger
// implements. The ledger is a pure machine: workers, clients and failures are this test's calls, and nothing of DPP
// runs.
func TestLedgerDoesItsPartOfDPPIIIB(t *testing.T) {
	// "The DPP Master enables scalable work distribution by breaking down the entire preprocessing workload ... into
	// independent and self-contained work items for the data plane called splits that represent successive rows of the
	// entire dataset."
	t.Run("splits", func(t *testing.T) {
		p := newPaper(t, bigDrive)
		for len(p.want(2)) > 0 || len(p.out) > 0 {
			g := p.out[0]
			s, err := p.plan.Split(g.Split)
			require.NoError(t, err)
			first, err := p.plan.Fragment(g.From)
			require.NoError(t, err)
			last, err := p.plan.Fragment(g.To - 1)
			require.NoError(t, err)
			assert.Equal(t, first.Partition, last.Partition, "self-contained: of one partition")
			assert.Equal(t, first.First+10*int64(g.To-1-g.From), last.First, "successive rows")
			assert.LessOrEqual(t, g.To-g.From, uint64(s.Fragments))
			p.deliver(100)
		}
		p.finish(0)
	})

	// "The Master serves splits to DPP Workers upon request and tracks progress as splits are completed."
	t.Run("on request", func(t *testing.T) {
		p := newPaper(t, bigDrive)
		p.l.Tick(p.now.Add(time.Second))
		assert.Empty(t, p.l.Ready().Grants, "nobody asked")
		assert.Len(t, p.want(1), 1)
		before, err := p.l.Status("x", p.now)
		require.NoError(t, err)
		assert.Zero(t, before.Delivered)
		p.deliver(100)
		after, err := p.l.Status("x", p.now)
		require.NoError(t, err)
		assert.Equal(t, uint64(4), after.Delivered)
		assert.Equal(t, uint64(100), after.MiniBatches)
	})

	// "The DPP Master periodically creates a checkpoint which can be used to restore reader state on failure."
	t.Run("checkpoint", func(t *testing.T) {
		p := newPaper(t, bigDrive)
		p.want(2)
		p.deliver(100)
		p.deliver(1)
		token, err := p.l.Token("x")
		require.NoError(t, err)
		assert.Equal(t, uint64(5), numberset.OfToken(&token).Count(0, 100))

		q := newPaper(t, bigDrive)
		a, err := q.l.Attach("x", 0, &token, q.now)
		require.NoError(t, err)
		q.session, q.seen = a.Session, p.seen
		q.finish(0)
	})

	// "The DPP Master also continuously monitors Worker health, automatically restarting any Workers that have failed
	// without needing a checkpoint restore due to Workers' stateless design."
	t.Run("a worker fails", func(t *testing.T) {
		p := newPaper(t, bigDrive, twinDrive)
		p.want(4)
		p.deliver(1)
		require.NoError(t, p.l.LoseDrive(twinDrive.ID, "no heartbeat", p.now))
		lost := map[uint64]bool{}
		for _, r := range p.l.Ready().Revoked {
			lost[r.Lease] = true
		}
		assert.Len(t, lost, 2)
		var left []Grant
		for _, g := range p.out {
			if !lost[g.ID] {
				left = append(left, g)
			}
		}
		p.out = left
		p.finish(0)
	})

	// "The DPP Master itself is replicated to avoid being a single point of failure."
	t.Run("the master fails", func(t *testing.T) {
		p := newPaper(t, bigDrive)
		p.want(2)
		p.deliver(100)
		p.deliver(2)
		records := p.l.Flush(100)

		p.l = New(Config{Fence: 2, GrantAfter: p.now.Add(2 * time.Second)})
		require.NoError(t, p.l.AddJob(Job{ID: "x"}))
		require.NoError(t, p.l.Restore(records[0]))
		require.Equal(t, []uint64{0}, p.l.Live("x"))
		require.NoError(t, p.l.Begin(Epoch{Job: "x", Digest: digestOf("x"), Plan: p.plan, Partitions: p.names}, p.now))
		for _, r := range records[1:] {
			require.NoError(t, p.l.Restore(r))
		}
		require.NoError(t, p.l.EndRestore("x"))
		require.NoError(t, p.l.PutDrive(bigDrive, p.now))
		gone, err := p.l.Adopt("x", p.session, []Lease{p.out[0].Lease}, p.now)
		require.NoError(t, err)
		assert.Empty(t, gone)
		p.now = p.now.Add(2 * time.Second)
		p.l.Tick(p.now)
		p.finish(0) // what is acknowledged inside an unfinished split does not come again
	})

	// "calculating the number of DPP Workers to either drain or launch": the ledger obeys the autoscaler.
	t.Run("scaling", func(t *testing.T) {
		var drives []Drive
		for i := range 4 {
			drives = append(drives, Drive{ID: DriveID{fmt.Sprint("n", i), "d"}, Streams: 1,
				Partitions: bigDrive.Partitions})
		}
		p := newPaper(t, drives...)
		running := func() int {
			st, err := p.l.Status("x", p.now)
			require.NoError(t, err)
			return len(st.Running)
		}
		require.NoError(t, p.l.Allocate("x", 1, p.now))
		p.want(9)
		assert.Equal(t, 1, running())
		require.NoError(t, p.l.Allocate("x", 3, p.now))
		p.out = append(p.out, p.l.Ready().Grants...)
		assert.Equal(t, 3, running())
		require.NoError(t, p.l.Allocate("x", 2, p.now))
		for range 3 {
			p.deliver(100)
			p.out = append(p.out, p.l.Ready().Grants...)
		}
		assert.Equal(t, 2, running(), "what the drained drive had, it ended")
		p.finish(0)
	})
}

// TestLedgerDoesItsPartOfPreStoIVB checks the two steps of PreSto (IV-B) that the ledger implements: the number of
// drives that run at once, and that a drive that holds a partition reads it. The test has no T, P or mini-batches:
// the allocation is given.
func TestLedgerDoesItsPartOfPreStoIVB(t *testing.T) {
	// "By dividing the maximum training throughput with the per-SmartSSD preprocessing throughput (T/P), the preprocess
	// manager derives the number of SmartSSD devices that need to be allocated": this number of drives runs at once,
	// and yet every partition is read by a drive that holds it, for "PreSto ... preprocesses [a partition] where it is
	// stored".
	p := newPaper(t,
		Drive{ID: DriveID{"n0", "d0"}, Streams: 1, Partitions: []string{"2021-01-01"}}, Drive{ID: DriveID{"n0", "d1"},
			Streams: 1, Partitions: []string{"2021-01-02"}}, Drive{ID: DriveID{"n1", "d0"}, Streams: 1,
			Partitions: []string{"2021-01-03"}})
	require.NoError(t, p.l.Allocate("x", 2, p.now))
	holder := map[int]DriveID{0: {"n0", "d0"}, 1: {"n0", "d1"}, 2: {"n1", "d0"}}
	used := map[DriveID]bool{}
	for len(p.want(3)) > 0 || len(p.out) > 0 {
		g := p.out[0]
		s, err := p.plan.Split(g.Split)
		require.NoError(t, err)
		assert.Equal(t, holder[s.Partition], g.Drive)
		used[g.Drive] = true
		st, err := p.l.Status("x", p.now)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(st.Running), 2)
		p.deliver(100)
	}
	assert.Len(t, used, 3)
	p.finish(0)
}
