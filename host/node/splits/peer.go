package splits

import "time"

// Peer is a client's connection, and the splits that it asked for. The zero value is a new connection. Table.mu guards
// it.
type Peer struct {
	splits map[*openSplit]struct{}
	closed bool
}

// ask records that the connection asked for a split. A nil Peer is an unknown connection. Table.mu is held.
func (p *Peer) ask(s *openSplit) {
	if p == nil || p.closed {
		return
	}
	if p.splits == nil {
		p.splits = map[*openSplit]struct{}{}
	}
	p.splits[s] = struct{}{}
	s.peers[p]++
}

// Leave records that a connection is closed.
func (t *Table) Leave(p *Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.closed = true
	for s := range p.splits {
		delete(s.peers, p)
		s.lastRequest = time.Now()
	}
	p.splits = nil
}
