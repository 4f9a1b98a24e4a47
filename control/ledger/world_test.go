package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// world is a ledger with the machines that may die: drives, trainers, and the leader itself, whose store outlives
// it.
type world struct {
	t        *rapid.T
	l        *Ledger
	now      time.Time
	fence    uint64
	store    map[string][]byte
	jobs     []Job
	epochs   map[string][]Epoch
	last     map[string]uint64 // epochs of each job
	drives   []Drive
	dead     map[DriveID]bool
	trainers []*trainer
	helped   map[string]bool // jobs that have been allowed workers of reach Any beside their holders
	durable  []dataset.Token // by trainer: what is acknowledged, as of the last moment at which every record was written
}

// trainer is one rank's process: when it is killed, the model rolls back to the checkpoint.
type trainer struct {
	job        string
	rank       uint32
	session    Session
	epoch      uint64
	owned      numberset.Runs
	has        numberset.Runs // mini-batches of the epoch, as in the token
	fetched    numberset.Runs // fragments of the epoch, of mini-batches that it has, or that lack others
	leases     map[uint64]Lease
	seen       map[uint64]map[uint64]int // by epoch and number: how often the model saw the mini-batch
	checkpoint struct {
		epoch uint64
		has   numberset.Runs
		seen  map[uint64]map[uint64]int
	}
	blocked bool
	done    bool
}

func copySeen(m map[uint64]map[uint64]int) map[uint64]map[uint64]int {
	out := make(map[uint64]map[uint64]int, len(m))
	for e, n := range m {
		out[e] = make(map[uint64]int, len(n))
		for k, v := range n {
			out[e][k] = v
		}
	}
	return out
}

// newWorld draws a cluster and its jobs.
func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, now: scriptStart, fence: 1, store: map[string][]byte{}, epochs: map[string][]Epoch{},
		last: map[string]uint64{}, dead: map[DriveID]bool{}, helped: map[string]bool{},
	}
	parts := rapid.IntRange(1, 4).Draw(t, "partitions")
	var data []string
	for p := range parts {
		data = append(data, fmt.Sprintf("p%d:%d", p, rapid.IntRange(0, 200).Draw(t, "rows")))
	}
	n := rapid.IntRange(1, 4).Draw(t, "drives")
	for d := range n {
		w.drives = append(w.drives, Drive{ID: DriveID{fmt.Sprintf("n%d", d/2), fmt.Sprintf("d%d", d)},
			Streams: rapid.IntRange(1, 2).Draw(t, "streams")})
	}
	for p := range parts {
		for range rapid.IntRange(1, 2).Draw(t, "replicas") {
			d := rapid.IntRange(0, n-1).Draw(t, "holder")
			if name := fmt.Sprintf("p%d", p); !slices.Contains(w.drives[d].Partitions, name) {
				w.drives[d].Partitions = append(w.drives[d].Partitions, name)
			}
		}
	}
	workers := rapid.IntRange(0, 3).Draw(t, "workers")
	for i := range workers {
		d := Drive{ID: DriveID{fmt.Sprintf("w%d", i), "w"}, Reach: Any, Streams: rapid.IntRange(1, 2).Draw(t, "streams")}
		if i > 0 && rapid.Bool().Draw(t, "of one rank") { // the first worker serves every rank, so that no rank can starve
			d.Serves = &RankRef{"j0", 0}
		}
		w.drives = append(w.drives, d)
	}
	// A store, or files of the first worker's machine, have a partition that no drive holds, or that drives hold too.
	place := "nowhere"
	if workers > 0 {
		place = rapid.SampledFrom([]string{"nowhere", "a store", "files"}).Draw(t, "elsewhere")
	}
	if place != "nowhere" {
		p := rapid.IntRange(0, parts-1).Draw(t, "partition elsewhere")
		if has := []string{fmt.Sprintf("p%d", p)}; place == "files" {
			w.drives[n].Partitions = has
		} else {
			w.drives = append(w.drives, Drive{ID: DriveID{"w0", ""}, Reach: Source, Partitions: has})
		}
		for d := range n {
			if rapid.Bool().Draw(t, "only there") {
				w.drives[d].Partitions = slices.DeleteFunc(w.drives[d].Partitions, func(s string) bool {
					return s == fmt.Sprintf("p%d", p)
				})
			}
		}
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "jobs") {
		j := Job{
			ID: fmt.Sprintf("j%d", i), Ranks: rapid.IntRange(1, 3).Draw(t, "ranks"),
			Tail: Tail(rapid.IntRange(0, 1).Draw(t, "tail")), Order: dataset.Order(rapid.IntRange(0, 1).Draw(t,
				"order")),
			Weight: float64(rapid.IntRange(1, 3).Draw(t, "weight")), Drives: rapid.IntRange(0, 2).Draw(t, "bound"),
		}
		if workers > 0 {
			j.Makers = rapid.SampledFrom([]Makers{0, 0, NoDrives | NoCPUs | NoCards, NoOwn}).Draw(t, "makers")
		}
		w.jobs = append(w.jobs, j)
		w.last[j.ID] = uint64(rapid.IntRange(1, 2).Draw(t, "epochs"))
		o := dataset.Options{Batch: 10, SplitBatches: rapid.IntRange(1, 5).Draw(t, "split"), Seed: 7,
			Boundary: dataset.Boundary(rapid.IntRange(0, 1).Draw(t, "boundary"))}
		for e := range w.last[j.ID] {
			plan, names := rapidPlan(t, e, o, data...)
			b := Epoch{Job: j.ID, Number: e, Digest: digestOf(j.ID), Plan: plan, Partitions: names}
			if total := plan.MiniBatches(); e == 0 && total > 0 && rapid.Bool().Draw(t, "resumed") {
				b.Resume = drawToken(t, j.ID, total)
			}
			w.epochs[j.ID] = append(w.epochs[j.ID], b)
		}
		for r := range j.Ranks {
			w.trainers = append(w.trainers, &trainer{job: j.ID, rank: uint32(r), leases: map[uint64]Lease{},
				seen: map[uint64]map[uint64]int{}})
		}
	}
	w.lead()
	for _, tr := range w.trainers {
		w.attach(tr, nil)
		tr.save()
	}
	return w
}

func rapidPlan(t *rapid.T, epoch uint64, o dataset.Options, partitions ...string) (*dataset.Plan, []string) {
	var parts []dataset.Partition
	var names []string
	for _, p := range partitions {
		var n int64
		_, err := fmt.Sscanf(p[3:], "%d", &n)
		require.NoError(t, err)
		parts = append(parts, dataset.Partition{Name: p[:2], Bytes: n + 1, Rows: n, RowGroups: []int64{n}})
		names = append(names, p[:2])
	}
	m, err := dataset.NewManifest(parts)
	require.NoError(t, err)
	o.Epoch = epoch
	plan, err := dataset.NewPlan(m, o)
	require.NoError(t, err)
	return plan, names
}

func drawToken(t *rapid.T, job string, total uint64) *dataset.Token {
	p := dataset.NewProgress(digestOf(job), 0, total)
	for range rapid.IntRange(0, 8).Draw(t, "runs") {
		from := rapid.Uint64Range(0, total-1).Draw(t, "from")
		to := min(total, from+rapid.Uint64Range(1, 6).Draw(t, "length"))
		for n := from; n < to; n++ {
			require.NoError(t, p.Ack(n))
		}
	}
	token := p.Token()
	return &token
}

// lead starts a leader over the store.
func (w *world) lead() {
	w.fence++
	w.l = New(Config{Fence: w.fence, GrantAfter: w.now.Add(2 * time.Second)})
	for _, j := range w.jobs {
		require.NoError(w.t, w.l.AddJob(j))
		if ranks, ok := w.store[j.ID+"/ranks"]; ok {
			require.NoError(w.t, w.l.Restore(format.Record{Job: j.ID, Kind: format.RanksRecord, Data: ranks}))
		}
		live := w.l.Live(j.ID)
		if len(live) == 0 {
			live = []uint64{0}
		}
		for _, e := range live {
			require.NoError(w.t, w.l.Begin(w.epochs[j.ID][e], w.now))
		}
		for key, data := range w.store {
			if job, _, _ := bytes.Cut([]byte(key), []byte("/")); string(job) == j.ID && key != j.ID+"/ranks" {
				r, err := format.RecordOf(j.ID, key[len(j.ID)+1:], data)
				require.NoError(w.t, err)
				require.NoError(w.t, w.l.Restore(r))
			}
		}
		require.NoError(w.t, w.l.EndRestore(j.ID))
	}
	require.NoError(w.t, w.l.verify())
	for i, was := range w.durable {
		tr := w.trainers[i]
		now, err := w.l.RankToken(tr.job, tr.rank)
		require.NoError(w.t, err)
		require.GreaterOrEqual(w.t, now.Epoch, was.Epoch)
		if has := numberset.OfToken(&now); now.Epoch == was.Epoch {
			for _, r := range was.Acknowledged() {
				require.True(w.t, has.Covers(r.From, r.To), "rank %d acknowledged [%d, %d), and the new leader has %s", tr.rank,
					r.From, r.To, showRuns(has))
			}
		}
	}
	for _, d := range w.drives {
		if !w.dead[d.ID] {
			w.put(d)
		}
	}
	w.effects()
}

// put adds a drive; a worker of reach Any is then prepared for every job.
func (w *world) put(d Drive) {
	require.NoError(w.t, w.l.PutDrive(d, w.now))
	if d.Reach != Any {
		return
	}
	for _, j := range w.jobs {
		if d.Serves == nil || d.Serves.Job == j.ID {
			require.NoError(w.t, w.l.Enlist(j.ID, d.ID, true, w.now))
		}
	}
}

// flush writes at most limit records: a leader that dies does not write the rest.
func (w *world) flush(limit int) {
	for limit > 0 {
		records := w.l.Flush(min(limit, 2))
		if len(records) == 0 {
			w.noteDurable()
			return
		}
		for _, r := range records {
			if key := r.Job + "/" + r.Key(); r.Data == nil {
				delete(w.store, key)
			} else {
				w.store[key] = bytes.Clone(r.Data)
			}
		}
		limit -= len(records)
	}
}

// noteDurable notes what the trainers have acknowledged, when every record is written.
func (w *world) noteDurable() {
	w.durable = nil
	for _, tr := range w.trainers {
		token, err := w.l.RankToken(tr.job, tr.rank)
		require.NoError(w.t, err)
		w.durable = append(w.durable, token)
	}
}

func (w *world) trainer(job string, rank uint32) *trainer {
	for _, tr := range w.trainers {
		if tr.job == job && tr.rank == rank {
			return tr
		}
	}
	return nil
}

// effects carries out the ledger's effects.
func (w *world) effects() {
	e := w.l.Ready()
	for _, g := range e.Grants {
		tr := w.trainer(g.Job, g.Rank)
		require.Equal(w.t, tr.epoch, g.Epoch, "granted of the epoch it asked for")
		require.False(w.t, w.dead[g.Drive], "granted on a dead drive")
		require.Less(w.t, g.From, g.To)
		d := w.drives[slices.IndexFunc(w.drives, func(d Drive) bool { return d.ID == g.Drive })]
		b := w.epochs[g.Job][g.Epoch]
		s, err := b.Plan.Split(g.Split)
		require.NoError(w.t, err)
		name := b.Partitions[s.Partition]
		if d.Reach == Any {
			w.checkWorkerGrant(g, name, d)
		} else {
			require.Contains(w.t, d.Partitions, name, "granted on a drive that does not hold it")
			require.Equal(w.t, Held, d.Reach, "granted on what can only be read")
			require.Zero(w.t, w.l.job(g.Job).Makers&NoDrives, "the job excludes drives")
		}
		require.LessOrEqual(w.t, s.FirstFragment, g.From)
		require.LessOrEqual(w.t, g.To, s.FirstFragment+uint64(s.Fragments), "a piece is at most a split")
		owned := w.l.job(g.Job).epoch(g.Epoch).fragmentsOf(tr.owned)
		require.True(w.t, owned.Covers(g.From, g.To), "granted what is not owned")
		f, err := b.Plan.Fragment(g.From)
		require.NoError(w.t, err)
		require.Equal(w.t, f.MiniBatch, g.MiniBatch)
		tr.leases[g.ID] = g.Lease
	}
	for _, r := range e.Revoked {
		delete(w.trainer(r.Job, r.Rank).leases, r.Lease)
	}
	require.Empty(w.t, e.Failed)
	for _, n := range e.Needed {
		if n.Number < w.last[n.Job] {
			require.NoError(w.t, w.l.Begin(w.epochs[n.Job][n.Number], w.now))
			w.effects()
		}
	}
	require.NoError(w.t, w.l.verify())
}

// checkWorkerGrant checks a grant on a worker of reach Any of a split of the named partition.
func (w *world) checkWorkerGrant(g Grant, name string, worker Drive) {
	j := w.l.job(g.Job)
	readable, held := false, false
	for _, d := range w.drives {
		if !w.dead[d.ID] && slices.Contains(d.Partitions, name) && (d.Reach != Any || d.ID == worker.ID) {
			readable = true
			held = held || d.Reach == Held
		}
	}
	require.True(w.t, readable, "granted on a worker that can read it nowhere")
	if serves := worker.Serves; serves == nil {
		require.Zero(w.t, j.Makers&NoAny, "the job excludes workers without data")
	} else {
		require.Zero(w.t, j.Makers&NoOwn, "the job excludes workers of one rank")
		require.Equal(w.t, RankRef{g.Job, g.Rank}, *serves, "granted on the worker of another rank")
	}
	if w.helped[g.Job] || j.Makers&NoDrives != 0 {
		return
	}
	require.False(w.t, held, "granted on a worker without data although a holder lives and sustains the trainer")
}

// attach makes the trainer the rank's consumer. A trainer that has attached before brings its token.
func (w *world) attach(tr *trainer, token *dataset.Token) {
	a, err := w.l.Attach(tr.job, tr.rank, token, w.now)
	if errors.Is(err, ErrUnknown) && token != nil {
		w.effects()
		a, err = w.l.Attach(tr.job, tr.rank, token, w.now)
	}
	require.NoError(w.t, err)
	tr.leases = map[uint64]Lease{}
	tr.session, tr.epoch, tr.done = a.Session, a.Epoch, false
	tr.owned, tr.has, tr.fetched = numberset.Runs(a.Owned), numberset.OfToken(&a.Token), nil
	w.effects()
	w.flush(1 << 20) // an Attach is answered when it is durable
}

func (tr *trainer) token() *dataset.Token {
	t := tr.has.Token(digestOf(tr.job), tr.epoch)
	return &t
}

// save takes a checkpoint.
func (tr *trainer) save() {
	tr.checkpoint.epoch, tr.checkpoint.has, tr.checkpoint.seen = tr.epoch, slices.Clone(tr.has), copySeen(tr.seen)
}

// kill rolls the trainer back to its checkpoint.
func (w *world) kill(tr *trainer) {
	tr.epoch, tr.has, tr.seen = tr.checkpoint.epoch, slices.Clone(tr.checkpoint.has), copySeen(tr.checkpoint.seen)
	tr.blocked = false
	w.attach(tr, tr.token())
	require.Equal(w.t, tr.checkpoint.epoch, tr.epoch)
	require.Equal(w.t, showRuns(tr.checkpoint.has), showRuns(tr.has), "the token is the truth")
}

// dieWhileAttaching lets a trainer return to its checkpoint. The leader dies when it has written some of the records
// and before it answers, so that the trainer attaches again.
func (w *world) dieWhileAttaching(tr *trainer, written int) {
	token := tr.checkpoint.has.Token(digestOf(tr.job), tr.checkpoint.epoch)
	if _, err := w.l.Attach(tr.job, tr.rank, &token, w.now); err == nil {
		w.flush(written)
	}
	w.effects()
	for i, o := range w.trainers {
		if o == tr {
			w.durable[i] = dataset.Token{}
		}
	}
	w.lead()
	w.kill(tr)
}

// call handles the error of a trainer's call: if the session is gone, the trainer attaches again with its token.
func (w *world) call(tr *trainer, err error) {
	if errors.Is(err, ErrSession) {
		w.attach(tr, tr.token())
		return
	}
	require.NoError(w.t, err)
	w.effects()
}

func (w *world) want(tr *trainer, n int) {
	e := tr.epoch
	if len(tr.owned) == 0 || tr.complete() {
		if e+1 == w.last[tr.job] {
			tr.done = true
			return
		}
		// The launcher acknowledges everything before it goes on.
		w.acknowledge(tr, tr.owned)
		if !tr.complete() || tr.epoch != e { // the trainer has attached again meanwhile
			return
		}
		st, err := w.l.Rank(tr.job, tr.rank, w.now)
		require.NoError(w.t, err)
		if st.Delivered < st.Owned {
			return
		}
		w.flush(1 << 20) // an Acknowledge is answered when it is durable
		tr.epoch++
		b := w.epochs[tr.job][tr.epoch]
		err = w.l.Want(tr.job, tr.session, tr.epoch, 0, w.now)
		require.NoError(w.t, err)
		require.NoError(w.t, w.l.Begin(b, w.now))
		tr.has, tr.fetched, tr.leases = nil, nil, map[uint64]Lease{}
		tr.owned = w.l.job(tr.job).epoch(tr.epoch).ownedBy(tr.rank)
	}
	w.call(tr, w.l.Want(tr.job, tr.session, tr.epoch, n, w.now))
}

func (e *epoch) ownedBy(rank uint32) numberset.Runs {
	own := e.shares[rank].miniBatches
	return e.resumed.Gaps(own.From, own.To)
}

func (tr *trainer) complete() bool {
	for _, r := range tr.owned {
		if !tr.has.Covers(r.From, r.To) {
			return false
		}
	}
	return true
}

// touched returns the mini-batches that have some of the fragments [from, to) of a trainer's epoch.
func (w *world) touched(tr *trainer, from, to uint64) dataset.Range {
	plan := w.epochs[tr.job][tr.epoch].Plan
	first, err := plan.Fragment(from)
	require.NoError(w.t, err)
	last, err := plan.Fragment(to - 1)
	require.NoError(w.t, err)
	return dataset.Range{From: first.MiniBatch, To: last.MiniBatch + 1}
}

// deliver fetches fragments of a lease, gives the model the mini-batches that are whole then and that it does not have
// yet, and acknowledges them unless the acknowledgement is lost.
func (w *world) deliver(tr *trainer, le Lease, from, to uint64, lost bool) {
	if tr.seen[tr.epoch] == nil {
		tr.seen[tr.epoch] = map[uint64]int{}
	}
	tr.fetched = slices.Clone(tr.fetched).Union(from, to)
	touched := w.touched(tr, from, to)
	var acknowledged numberset.Runs
	for n := touched.From; n < touched.To; n++ {
		mb, err := w.epochs[tr.job][tr.epoch].Plan.MiniBatch(n)
		require.NoError(w.t, err)
		if !tr.has.Covers(n, n+1) && !tr.fetched.Covers(mb.FirstFragment, mb.FirstFragment+uint64(mb.Fragments)) {
			continue
		}
		if !tr.has.Covers(n, n+1) {
			tr.seen[tr.epoch][n]++
			tr.has = slices.Clone(tr.has).Union(n, n+1)
		}
		acknowledged = acknowledged.Append(n, n+1)
	}
	if all := w.touched(tr, le.From, le.To); tr.has.Covers(all.From, all.To) {
		delete(tr.leases, le.ID)
	}
	if !lost && len(acknowledged) > 0 {
		w.acknowledge(tr, acknowledged)
	}
}

func (w *world) acknowledge(tr *trainer, runs numberset.Runs) {
	var have []dataset.Range
	for _, r := range runs {
		have = append(have, tr.has.Within(r.From, r.To)...)
	}
	if len(have) == 0 {
		return
	}
	err := w.l.Acknowledge(tr.job, tr.session, tr.epoch, have, w.now)
	if errors.Is(err, ErrUnknown) { // a new leader does not know yet that the rank is in the next epoch
		w.effects()
		err = w.l.Acknowledge(tr.job, tr.session, tr.epoch, have, w.now)
	}
	w.call(tr, err)
}

// beat does a launcher's work of every second: it extends leases, reports, and acknowledges again the granted
// mini-batches that the trainer has.
func (w *world) beat(tr *trainer) {
	held, p := tr.ids(), Progress{Blocked: tr.blocked}
	for _, id := range held {
		if le := tr.leases[id]; tr.fetched.Covers(le.From, le.To) {
			le.Fetched = true
			tr.leases[id] = le
		}
		if tr.leases[id].Fetched {
			p.Fetched = append(p.Fetched, id)
		} else {
			p.Held = append(p.Held, id)
		}
	}
	gone, err := w.l.Hold(tr.job, tr.session, p, w.now)
	session := tr.session
	w.call(tr, err)
	if session != tr.session {
		return
	}
	for _, id := range gone {
		delete(tr.leases, id)
	}
	for _, id := range held {
		if le, ok := tr.leases[id]; ok {
			touched := w.touched(tr, le.From, le.To)
			if has := tr.has.Within(touched.From, touched.To); len(has) > 0 {
				w.acknowledge(tr, has)
			}
		}
	}
}
