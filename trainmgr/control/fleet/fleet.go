package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// What can go wrong, for errors.Is.
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
)

// Fleet is the nodes of a cluster.
type Fleet struct {
	o      Options
	nodes  map[string]*node
	claims map[string]string // drive UUID to the node that has it
	// version grows with every change of which live node's drives hold what.
	version uint64
}

// Version grows whenever who holds what changes.
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
	status    *apiv1.NodeStatus // the last; partitions and schemas are kept in it
	partition map[string]*apiv1.Partition
	seen      time.Time
	skew      float64 // seconds that its clock is ahead
	alive     bool
	refused   string
	drain     bool   // an operator asked for it
	asked     bool   // for the inventory
	restored  bool   // from the store: has not been heard of in this term
	inventory []byte // whose partitions status holds
	whole     bool   // status holds partitions at all
	retired   []string
}

// Kind is what happened to a node.
type Kind uint8

// The kinds of events.
const (
	Joined    Kind = iota + 1 // a node not known, or taken for dead, beats
	Restarted                 // a new incarnation: nothing is prepared there, nothing runs
	Inventory                 // it holds other partitions or drives than before
	Died                      // silent for too long, or replaced
	Refused                   // the beat was refused, for the first time
	Changed                   // something that is stored: URLs, drives
	Forgotten                 // it has been gone for long: it is not listed any more
)

// Event is something that happened to a node.
type Event struct {
	Kind Kind
	Node string
	Why  string // of Refused
}

// Answer is what a beat's sender is told.
type Answer struct {
	WantInventory bool
}

// Beat takes a heartbeat that came at now, when the local clock showed wall (Unix seconds). An error wraps ErrRefused and
// is fit to be sent to the node.
func (f *Fleet) Beat(now time.Time, wall float64, s *apiv1.NodeStatus) (Answer, []Event, error) {
	if err := check(s); err != nil {
		return Answer{}, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	n := f.nodes[s.Name]
	if n == nil && len(f.nodes) >= MaxNodes {
		return Answer{}, nil, fmt.Errorf("%w: %d nodes are known, as many as there can be", ErrRefused, len(f.nodes))
	}
	if err := f.admit(n, s); err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrRefused, s.Name, err)
		if n != nil && n.alive {
			return Answer{}, nil, err // one that lives under this name is not to suffer from it
		}
		if n == nil {
			n = &node{status: &apiv1.NodeStatus{Name: s.Name}}
			f.nodes[s.Name] = n
		}
		n.seen, n.skew = now, s.ClockSeconds-wall
		first := n.refused == ""
		n.refused = err.Error()
		n.status = shallow(s)
		n.whole, n.inventory = false, nil
		if first {
			return Answer{}, []Event{{Kind: Refused, Node: s.Name, Why: n.refused}}, err
		}
		return Answer{}, nil, err
	}
	var events []Event
	if n == nil {
		n = &node{}
		f.nodes[s.Name] = n
	}
	switch {
	case !n.alive:
		n.whole, n.inventory, n.asked = false, nil, false
		events = append(events, Event{Kind: Joined, Node: s.Name})
	case n.status.Incarnation != s.Incarnation:
		n.retired = append(n.retired, n.status.Incarnation)
		if len(n.retired) > maxRetired {
			n.retired = n.retired[1:]
		}
		n.whole, n.inventory, n.asked = false, nil, false
		events = append(events, Event{Kind: Restarted, Node: s.Name})
	}
	changed := n.status == nil || identityOf(n.status) != identityOf(s)
	n.alive, n.refused, n.seen, n.skew, n.restored = true, "", now, s.ClockSeconds-wall, false
	answer, inventory := n.take(s)
	if inventory || len(events) > 0 {
		f.version++
	}
	if inventory {
		events = append(events, Event{Kind: Inventory, Node: s.Name})
	}
	if changed || len(events) > 0 {
		f.claim(s)
	}
	if changed {
		events = append(events, Event{Kind: Changed, Node: s.Name})
	}
	return answer, events, nil
}

// take stores a status. Partitions and schemas that were left out because nothing changed stay.
func (n *node) take(s *apiv1.NodeStatus) (Answer, bool) {
	old := n.status
	n.status = s
	same := n.whole && bytes.Equal(n.inventory, s.Inventory)
	if same {
		s.Partitions, s.Schemas = old.Partitions, old.Schemas
		names := make(map[string][]string, len(old.Drives))
		for _, d := range old.Drives {
			names[d.Name] = d.Partitions
		}
		moved := false
		for _, d := range s.Drives {
			// The digest covers these lists. One that has grown under it comes from an agent that sent the digest of a drive before the drive.
			if had := names[d.Name]; len(d.Partitions) == 0 || len(d.Partitions) == len(had) {
				d.Partitions = had
			} else {
				moved = true
			}
		}
		return Answer{}, moved
	}
	// An inventory that was left out is not an empty one, unless the node sends none when it is asked. Where its drives list
	// partitions, it was left out once more: the answer that asked for it was lost.
	holds := slices.ContainsFunc(s.Drives, func(d *apiv1.Drive) bool { return len(d.Partitions) > 0 })
	if len(s.Partitions) == 0 && (holds || !n.asked) {
		n.asked = true
		if n.whole {
			s.Partitions, s.Schemas = old.Partitions, old.Schemas
			for i, d := range s.Drives {
				if i < len(old.Drives) && len(d.Partitions) == 0 && old.Drives[i].Name == d.Name {
					d.Partitions = old.Drives[i].Partitions
				}
			}
		}
		return Answer{WantInventory: true}, false
	}
	n.asked, n.whole, n.inventory = false, true, s.Inventory
	n.partition = make(map[string]*apiv1.Partition, len(s.Partitions))
	for _, p := range s.Partitions {
		n.partition[p.Name] = p
	}
	return Answer{}, true
}

// identityOf is what is worth storing of a node: it changes seldom.
func identityOf(s *apiv1.NodeStatus) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(record(s))
	if err != nil {
		return ""
	}
	return string(b)
}

// record is a status without what changes from beat to beat and without lists of files.
func record(s *apiv1.NodeStatus) *apiv1.NodeStatus {
	r := &apiv1.NodeStatus{Name: s.Name, Incarnation: s.Incarnation, Urls: s.Urls, Protocol: s.Protocol, Version: s.Version}
	for _, d := range s.Drives {
		r.Drives = append(r.Drives, &apiv1.Drive{Name: d.Name, Uuid: d.Uuid, Computes: d.Computes, Threads: d.Threads, Streams: d.Streams})
	}
	return r
}

// shallow is a status without inventory.
func shallow(s *apiv1.NodeStatus) *apiv1.NodeStatus {
	c := proto.CloneOf(s)
	c.Partitions, c.Schemas = nil, nil
	for _, d := range c.Drives {
		d.Partitions = nil
	}
	return c
}

// admit says why a node cannot be taken.
func (f *Fleet) admit(n *node, s *apiv1.NodeStatus) error {
	if err := apiv1.Speaks(s.Protocol); err != nil {
		return err
	}
	if n != nil && n.alive && n.status.Incarnation != s.Incarnation && slices.Contains(n.retired, s.Incarnation) {
		return fmt.Errorf("another agent registered under this name since (incarnation %s): give every node its own name", n.status.Incarnation)
	}
	own := map[string]string{}
	for _, d := range s.Drives {
		if d.Uuid == "" {
			continue
		}
		if other, ok := own[d.Uuid]; ok {
			return fmt.Errorf("drives %s and %s are one drive, %s: list it once", other, d.Name, d.Uuid)
		}
		own[d.Uuid] = d.Name
		if holder, ok := f.claims[d.Uuid]; ok && holder != s.Name {
			if h := f.nodes[holder]; h != nil && h.alive {
				return fmt.Errorf("drive %s (%s) is node %s's, which claimed it first and lives: take it out of one of the two configurations", d.Name, d.Uuid, holder)
			}
		}
	}
	return nil
}

// claim notes which drives a node has now.
func (f *Fleet) claim(s *apiv1.NodeStatus) {
	for uuid, holder := range f.claims {
		if holder == s.Name {
			delete(f.claims, uuid)
		}
	}
	for _, d := range s.Drives {
		if d.Uuid != "" {
			f.claims[d.Uuid] = s.Name
		}
	}
}

// Tick finds the nodes that fell silent for too long, and forgets those that have been gone for long.
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
		case !n.alive && silent > f.o.Forget && !n.drain:
			delete(f.nodes, name)
			events = append(events, Event{Kind: Forgotten, Node: name})
		}
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Node, b.Node) })
	return events
}

// Drain notes that an operator wants a node drained, or used again.
func (f *Fleet) Drain(name string, drain bool) error {
	n := f.nodes[name]
	if n == nil {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	n.drain = drain
	return nil
}

// Draining reports whether new splits keep away from a node.
func (f *Fleet) Draining(name string) bool {
	n := f.nodes[name]
	return n != nil && (n.drain || n.status.Draining)
}

// Asked reports whether an operator wants a node drained, whatever the node says itself.
func (f *Fleet) Asked(name string) bool { n := f.nodes[name]; return n != nil && n.drain }

// Alive reports whether a node beats.
func (f *Fleet) Alive(name string) bool { n := f.nodes[name]; return n != nil && n.alive }

// Status returns the last status of a node, nil if it is not known. It is not to be changed.
func (f *Fleet) Status(name string) *apiv1.NodeStatus {
	if n := f.nodes[name]; n != nil {
		return n.status
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
		r := &apiv1.NodeRecord{State: f.state(now, n), LastSeenSeconds: now.Sub(n.seen).Seconds(), ClockSkewSeconds: n.skew}
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
		return "dead" // or not heard of yet by this leader
	case !n.alive:
		return "dead"
	case now.Sub(n.seen) > 2*f.o.Beat+f.o.Beat/2:
		return "silent"
	case n.drain || n.status.Draining:
		return "draining"
	}
	return "ready"
}

// Stored is what a node's key holds: the record, and whether an operator drained it.
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

// Restore takes what Stored returned, in a new term. The node counts as dead until it beats.
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

// check tests a status' own rules and bounds.
func check(s *apiv1.NodeStatus) error {
	switch {
	case s == nil:
		return errors.New("a heartbeat without a status")
	case s.Name == "" || len(s.Name) > MaxName:
		return fmt.Errorf("a node's name has 1 to %d bytes", MaxName)
	case s.Incarnation == "" || len(s.Incarnation) > MaxName:
		return fmt.Errorf("node %s: an incarnation has 1 to %d bytes", s.Name, MaxName)
	case len(s.Urls) == 0 || len(s.Urls) > maxURLs:
		return fmt.Errorf("node %s: %d URLs, want 1 to %d", s.Name, len(s.Urls), maxURLs)
	case len(s.Drives) > MaxDrives:
		return fmt.Errorf("node %s: %d drives, at most %d", s.Name, len(s.Drives), MaxDrives)
	case len(s.Partitions) > MaxPartitions:
		return fmt.Errorf("node %s: %d partitions, at most %d", s.Name, len(s.Partitions), MaxPartitions)
	case len(s.Version) > MaxName || len(s.Inventory) > MaxName || len(s.Schemas) > MaxPartitions:
		return fmt.Errorf("node %s: a version, an inventory's digest or the number of schemas is out of bounds", s.Name)
	}
	for _, r := range s.Name {
		if r <= ' ' || r == '/' || r == 0x7f {
			return fmt.Errorf("node %q: a name has no spaces and no slashes", s.Name)
		}
	}
	for _, u := range s.Urls {
		if len(u) > maxURL {
			return fmt.Errorf("node %s: a URL of %d bytes", s.Name, len(u))
		}
	}
	seen := map[string]bool{}
	for _, d := range s.Drives {
		switch {
		case d == nil || d.Name == "" || len(d.Name) > MaxName || len(d.Uuid) > MaxName || len(d.State) > 1<<12:
			return fmt.Errorf("node %s: a drive's name, UUID or state is missing or too long", s.Name)
		case seen[d.Name]:
			return fmt.Errorf("node %s: two drives are called %s", s.Name, d.Name)
		case len(d.Partitions) > MaxPartitions:
			return fmt.Errorf("node %s: drive %s: %d partitions, at most %d", s.Name, d.Name, len(d.Partitions), MaxPartitions)
		}
		seen[d.Name] = true
	}
	for _, p := range s.Partitions {
		if p == nil {
			return fmt.Errorf("node %s: an empty partition", s.Name)
		}
	}
	return nil
}
