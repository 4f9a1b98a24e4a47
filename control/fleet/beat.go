package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
)

// Beat takes a heartbeat that arrived at now, when the local clock showed wall (Unix seconds). An error wraps
// ErrRefused and can be sent to the node.
func (f *Fleet) Beat(now time.Time, wall float64, s *apiv1.NodeStatus) (Answer, []Event, error) {
	if err := check(s); err != nil {
		return Answer{}, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	n := f.nodes[s.Name]
	if err := f.checkOwner(n, s); err != nil {
		return Answer{}, nil, fmt.Errorf("%w: %w", ErrRefused, err) // what is known of the name stays as it is
	}
	if n == nil && len(f.nodes) >= MaxNodes {
		return Answer{}, nil, fmt.Errorf("%w: %d nodes are known, as many as there can be", ErrRefused, len(f.nodes))
	}
	if err := f.admit(n, s); err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrRefused, s.Name, err)
		if n != nil && n.alive {
			return Answer{}, nil, err // the live node of this name is not affected
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

// take stores a status. If the status leaves out partitions and schemas, the known ones stay.
func (n *node) take(s *apiv1.NodeStatus) (Answer, bool) {
	old := n.status
	n.status, n.sourceIndex = s, nil
	same := n.whole && bytes.Equal(n.inventory, s.Inventory)
	if same {
		s.Partitions, s.Schemas, s.Sources = old.Partitions, old.Schemas, old.Sources
		names := make(map[string][]string, len(old.Drives))
		for _, d := range old.Drives {
			names[d.Name] = d.Partitions
		}
		moved := false
		for _, d := range s.Drives {
			// The digest covers these lists. A list that has grown under it comes from an agent that sent the digest of
			// a drive before the drive.
			if had := names[d.Name]; len(d.Partitions) == 0 || len(d.Partitions) == len(had) {
				d.Partitions = had
			} else {
				moved = true
			}
		}
		return Answer{}, moved
	}
	// An inventory that was left out is not empty, unless the node sends none after it was asked. A node whose drives
	// list partitions has left it out once more: the answer that asked for it was lost.
	holds := slices.ContainsFunc(s.Drives, func(d *apiv1.Drive) bool { return len(d.Partitions) > 0 })
	if len(s.Partitions) == 0 && (holds || !n.asked) {
		n.asked = true
		if n.whole {
			s.Partitions, s.Schemas, s.Sources = old.Partitions, old.Schemas, old.Sources
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

// identityOf returns the part of a status that is stored, which changes seldom.
func identityOf(s *apiv1.NodeStatus) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(record(s))
	if err != nil {
		return ""
	}
	return string(b)
}

// record returns a status without the values that change from beat to beat and without lists of files.
func record(s *apiv1.NodeStatus) *apiv1.NodeStatus {
	r := &apiv1.NodeStatus{Name: s.Name, Incarnation: s.Incarnation, Urls: s.Urls, Protocol: s.Protocol,
		Version: s.Version, Owner: s.Owner}
	for _, d := range s.Drives {
		r.Drives = append(r.Drives, &apiv1.Drive{Name: d.Name, Uuid: d.Uuid, Computes: d.Computes, Threads: d.Threads,
			Streams: d.Streams, Reach: d.Reach, Serves: d.Serves, ComputesOn: d.ComputesOn, Region: d.Region,
			Regions: d.Regions})
	}
	return r
}

// shallow returns a status without inventory.
func shallow(s *apiv1.NodeStatus) *apiv1.NodeStatus {
	c := proto.CloneOf(s)
	c.Partitions, c.Schemas, c.Sources = nil, nil, nil
	for _, d := range c.Drives {
		d.Partitions = nil
	}
	return c
}

// admit returns an error if a node is refused.
func (f *Fleet) admit(n *node, s *apiv1.NodeStatus) error {
	if err := apiv1.Speaks(s.Protocol); err != nil {
		return err
	}
	if n != nil && n.alive && n.status.Incarnation != s.Incarnation && slices.Contains(n.retired, s.Incarnation) {
		return fmt.Errorf("another agent registered under this name since (incarnation %s): give every node its own "+
			"name", n.status.Incarnation)
	}
	type region struct {
		uuid   string
		number uint32
	}
	own := map[region]string{}
	for _, d := range s.Drives {
		if d.Uuid == "" {
			continue
		}
		g := region{d.Uuid, d.Region}
		if other, ok := own[g]; ok {
			return fmt.Errorf("drives %s and %s are one drive%s, %s: list it once", other, d.Name, regionWords(d), d.Uuid)
		}
		own[g] = d.Name
		if holder, ok := f.claims[d.Uuid]; ok && holder != s.Name {
			if h := f.nodes[holder]; h != nil && h.alive {
				return fmt.Errorf("drive %s (%s) is node %s's, which claimed it first and lives: take it out of one "+
					"of the two configurations (all regions of a drive are one node's, which alone appends to it)", d.Name,
					d.Uuid, holder)
			}
		}
	}
	return nil
}

// regionWords names the region of a drive that has several, in an error.
func regionWords(d *apiv1.Drive) string {
	if d.Regions < 2 {
		return ""
	}
	return fmt.Sprintf(" in one region (%d of %d)", d.Region, d.Regions)
}

// claim records which drives a node has now. A launcher's worker claims none, so that no launcher can keep a node from
// its drive.
func (f *Fleet) claim(s *apiv1.NodeStatus) {
	for uuid, holder := range f.claims {
		if holder == s.Name {
			delete(f.claims, uuid)
		}
	}
	if s.Owner != "" {
		return
	}
	for _, d := range s.Drives {
		if d.Uuid != "" {
			f.claims[d.Uuid] = s.Name
		}
	}
}

// check checks the rules and bounds that need no other status.
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
		if _, err := identity.BaseURL(u); err != nil {
			return fmt.Errorf("node %s: %w", s.Name, err)
		}
	}
	seen := map[string]bool{}
	for _, d := range s.Drives {
		switch {
		case d == nil || d.Name == "" || len(d.Name) > MaxName || len(d.Uuid) > MaxName || len(d.State) > 1<<12:
			return fmt.Errorf("node %s: a drive's name, UUID or state is missing or too long", s.Name)
		case seen[d.Name]:
			return fmt.Errorf("node %s: two drives are called %s", s.Name, d.Name)
		case d.Region >= max(d.Regions, 1):
			return fmt.Errorf("node %s: drive %s: region %d of %d", s.Name, d.Name, d.Region, d.Regions)
		case len(d.Partitions) > MaxPartitions:
			return fmt.Errorf("node %s: drive %s: %d partitions, at most %d", s.Name, d.Name, len(d.Partitions),
				MaxPartitions)
		}
		seen[d.Name] = true
		if err := checkReach(s.Name, d); err != nil {
			return err
		}
	}
	for _, p := range s.Partitions {
		if p == nil {
			return fmt.Errorf("node %s: an empty partition", s.Name)
		}
	}
	return checkSources(s)
}
