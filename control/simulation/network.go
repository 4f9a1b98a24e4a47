package simulation

import "time"

// send carries a message from one part to another. deliver runs when the message arrives. A fault may lose the message
// or deliver it twice. cut reports whether the link is cut when the message arrives.
func (w *World) send(what string, cut func() bool, deliver func()) {
	ways := 1
	if w.faulty() {
		if w.chance(w.faults.loss) {
			return
		}
		if w.chance(w.faults.doubled) {
			ways = 2
		}
	}
	for range ways {
		w.after(w.way(), what, func() {
			if !cut() {
				deliver()
			}
		})
	}
}

// way draws the transmission time of a message.
func (w *World) way() time.Duration {
	if !w.faulty() {
		return w.between(100*time.Microsecond, time.Millisecond)
	}
	if w.random.IntN(8) > 0 {
		return w.between(100*time.Microsecond, 2*time.Millisecond)
	}
	return w.between(100*time.Microsecond, w.faults.slow)
}

// cutLink cuts one link for some time: that of a member to all other parts, that of a member to the store, or that of
// a node to the members.
func (w *World) cutLink() {
	long := w.between(500*time.Millisecond, 40*time.Second)
	switch w.random.IntN(3) {
	case 0:
		m := w.members[w.random.IntN(len(w.members))]
		m.cut = true
		w.note("%s is cut off for %v", m.name, long)
		w.after(long, "a link is whole", func() { m.cut = false })
	case 1:
		m := w.members[w.random.IntN(len(w.members))]
		m.storeCut = true
		w.note("%s is cut off from the store for %v", m.name, long)
		w.after(long, "a link is whole", func() { m.storeCut = false })
	default:
		n := w.nodes[w.random.IntN(len(w.nodes))]
		n.cut = true
		w.note("%s is cut off from members for %v", n.name, long)
		w.after(long, "a link is whole", func() { n.cut = false })
	}
}
