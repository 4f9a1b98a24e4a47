package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// Errors on which a caller decides.
var (
	ErrRefused = errors.New("node refused")
	ErrUnknown = errors.New("no such node")
)

// Options configure a Fleet. The zero value works.
type Options struct {
	Beat      time.Duration // between two beats; 0 means DefaultBeat
	DeadAfter time.Duration // without a beat; 0 means DefaultDeadAfter
	Forget    time.Duration // how long a dead or refused node is listed; 0 means DefaultForget
}

// Defaults and bounds.
const (
	DefaultBeat      = time.Second
	DefaultDeadAfter = 5 * time.Second
	DefaultForget    = 24 * time.Hour

	MaxNodes      = 10_000
	MaxDrives     = 256     // of a node
	MaxPartitions = 1 << 18 // of a node
	MaxName       = 128     // bytes of a node's or a drive's name
	maxURLs       = 16
	maxURL        = 1 << 10
	maxRetired    = 16 // incarnations remembered
	// MaxOwned is how many workers of one owner's launchers are known at once, live or dead.
	MaxOwned = 1024
	// forgetOwned is how long a dead worker of a launcher is listed: each start of a training script makes another.
	forgetOwned = 2 * time.Minute
)

// Fleet holds the storage nodes of a cluster.
type Fleet struct {
	o      Options
	nodes  map[string]*node
	claims map[string]string // drive UUID to the node that has it
	// version grows with every change of the partitions that drives of live nodes hold.
	version uint64
}

// Version grows whenever a drive holds other partitions than before.
func (f *Fleet) Version() uint64 { return f.version }

// New returns a fleet without nodes.
func New(o Options) *Fleet {
	if o.Beat == 0 {
		o.Beat = DefaultBeat
	}
	if o.DeadAfter == 0 {
		o.DeadAfter = DefaultDeadAfter
	}
	if o.Forget == 0 {
		o.Forget = DefaultForget
	}
	return &Fleet{o: o, nodes: map[string]*node{}, claims: map[string]string{}}
}

// Options returns the options with their defaults.
func (f *Fleet) Options() Options { return f.o }

type node struct {
	status    *apiv1.NodeStatus // the last one, with the partitions and schemas that are known
	partition map[string]*apiv1.Partition
	seen      time.Time
	skew      float64 // seconds by which the node's clock is ahead
	alive     bool
	refused   string
	drain     bool   // an operator wants it drained
	asked     bool   // the node was asked for its inventory
	restored  bool   // read from the store: the node has not beaten in this term
	inventory []byte // digest of the inventory that status holds
	whole     bool   // status holds an inventory
	retired   []string

	*sourceIndex // It is that of status; nil: it was not made yet.
}

// Kind is the kind of an Event.
type Kind uint8

// The kinds of events.
const (
	Joined    Kind = iota + 1 // a node that was unknown, or counted as dead, beats
	Restarted                 // a new incarnation: no job is prepared there
	Inventory                 // the node holds other partitions or drives than before
	Died                      // the node was silent for too long, or was replaced
	Refused                   // a beat was refused, for the first time
	Changed                   // a part that is stored: URLs, drives
	Forgotten                 // the node has been gone for long, and is not listed any more
)

// Event is something that happened to a node.
type Event struct {
	Kind Kind
	Node string
	Why  string // Why is the reason for Refused.
}

// Answer is the fleet's answer to a heartbeat.
type Answer struct {
	WantInventory bool
}

// Tick finds the nodes that were silent for too long, and forgets the nodes that have been gone for long.
func (f *Fleet) Tick(now time.Time) []Event {
	var events []Event
	for name, n := range f.nodes {
		silent := now.Sub(n.seen)
		switch {
		case n.alive && silent > f.o.DeadAfter:
			n.alive = false
			n.retired = nil
			f.version++
			for uuid, holder := range f.claims {
				if holder == name {
					delete(f.claims, uuid)
				}
			}
			events = append(events, Event{Kind: Died, Node: name})
		case !n.alive && silent > f.keeps(n) && !n.drain:
			delete(f.nodes, name)
			events = append(events, Event{Kind: Forgotten, Node: name})
		}
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Node, b.Node) })
	return events
}

// Drain records that an operator drained a node, or undid that.
func (f *Fleet) Drain(name string, drain bool) error {
	n := f.nodes[name]
	if n == nil {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	n.drain = drain
	return nil
}

// Draining reports whether no new lease is granted on a node's drives.
func (f *Fleet) Draining(name string) bool {
	n := f.nodes[name]
	return n != nil && (n.drain || n.status.Draining)
}

// Asked reports whether an operator drained a node. The node itself may not drain yet.
func (f *Fleet) Asked(name string) bool { n := f.nodes[name]; return n != nil && n.drain }

// Alive reports whether the node's heartbeats arrive.
func (f *Fleet) Alive(name string) bool { n := f.nodes[name]; return n != nil && n.alive }

// Status returns the last status of a node; nil: the node is not known. Do not change the result.
func (f *Fleet) Status(name string) *apiv1.NodeStatus {
	if n := f.nodes[name]; n != nil {
		return n.status
	}
	return nil
}

// Drive returns the last report of a drive; nil: its node does not list the drive. Do not change the result.
func (f *Fleet) Drive(at DriveID) *apiv1.Drive {
	for _, d := range f.Status(at.Node).GetDrives() {
		if d.Name == at.Drive {
			return d
		}
	}
	return nil
}

// Live calls fn for every node that beats, by name.
func (f *Fleet) Live(fn func(s *apiv1.NodeStatus)) {
	for _, name := range f.names() {
		if n := f.nodes[name]; n.alive {
			fn(n.status)
		}
	}
}

func (f *Fleet) names() []string {
	names := make([]string, 0, len(f.nodes))
	for name := range f.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Records lists all nodes by name, without their partitions unless they are asked for.
func (f *Fleet) Records(now time.Time, partitions bool) []*apiv1.NodeRecord {
	list := make([]*apiv1.NodeRecord, 0, len(f.nodes))
	for _, name := range f.names() {
		n := f.nodes[name]
		r := &apiv1.NodeRecord{State: f.state(now, n), LastSeenSeconds: now.Sub(n.seen).Seconds(),
			ClockSkewSeconds: n.skew}
		if partitions {
			r.Status = proto.CloneOf(n.status)
		} else {
			r.Status = shallow(n.status)
		}
		list = append(list, r)
	}
	return list
}

// States returns the state of every node, without the reason of a refusal.
func (f *Fleet) States(now time.Time) []string {
	list := make([]string, 0, len(f.nodes))
	for _, n := range f.nodes {
		word, _, _ := strings.Cut(f.state(now, n), ":")
		list = append(list, word)
	}
	return list
}

func (f *Fleet) state(now time.Time, n *node) string {
	switch {
	case n.refused != "":
		return "refused: " + n.refused
	case n.restored:
		return "dead" // or it has not called this leader yet
	case !n.alive:
		return "dead"
	case now.Sub(n.seen) > 2*f.o.Beat+f.o.Beat/2:
		return "silent"
	case n.drain || n.status.Draining:
		return "draining"
	}
	return "ready"
}

// Stored is the value of a node's key: the record, and whether an operator drained the node.
func (f *Fleet) Stored(name string) ([]byte, bool) {
	n := f.nodes[name]
	if n == nil {
		return nil, false
	}
	r := record(n.status)
	r.Draining = n.drain
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	return b, err == nil
}

// Restore takes a result of Stored in a later term. The node counts as dead until it beats.
func (f *Fleet) Restore(now time.Time, b []byte) error {
	s := &apiv1.NodeStatus{}
	if err := proto.Unmarshal(b, s); err != nil {
		return fmt.Errorf("node record: %w", err)
	}
	if s.Name == "" {
		return errors.New("node record: it names no node")
	}
	n := &node{status: s, seen: now, restored: true, drain: s.Draining}
	s.Draining = false
	f.nodes[s.Name] = n
	return nil
}
