package splits

import "github.com/millrace/millrace/sdk/dataset"

// streamPool names the streams that a job has on a drive. Their number is bounded, because each holds memory of the
// drive.
type streamPool struct {
	job   dataset.Digest
	drive string
}

func (k Key) streamPool() streamPool { return streamPool{k.Job, k.Drive} }

// streamDemand is how many splits wait for a stream of a pool, and how many splits are closing theirs for them.
type streamDemand struct{ waiting, promised int }

// nextStreamClosed returns a channel that is closed when a stream was closed after this call.
func (t *Table) nextStreamClosed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streamClosed.Changed()
}

// demandStream asks splits that have nothing to make, now or later, to close their stream, until the function that it
// returns is called.
func (t *Table) demandStream(pool streamPool) (satisfied func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.demand[pool]
	if d == nil {
		d = &streamDemand{}
		t.demand[pool] = d
	}
	d.waiting++
	for _, s := range t.open {
		if s.streaming && s.key.streamPool() == pool {
			s.wake()
		}
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if d.waiting--; d.waiting == 0 {
			delete(t.demand, pool)
		}
	}
}

// promiseStream reports whether a split that has nothing to make should close its stream, because another split waits
// for one. mu is held.
func (t *Table) promiseStream(pool streamPool) bool {
	d := t.demand[pool]
	if d == nil || d.promised >= d.waiting {
		return false
	}
	d.promised++
	return true
}
