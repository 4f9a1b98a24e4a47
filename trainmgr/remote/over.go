package remote

// over remembers the last leases that are over: while the leader does not know, it may say them again.
type over struct {
	ids  map[uint64]struct{}
	ring [1 << 10]uint64 // many times what can be over and not yet known to be
	next int
}

func (o *over) has(id uint64) bool { _, ok := o.ids[id]; return ok }

func (o *over) add(id uint64) {
	if o.ids == nil {
		o.ids = make(map[uint64]struct{}, len(o.ring))
	}
	delete(o.ids, o.ring[o.next])
	o.ids[id], o.ring[o.next] = struct{}{}, id
	o.next = (o.next + 1) % len(o.ring)
}
