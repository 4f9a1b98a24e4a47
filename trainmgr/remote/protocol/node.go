package protocol

import (
	"slices"
	"time"
)

const (
	// firstNodePause is the pause after the first failure of a node. It doubles with each failure, maxPauseDoublings
	// times at most.
	firstNodePause    = 50 * time.Millisecond
	maxPauseDoublings = 6
	// maxTries is how often the rank asks for a mini-batch before its node counts as failed.
	maxTries = 3
	// busyPause is the least pause before the rank asks a node again; it grows with each failed attempt.
	busyPause = 20 * time.Millisecond
)

// node is what the rank knows of a storage node.
type node struct {
	addresses   []string  // base URLs; those that failed last are last
	failures    int       // in a row
	pausedUntil time.Time // no piece of this node starts before
}

func (m *Machine) node(name string) *node {
	n, ok := m.nodes[name]
	if !ok {
		n = &node{}
		m.nodes[name] = n
	}
	return n
}

// Reached notes the addresses of a node, those to ask first first.
func (m *Machine) Reached(name string, addresses []string) { m.node(name).addresses = addresses }

// Address returns the address of a node to ask next; "" if it was never reached.
func (m *Machine) Address(name string) string {
	if n := m.node(name); len(n.addresses) > 0 {
		return n.addresses[0]
	}
	return ""
}

// NodePause returns how long a piece of a node waits before it starts: after a failure the next pieces of the node
// start after a pause, since the leader may grant the same lease again at once.
func (m *Machine) NodePause(name string, now time.Time) time.Duration {
	return m.node(name).pausedUntil.Sub(now)
}

// noteResult notes whether a piece of this node succeeded.
func (n *node) noteResult(ok bool, now time.Time) {
	if ok {
		n.failures, n.pausedUntil = 0, time.Time{}
		return
	}
	if now.Before(n.pausedUntil) {
		return // another piece has seen the same failure
	}
	n.failures++
	n.pausedUntil = now.Add(firstNodePause << min(n.failures-1, maxPauseDoublings))
}

// Fetch is one mini-batch that the rank asks a node for.
type Fetch struct {
	Node  string
	Begun time.Time
	tries int // attempts that failed, without those at a busy node
}

// FetchFault says how an attempt to fetch a mini-batch failed.
type FetchFault uint8

// The faults of a fetch.
const (
	FinalFault FetchFault = iota // to ask the node again would not help
	BusyFault                    // the node would answer later
	OtherFault                   // the network's, or the node's
)

// FetchFailed says that an attempt at an address failed, and for how long a busy node asks the rank to wait. It returns
// whether the node is asked again, and after which pause. tries counts the attempts that failed.
func (m *Machine) FetchFailed(f *Fetch, address string, fault FetchFault, after time.Duration,
	now time.Time) (again bool, pause time.Duration, tries int) {
	pause = busyPause * time.Duration(f.tries+1)
	switch fault {
	case FinalFault:
		return false, 0, f.tries
	case BusyFault:
		pause = max(pause, after)
		return now.Sub(f.Begun)+pause <= m.options.Deadline, pause, f.tries
	}
	if f.tries++; f.tries == maxTries {
		return false, 0, f.tries
	}
	n := m.node(f.Node)
	if i := slices.Index(n.addresses, address); i >= 0 {
		n.addresses = append(slices.Delete(n.addresses, i, i+1), address)
	}
	return true, pause, f.tries
}
