package splits

import "github.com/millrace/millrace/sdk/dataset"

// places returns what is closed when a place on a drive may have become free since.
func (s *Table) places() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed
}

// seat names the places of a job on a drive.
type seat struct {
	job   dataset.Digest
	drive string
}

func (k Key) seat() seat { return seat{k.Job, k.Drive} }

// demand is how many runs wait for a place, and how many runs are giving theirs up for it.
type demand struct{ wanted, promised int }

// wantPlace asks runs that have nothing to make, or come to that, to give a place up, until the function that it returns is called.
func (s *Table) wantPlace(k seat) (enough func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.demand[k]
	if d == nil {
		d = &demand{}
		s.demand[k] = d
	}
	d.wanted++
	for _, r := range s.open {
		if r.source && r.key.seat() == k {
			r.wake()
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.wanted--; d.wanted == 0 {
			delete(s.demand, k)
		}
	}
}

// promise tells whether a run that has nothing to make should give its place up. mu is held.
func (s *Table) promise(k seat) bool {
	d := s.demand[k]
	if d == nil || d.promised >= d.wanted {
		return false
	}
	d.promised++
	return true
}
