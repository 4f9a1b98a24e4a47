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

// Ref names a drive.
type Ref struct {
	Node  string `json:"node"`
	Drive string `json:"drive"`
}

// String returns NODE/DRIVE.
func (r Ref) String() string { return r.Node + "/" + r.Drive }

// Drive is what placement must know of a drive.
type Drive struct {
	Ref
	FreeBytes     int64
	RowsPerSecond float64  // P; 0 where it is not known: then it counts as the mean of those that are, or as any other
	Partitions    []string // what it holds
	Closed        bool     // takes nothing more: it is draining, read-only or out of order
}

// Partition is one to be placed, or one that lies somewhere.
type Partition struct {
	Name  string
	Bytes int64
	Rows  int64
}

// overhead is what a member of a tar volume takes beside its bytes at most: headers, a long name, padding to a block.
const overhead = 8 << 10

// Copy is a partition to be brought to a drive.
type Copy struct {
	Partition Partition
	From      Ref // a drive that holds it; zero if the one who asked has it
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
	load float64 // seconds that its rows take it, a partition's shared between its copies
	has  map[string]bool
}

// open reads the drives. partitions are all that are known; load is computed with so many copies as there are.
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

// holders are the drives that hold a partition, first by name first.
func (c *cluster) holders(name string) []*state {
	var list []*state
	for _, s := range c.drives {
		if s.has[name] {
			list = append(list, s)
		}
	}
	return list
}

// choose finds the drive for one more copy: on a node that has none, if there is one; then the drive that will end
// first; then the one with the most room; then by name.
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
		return nil, fmt.Errorf("partition %s has %d copies: %w for one more", p.Name, len(holders), ErrReplicas)
	}
	return nil, fmt.Errorf("partition %s of %d bytes: %w among the %d that do not hold it", p.Name, p.Bytes, ErrRoom, open)
}

func better(a, b *state, nodes map[string]bool, rows float64) bool {
	if nodes[a.Node] != nodes[b.Node] {
		return nodes[b.Node]
	}
	if x, y := a.load+rows/a.p, b.load+rows/b.p; x != y {
		return x < y
	}
	return a.free > b.free
}

// put notes a copy. rows is the share of the partition's rows that it will preprocess.
func (c *cluster) put(s *state, p Partition, rows float64) {
	s.has[p.Name] = true
	s.free -= p.Bytes + overhead
	s.load += rows / s.p
}

// bySize sorts the largest first, then by name.
func bySize(partitions []Partition) []Partition {
	sorted := slices.Clone(partitions)
	slices.SortFunc(sorted, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// Spread places new partitions, each on so many drives. partitions are also those that lie on the drives already, as far
// as they are known. A new partition that some drive holds already is an error: names are unique.
func Spread(drives []Drive, partitions, fresh []Partition, replicas int) ([]Copy, error) {
	if replicas < 1 {
		return nil, fmt.Errorf("%d copies: want 1 or more", replicas)
	}
	c, err := open(drives, append(slices.Clone(partitions), fresh...))
	if err != nil {
		return nil, err
	}
	var copies []Copy
	for _, p := range bySize(fresh) {
		if h := c.holders(p.Name); len(h) > 0 {
			return nil, fmt.Errorf("partition %s lies on %s already: names are unique, choose another (--prefix)", p.Name, h[0].Ref)
		}
		share := float64(p.Rows) / float64(replicas)
		for range replicas {
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

// Replicate returns the copies that bring every partition to at least so many.
func Replicate(drives []Drive, partitions []Partition, replicas int) ([]Copy, error) {
	c, err := open(drives, partitions)
	if err != nil {
		return nil, err
	}
	return c.replicate(partitions, replicas, nil)
}

// replicate brings partitions to so many copies, not counting those on the drive that goes.
func (c *cluster) replicate(partitions []Partition, replicas int, gone *state) ([]Copy, error) {
	var copies []Copy
	for _, p := range bySize(partitions) {
		holders := c.holders(p.Name)
		if len(holders) == 0 {
			return nil, fmt.Errorf("partition %s lies on no drive", p.Name)
		}
		stay := len(holders)
		if gone != nil && gone.has[p.Name] {
			stay--
		}
		share := float64(p.Rows) / float64(max(1, replicas))
		for ; stay < replicas; stay++ {
			s, err := c.choose(p, share)
			if err != nil {
				return nil, err
			}
			c.put(s, p, share)
			copies = append(copies, Copy{Partition: p, From: holders[len(copies)%len(holders)].Ref, To: s.Ref})
		}
	}
	return copies, nil
}

// Retire returns the copies without which a drive cannot be taken out: of each partition that it holds as many as keep so
// many elsewhere.
func Retire(drives []Drive, partitions []Partition, retire Ref, replicas int) ([]Copy, error) {
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
			held = append(held, p)
		}
	}
	if len(held) < len(gone.has) {
		return nil, fmt.Errorf("drive %s holds %d partitions, only %d of them are described", retire, len(gone.has), len(held))
	}
	return c.replicate(held, max(1, replicas), gone)
}

// Report says what a placement is worth.
type Report struct {
	Partitions int      `json:"partitions"`
	Rows       int64    `json:"rows"`
	Fewest     int      `json:"fewest_copies"` // of any partition
	Short      []string `json:"short"`         // partitions with fewer copies than asked
	OneNode    []string `json:"one_node"`      // partitions whose copies all lie on one node, though they have several
	// RowsPerSecond is what the drives sustain together over a whole epoch, every partition's rows shared between its
	// holders as evenly in time as can be. 0 if no P is known.
	RowsPerSecond float64 `json:"sustained_rows_per_second"`
	Last          Ref     `json:"last"` // the drive that ends last
}

// Check reports on a placement.
func Check(drives []Drive, partitions []Partition, replicas int) (Report, error) {
	c, err := open(drives, partitions)
	if err != nil {
		return Report{}, err
	}
	r := Report{Partitions: len(partitions), Short: []string{}, OneNode: []string{}}
	for i, p := range partitions {
		holders := c.holders(p.Name)
		r.Rows += p.Rows
		if i == 0 || len(holders) < r.Fewest {
			r.Fewest = len(holders)
		}
		if len(holders) < replicas {
			r.Short = append(r.Short, p.Name)
		}
		nodes := map[string]bool{}
		for _, h := range holders {
			nodes[h.Node] = true
		}
		if len(holders) > 1 && len(nodes) == 1 {
			r.OneNode = append(r.OneNode, p.Name)
		}
	}
	slices.Sort(r.Short)
	slices.Sort(r.OneNode)
	longest := 0.0
	for _, s := range c.level(partitions) {
		if s.load > longest {
			longest, r.Last = s.load, s.Ref
		}
	}
	known := slices.ContainsFunc(drives, func(d Drive) bool { return d.RowsPerSecond > 0 })
	if longest > 0 && known {
		r.RowsPerSecond = float64(r.Rows) / longest
	}
	return r, nil
}

// level shares each partition's rows between its holders such that they end together, as nearly as moving rows from
// the drive that ends last can make it.
func (c *cluster) level(partitions []Partition) []*state {
	type part struct {
		holders []*state
		share   []float64 // rows of each holder
	}
	var parts []part
	for _, s := range c.drives {
		s.load = 0
	}
	for _, p := range partitions {
		h := c.holders(p.Name)
		if len(h) == 0 {
			continue
		}
		sum := 0.0
		for _, s := range h {
			sum += s.p
		}
		share := make([]float64, len(h))
		for i, s := range h {
			share[i] = float64(p.Rows) * s.p / sum
			s.load += share[i] / s.p
		}
		if len(h) > 1 {
			parts = append(parts, part{holders: h, share: share})
		}
	}
	// Each round makes one partition's holders end as nearly together as its own rows allow; the greatest load never grows.
	for range 50 {
		moved := false
		for _, p := range parts {
			lo, hi := 0, 0
			for i, s := range p.holders {
				if s.load < p.holders[lo].load {
					lo = i
				}
				if p.share[i] > 0 && (p.share[hi] <= 0 || s.load > p.holders[hi].load) {
					hi = i
				}
			}
			a, b := p.holders[hi], p.holders[lo]
			if lo == hi || a.load-b.load <= 1e-9*a.load {
				continue
			}
			// rows x with a.load - x/a.p = b.load + x/b.p
			x := min(p.share[hi], (a.load-b.load)/(1/a.p+1/b.p))
			p.share[hi] -= x
			p.share[lo] += x
			a.load -= x / a.p
			b.load += x / b.p
			moved = moved || x > 0
		}
		if !moved {
			break
		}
	}
	return c.drives
}
