package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestExactlyOnce kills drives, trainers and leaders at random, in any order, and then lets the jobs end. Every
// model has seen every number that its rank owns once, and ranks have equal counts.
func TestExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		steps := rapid.IntRange(5, 120).Draw(t, "steps")
		for range steps {
			w.step()
		}
		w.finish()
	})
}

// step applies one random event.
func (w *world) step() {
	t := w.t
	tr := w.trainers[rapid.IntRange(0, len(w.trainers)-1).Draw(t, "trainer")]
	switch kind := rapid.IntRange(0, 23).Draw(t, "kind"); kind {
	case 0: // a drive dies, and is noticed
		d := w.drives[rapid.IntRange(0, len(w.drives)-1).Draw(t, "drive")]
		if !w.dead[d.ID] {
			w.dead[d.ID] = true
			require.NoError(t, w.l.LoseDrive(d.ID, "killed", w.now))
			w.effects()
		}
	case 1, 2: // a drive comes back
		for _, d := range w.drives {
			if w.dead[d.ID] {
				delete(w.dead, d.ID)
				w.put(d)
				w.effects()
				break
			}
		}
	case 3: // the leader dies with some of its records written
		w.flush(rapid.IntRange(0, 4).Draw(t, "written"))
		w.lead()
		for _, tr := range w.trainers {
			if rapid.Bool().Draw(t, "adopts") {
				w.adoptLease(tr)
			}
		}
	case 4: // a trainer dies
		w.kill(tr)
	case 5: // a trainer loses its connection and attaches again with its token
		w.attach(tr, tr.token())
	case 23: // the leader dies while a trainer goes back to its checkpoint
		w.dieWhileAttaching(tr, rapid.IntRange(0, 4).Draw(t, "written"))
	case 6:
		tr.save()
	case 7: // a second passes
		w.pass(time.Second)
	case 8:
		w.pass(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
	case 9:
		w.flush(1 << 20)
	case 10: // a node fails a launcher
		if ids := tr.ids(); len(ids) > 0 {
			delete(tr.leases, ids[0])
			w.call(tr, w.l.Release(tr.job, tr.session, ids[:1], NodeFailed, "cut", w.now))
		}
	case 11: // all of a lease is fetched
		ids := tr.ids()
		if len(ids) == 0 {
			return
		}
		gone, err := w.l.Hold(tr.job, tr.session, Progress{Fetched: ids[:1]}, w.now)
		if le, ok := tr.leases[ids[0]]; ok {
			le.Fetched = true
			tr.leases[ids[0]] = le
		}
		for _, id := range gone {
			delete(tr.leases, id)
		}
		w.call(tr, err)
	case 12:
		tr.blocked = !tr.blocked
		w.beat(tr)
	case 13: // the autoscaler
		require.NoError(t, w.l.Allocate(tr.job, rapid.IntRange(0, 3).Draw(t, "bound"), w.now))
		w.effects()
	case 20: // the autoscaler, of workers without data
		n := rapid.IntRange(AllWorkers, 3).Draw(t, "workers allowed")
		w.helped[tr.job] = w.helped[tr.job] || n != 0
		require.NoError(t, w.l.AllowWorkers(tr.job, n, w.now))
		w.effects()
	case 21: // a policy
		share := rapid.SampledFrom([]float64{-1, 0, 0.3, 0.5, 1}).Draw(t, "share")
		w.helped[tr.job] = true
		require.NoError(t, w.l.ShareSplits(tr.job, tr.rank, share, w.now))
		w.effects()
	case 22: // a worker is drained, or a drive
		d := w.drives[rapid.IntRange(0, len(w.drives)-1).Draw(t, "drained")]
		if !w.dead[d.ID] {
			w.helped[tr.job] = true // no rank gets the partitions of a draining drive
			for _, j := range w.jobs {
				w.helped[j.ID] = true
			}
			require.NoError(t, w.l.DrainDrive(d.ID, rapid.Bool().Draw(t, "drain"), w.now))
			w.effects()
		}
	case 14, 15:
		w.want(tr, rapid.IntRange(0, 4).Draw(t, "pieces"))
	default: // a part of a lease is fetched and delivered
		if ids := tr.ids(); len(ids) > 0 {
			le := tr.leases[ids[rapid.IntRange(0, len(ids)-1).Draw(t, "lease")]]
			from := rapid.Uint64Range(le.From, le.To-1).Draw(t, "from")
			to := rapid.Uint64Range(from+1, le.To).Draw(t, "to")
			w.deliver(tr, le, from, to, rapid.IntRange(0, 4).Draw(t, "lost") == 0)
		}
	}
}

func (tr *trainer) ids() []uint64 {
	var ids []uint64
	for id := range tr.leases {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// adoptLease shows a new leader the trainer's leases.
func (w *world) adoptLease(tr *trainer) {
	var held []Lease
	for _, id := range tr.ids() {
		held = append(held, tr.leases[id])
	}
	gone, err := w.l.Adopt(tr.job, tr.session, held, w.now)
	for _, id := range gone {
		delete(tr.leases, id)
	}
	w.call(tr, err)
}

// pass advances the time; live trainers hold their leases.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.l.Tick(w.now)
	w.effects()
}

// finish lets all machines live and work until everything is delivered: no rank starves.
func (w *world) finish() {
	t := w.t
	for _, d := range w.drives {
		delete(w.dead, d.ID)
		w.put(d)
	}
	w.effects()
	for _, tr := range w.trainers {
		tr.blocked = false
	}
	for round := 0; ; round++ {
		require.Less(t, round, 2000, "it does not end: %+v", w.state())
		left := 0
		for _, tr := range w.trainers {
			w.beat(tr)
			for _, id := range tr.ids() {
				if le, ok := tr.leases[id]; ok {
					w.deliver(tr, le, le.From, le.To, false)
				}
			}
			w.want(tr, 1)
			if !tr.done {
				left++
			}
		}
		if left == 0 {
			break
		}
		w.pass(time.Second)
	}
	for _, tr := range w.trainers {
		for e, b := range w.epochs[tr.job] {
			ep, err := newEpoch(w.l.job(tr.job), b)
			require.NoError(t, err)
			for _, r := range ep.ownedBy(tr.rank) {
				for n := r.From; n < r.To; n++ {
					require.Equal(t, 1, tr.seen[uint64(e)][n], "job %s rank %d epoch %d number %d", tr.job, tr.rank, e,
						n)
				}
			}
			require.Len(t, tr.seen[uint64(e)], int(ep.shares[tr.rank].owned.miniBatches))
			if w.l.job(tr.job).Tail == DropTail {
				require.Equal(t, ep.shares[0].owned.miniBatches, ep.shares[tr.rank].owned.miniBatches,
					"ranks have equal counts")
			}
		}
	}
	// Lost acknowledgements are sent again; then everything is delivered in the ledger and in its store.
	for _, tr := range w.trainers {
		w.acknowledge(tr, tr.owned)
		w.call(tr, w.l.Want(tr.job, tr.session, tr.epoch, 0, w.now))
	}
	w.flush(1 << 20)
	for _, j := range w.jobs {
		st, err := w.l.Status(j.ID, w.now)
		require.NoError(t, err)
		require.Equal(t, st.MiniBatches, st.Delivered)
		require.Equal(t, w.last[j.ID]-1, st.Epoch)
	}
}

func (w *world) state() (all []JobStatus) {
	for _, j := range w.jobs {
		st, _ := w.l.Status(j.ID, w.now)
		all = append(all, st)
	}
	return all
}
