package remote

// endedLeases remembers the leases that ended last. The leader may grant a lease again until it has heard that the
// lease has ended.
type endedLeases struct {
	ids    map[uint64]struct{}
	ring   [1 << 10]uint64 // far more leases than end before the leader hears of it
	oldest int             // index into ring of the lease to forget next
}

// contains reports whether a lease is among those that ended last.
func (e *endedLeases) contains(lease uint64) bool { _, ok := e.ids[lease]; return ok }

func (e *endedLeases) add(lease uint64) {
	if e.ids == nil {
		e.ids = make(map[uint64]struct{}, len(e.ring))
	}
	delete(e.ids, e.ring[e.oldest])
	e.ids[lease], e.ring[e.oldest] = struct{}{}, lease
	e.oldest = (e.oldest + 1) % len(e.ring)
}
