package control

import (
	"fmt"
	"github.com/millrace/millrace/trainmgr/control/record"
	"slices"
	"time"
)

// epochsDone ends a job whose every epoch is delivered, or, if it follows, takes what has appeared.
func (l *leader) epochsDone(j *job) error {
	// The last acknowledgements first: a job that is done has nothing to deliver, whoever leads.
	if err := l.sync(l.ctx, true); err != nil {
		return err
	}
	now := time.Now()
	l.mu.Lock()
	if !j.spec.Follow {
		defer l.mu.Unlock()
		switch {
		case !j.finished: // a rank has gone back meanwhile
		case l.stay(j, now):
			l.set(j, record.Waiting, "every mini-batch is delivered, for the ranks to say that they are through")
		default:
			l.end(j, record.Done, "", now)
		}
		return nil
	}
	g, err := l.appeared(j)
	if g == nil {
		why := "new partitions"
		if err != nil {
			why = err.Error()
		}
		l.set(j, record.Waiting, why)
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	return l.further(j, g)
}

// maxStay is how long a job stays after its last acknowledgement for ranks that said they would say when they are through: a
// trainer that dies before its last checkpoint is written comes back within it.
const maxStay = 10 * time.Minute

// guessStay is the same for ranks that an earlier leader may have been told so by, and that have not called since.
const guessStay = 30 * time.Second

// stay reports whether a rank may still come back to an earlier checkpoint. l.mu is held.
func (l *leader) stay(j *job, now time.Time) bool {
	return slices.ContainsFunc(j.ranks, func(r rank) bool {
		most := maxStay
		if r.guessed {
			most = guessStay
		}
		return r.stays && now.Sub(j.since) < most
	})
}

// reopen goes on with a job whose every mini-batch was delivered when a rank has gone back. l.mu is held.
func (l *leader) reopen(j *job, now time.Time) {
	if !j.finished {
		return
	}
	if st, err := l.ledger.Status(j.ID, now); err == nil && (st.Epoch+1 < j.end() || st.Delivered < st.MiniBatches) {
		j.finished = false
		if j.Phase == record.Waiting {
			l.set(j, record.Running, "")
		}
	}
}

// appeared makes a generation of the partitions that match and were not there before; nil when there are none. l.mu is held.
func (l *leader) appeared(j *job) (*generation, error) {
	exclude := append([]string(nil), j.spec.Exclude...)
	data, err := l.fleet.SelectNew(j.spec.Partitions, exclude, j.taken())
	if err != nil || data == nil {
		return nil, err
	}
	if string(data.Schema) != string(j.latest().data.Schema) {
		return nil, fmt.Errorf("new partitions (%s, ...) have other columns than the job's: exclude them, or submit a job for them", data.Manifest.Partitions[0].Name)
	}
	g, err := newGeneration(j, data, j.Taken, j.end())
	if err == nil {
		err = checkPlan(j, g, l.o.MaxSplits)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// taken reports whether a partition was part of a generation.
func (j *job) taken() func(name string) bool {
	return func(name string) bool {
		if _, ok := j.had[name]; ok {
			return true
		}
		for _, g := range j.generations {
			if g.data.Manifest.Find(name) >= 0 {
				return true
			}
		}
		return false
	}
}

// further stores a further generation and goes on with it.
func (l *leader) further(j *job, g *generation) error {
	ops, err := storeGeneration(j, g)
	if err != nil {
		return err
	}
	if err := l.commitAll(l.ctx, ops); err != nil {
		return err
	}
	l.mu.Lock()
	j.coming = g
	l.mu.Unlock()
	err = l.prepareAll(j, g)
	defer func() {
		l.mu.Lock()
		j.coming = nil
		l.mu.Unlock()
	}()
	if err != nil {
		l.mu.Lock()
		l.set(j, record.Waiting, err.Error())
		l.mu.Unlock()
		return nil
	}
	l.mu.Lock()
	generations, stored := j.with(g)
	l.mu.Unlock()
	// As when a job begins to run: the generation is durable before anything of it can be acknowledged.
	err = l.storeAs(l.ctx, j, func(s *record.State) { s.Phase, s.Why, s.Generations, s.Taken = record.Running, "", stored, g.Number+1 })
	if err != nil {
		return err
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.Phase.Ended() {
		return nil
	}
	for _, o := range j.generations[:len(j.generations)+1-len(generations)] {
		for _, p := range o.data.Manifest.Partitions {
			j.had[p.Name] = struct{}{}
		}
	}
	j.generations, j.Generations, j.Taken, j.finished = generations, stored, g.Number+1, false
	if err := l.begin(j, g.First, now); err != nil {
		return err
	}
	l.set(j, record.Running, "")
	l.logger.Info("a further generation", "job", j.ID, "generation", g.Number, "epoch", g.First, "partitions", len(g.data.Manifest.Partitions), "digest", g.Digest.String()[:12])
	l.ready(now)
	for i := range j.ranks {
		j.ranks[i].notify()
	}
	return nil
}
