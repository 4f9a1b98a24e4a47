package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

var (
	// ErrRoom says that no drive has room for a partition.
	ErrRoom = errors.New("no drive has room")
	// ErrReplicas says that there are not enough drives for the copies that are wanted.
	ErrReplicas = errors.New("not enough drives")
)

// Ref names a drive of a node.
type Ref struct {
	Node  string `json:"node"`
	Drive string `json:"drive"`
}

// String returns NODE/DRIVE.
func (r Ref) String() string { return r.Node + "/" + r.Drive }

// Drive is the part of a drive's description that placement needs.
type Drive struct {
	Ref
	FreeBytes int64
	// P; 0 if unknown: then it counts as the mean of the known ones, or as that of any other drive
	RowsPerSecond float64
	Partitions    []string // It holds these partitions.
	Closed        bool     // it takes no more partitions: it is draining, read-only or out of order
}

// Partition is a partition that is to be placed, or that lies somewhere.
type Partition struct {
	Name   string
	Bytes  int64
	Rows   int64
	Copies int // wanted
}

// overhead bounds the room that a member of a tar volume takes beside its bytes: headers, a long name, padding to a
// block.
const overhead = 8 << 10

// Copy is a partition that is to be brought to a drive.
type Copy struct {
	Partition Partition
	From      Ref // a drive that holds it; zero if the caller has it
	To        Ref
}

// cluster is a placement while it is being changed.
type cluster struct {
	drives []*state
	rows   map[string]Partition
}

// state is a drive with what it will hold.
type state struct {
	Drive
	p    float64
	free int64
	load float64 // seconds that its rows take; the rows of a partition are shared between its copies
	has  map[string]bool
}

// open reads the drives. partitions are all that are known. A drive's load is computed with the copies that there are.
func open(drives []Drive, partitions []Partition) (*cluster, error) {
	c := &cluster{rows: map[string]Partition{}}
	for _, p := range partitions {
		c.rows[p.Name] = p
	}
	known, sum := 0, 0.0
	seen := map[Ref]bool{}
	for _, d := range drives {
		if seen[d.Ref] {
			return nil, fmt.Errorf("two drives are called %s", d.Ref)
		}
		seen[d.Ref] = true
		if d.RowsPerSecond > 0 {
			known, sum = known+1, sum+d.RowsPerSecond
		}
	}
	mean := 1.0
	if known > 0 {
		mean = sum / float64(known)
	}
	copies := map[string]int{}
	for _, d := range drives {
		s := &state{Drive: d, p: d.RowsPerSecond, free: d.FreeBytes, has: map[string]bool{}}
		if s.p <= 0 {
			s.p = mean
		}
		for _, name := range d.Partitions {
			s.has[name] = true
			copies[name]++
		}
		c.drives = append(c.drives, s)
	}
	slices.SortFunc(c.drives, func(a, b *state) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Ref.Drive, b.Ref.Drive))
	})
	for _, s := range c.drives {
		for name := range s.has {
			s.load += float64(c.rows[name].Rows) / float64(copies[name]) / s.p
		}
	}
	return c, nil
}

// holders returns the drives that hold a partition, sorted by name.
func (c *cluster) holders(name string) []*state {
	var list []*state
	for _, s := range c.drives {
		if s.has[name] {
			list = append(list, s)
		}
	}
	return list
}

// choose returns the drive for one more copy. It prefers a node that has no copy, then the drive that will finish
// first, then the drive with the most room, then the first by name.
func (c *cluster) choose(p Partition, share float64) (*state, error) {
	holders := c.holders(p.Name)
	nodes := map[string]bool{}
	for _, h := range holders {
		nodes[h.Node] = true
	}
	var best *state
	open := 0
	for _, s := range c.drives {
		if s.has[p.Name] || s.Closed {
			continue
		}
		open++
		if s.free < p.Bytes+overhead {
			continue
		}
		if best == nil || better(s, best, nodes, share) {
			best = s
		}
	}
	switch {
	case best != nil:
		return best, nil
	case open == 0:
		return nil, fmt.Errorf("partition %s is to have %d copies and can have %d: %w: every copy lies on a drive of "+
			"its own, and %s: "+
			"add drives, or ask for fewer copies (--replicas)", p.Name, p.Copies, countOpen(holders), ErrReplicas, c.census())
	}
	return nil, fmt.Errorf("partition %s of %d bytes, which is to have %d copies and has %d: %w among the %d that do "+
		"not hold it, the most is %d bytes: "+
		"add drives", p.Name, p.Bytes, p.Copies, len(holders), ErrRoom, open, c.mostRoom(p.Name))
}

// countOpen counts the drives that are not closed: a copy on a drive that is retired does not stay.
func countOpen(holders []*state) (n int) {
	for _, s := range holders {
		if !s.Closed {
			n++
		}
	}
	return n
}

// census says how many drives there are to choose from.
func (c *cluster) census() string {
	open, closed := 0, 0
	for _, s := range c.drives {
		if s.Closed {
			closed++
		} else {
			open++
		}
	}
	text := fmt.Sprintf("there are %d drives that take partitions", open)
	if open == 1 {
		text = "there is 1 drive that takes partitions"
	}
	if closed > 0 {
		text += fmt.Sprintf(", beside %d that are draining or not ready", closed)
	}
	return text
}

// mostRoom returns the room on the emptiest drive that could take a partition.
func (c *cluster) mostRoom(name string) int64 {
	most := int64(0)
	for _, s := range c.drives {
		if !s.has[name] && !s.Closed {
			most = max(most, s.free-overhead)
		}
	}
	return most
}

// better reports whether drive a is the better choice for a copy of a given number of rows. nodes are those that hold a
// copy.
func better(a, b *state, nodes map[string]bool, rows float64) bool {
	if nodes[a.Node] != nodes[b.Node] {
		return nodes[b.Node]
	}
	if x, y := a.load+rows/a.p, b.load+rows/b.p; x != y {
		return x < y
	}
	return a.free > b.free
}

// put records a copy. rows is the share of the partition's rows that it will preprocess.
func (c *cluster) put(s *state, p Partition, rows float64) {
	s.has[p.Name] = true
	s.free -= p.Bytes + overhead
	s.load += rows / s.p
}

// bySize sorts partitions by rows, the largest first, then by bytes, then by name.
func bySize(partitions []Partition) []Partition {
	sorted := slices.Clone(partitions)
	slices.SortFunc(sorted, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// Spread places partitions that the caller has, each on as many drives as copies are wanted. partitions are those that
// lie on the drives already, as far as they are known. A copy that lies somewhere already counts: a partition that has
// all of its copies gets none.
func Spread(drives []Drive, partitions, fresh []Partition) ([]Copy, error) {
	c, err := open(drives, append(slices.Clone(partitions), fresh...))
	if err != nil {
		return nil, err
	}
	var copies []Copy
	for _, p := range bySize(fresh) {
		if p.Copies < 1 {
			return nil, fmt.Errorf("partition %s: %d copies: want 1 or more", p.Name, p.Copies)
		}
		share := float64(p.Rows) / float64(p.Copies)
		for have := len(c.holders(p.Name)); have < p.Copies; have++ {
			s, err := c.choose(p, share)
			if err != nil {
				return nil, err
			}
			c.put(s, p, share)
			copies = append(copies, Copy{Partition: p, To: s.Ref})
		}
	}
	return copies, nil
}

// Replicate returns the copies that bring every partition to at least the number that is wanted, and to two nodes if
// two or more are wanted and another node has room.
func Replicate(drives []Drive, partitions []Partition) ([]Copy, error) {
	c, err := open(drives, partitions)
	if err != nil {
		return nil, err
	}
	return c.replicate(partitions, nil)
}

// replicate brings partitions to their number of copies, not counting those on the drive that is retired.
func (c *cluster) replicate(partitions []Partition, gone *state) ([]Copy, error) {
	var copies []Copy
	for _, p := range bySize(partitions) {
		holders := c.holders(p.Name)
		if len(holders) == 0 {
			return nil, fmt.Errorf("partition %s lies on no drive of a node that answers: put its file again "+
				"(millrace dataset place)", p.Name)
		}
		stay := slices.DeleteFunc(slices.Clone(holders), func(s *state) bool { return s == gone })
		share := float64(p.Rows) / float64(max(1, p.Copies))
		for len(stay) < p.Copies {
			s, err := c.choose(p, share)
			if err != nil {
				return nil, err
			}
			c.put(s, p, share)
			stay = append(stay, s)
			copies = append(copies, Copy{Partition: p, From: holders[len(copies)%len(holders)].Ref, To: s.Ref})
		}
		if p.Copies < 2 || !onOneNode(stay) {
			continue
		}
		// All copies would be lost with the node: one more copy goes to another node, if one has room.
		if s, err := c.choose(p, share); err == nil && s.Node != stay[0].Node {
			c.put(s, p, share)
			copies = append(copies, Copy{Partition: p, From: holders[len(copies)%len(holders)].Ref, To: s.Ref})
		}
	}
	return copies, nil
}

// onOneNode reports whether there are copies and all of them lie on one node.
func onOneNode(list []*state) bool {
	for _, s := range list {
		if s.Node != list[0].Node {
			return false
		}
	}
	return len(list) > 0
}

// Retire returns the copies that have to be made before a drive can be taken out: for each partition that it holds, as
// many as keep the number of copies that is wanted.
func Retire(drives []Drive, partitions []Partition, retire Ref) ([]Copy, error) {
	c, err := open(drives, partitions)
	if err != nil {
		return nil, err
	}
	var gone *state
	for _, s := range c.drives {
		if s.Ref == retire {
			gone = s
		}
	}
	if gone == nil {
		return nil, fmt.Errorf("drive %s: no such drive", retire)
	}
	gone.Closed = true
	var held []Partition
	for _, p := range partitions {
		if gone.has[p.Name] {
			p.Copies = max(1, p.Copies)
			held = append(held, p)
		}
	}
	if len(held) < len(gone.has) {
		return nil, fmt.Errorf("drive %s holds %d partitions, only %d of them are described", retire, len(gone.has),
			len(held))
	}
	return c.replicate(held, gone)
}
