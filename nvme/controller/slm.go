package controller

import (
	"slices"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// maxClaims bounds the claims of all associations together: the list is walked on every access.
const maxClaims = 4096

// claim is a range of subsystem local memory that an association holds: by a reservation of the vendor set (set 0), or by a
// memory range set. Claims of different associations never overlap; those of one may, so that a range set can name
// memory that is reserved already.
type claim struct {
	off, end uint64
	owner    *Controller
	set      uint16
}

// lease says that a running command uses ranges of its association; what is leased stays claimed, by one claim or another.
type lease struct {
	owner  *Controller
	ranges []cs.Range
	set    uint16 // the memory range set that the command named; 0: none
}

// memory decides who may touch which byte of subsystem local memory.
type memory struct {
	bytes []byte // not guarded: claims and leases keep commands apart

	mu     sync.Mutex
	claims []claim // sorted by off
	leases map[*lease]struct{}
	dirty  []cs.Range // given back and not cleared since; sorted, apart
}

func (m *memory) size() uint64 { return uint64(len(m.bytes)) }

// inside tells whether the range lies in the memory.
func (m *memory) inside(r cs.Range) bool {
	end, ok := r.Ends()
	return ok && end <= m.size()
}

// reserve claims a range for the vendor set, or with cs.AnyAddress the first that is free, and returns its address.
func (m *memory) reserve(owner *Controller, r cs.Range) (uint64, nvme.Status) {
	if r.Len == 0 || r.Len%cs.ReserveGranularity != 0 {
		return 0, nvme.InvalidField
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Addr == cs.AnyAddress {
		addr, ok := m.firstFree(r.Len)
		if !ok {
			return 0, nvme.InsufficientResources
		}
		r.Addr = addr
	}
	if r.Addr%cs.ReserveGranularity != 0 {
		return 0, nvme.InvalidField
	}
	if !m.inside(r) {
		return 0, nvme.LBAOutOfRange
	}
	for _, c := range m.claims {
		if r.Overlaps(cs.Range{Addr: c.off, Len: c.end - c.off}) {
			if c.owner == owner {
				return 0, nvme.OverlappingMemoryRanges
			}
			return 0, nvme.InsufficientResources
		}
	}
	return r.Addr, m.add(owner, 0, []cs.Range{r})
}

func (m *memory) firstFree(n uint64) (uint64, bool) {
	const g = cs.ReserveGranularity
	at := uint64(0)
	for _, c := range m.claims {
		if c.off >= at && c.off-at >= n {
			break
		}
		at = max(at, (c.end+g-1)/g*g)
	}
	return at, at <= m.size() && m.size()-at >= n
}

// claimSet claims the ranges of a memory range set, which lie inside the memory.
func (m *memory) claimSet(owner *Controller, set uint16, ranges []cs.Range) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.claims {
		for _, r := range ranges {
			if c.owner != owner && r.Overlaps(cs.Range{Addr: c.off, Len: c.end - c.off}) {
				return nvme.InsufficientResources
			}
		}
	}
	return m.add(owner, set, ranges)
}

// add puts claims into the list and clears what an earlier holder left there. m.mu is held.
func (m *memory) add(owner *Controller, set uint16, ranges []cs.Range) nvme.Status {
	if len(m.claims)+len(ranges) > maxClaims {
		return nvme.InsufficientResources
	}
	for _, r := range ranges {
		if r.Len == 0 {
			continue
		}
		m.wash(r)
		c := claim{r.Addr, r.Addr + r.Len, owner, set}
		at, _ := slices.BinarySearchFunc(m.claims, c, func(a, b claim) int {
			if a.off < b.off {
				return -1
			}
			return 1
		})
		m.claims = slices.Insert(m.claims, at, c)
	}
	return nvme.Success
}

// release ends the reservation that is exactly r.
func (m *memory) release(owner *Controller, r cs.Range) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.claims {
		if c.owner == owner && c.set == 0 && c.off == r.Addr && c.end-c.off == r.Len {
			if m.needed(owner, func(o claim) bool { return o == c }) {
				return nvme.MemoryRangeSetInUse
			}
			m.claims = slices.Delete(m.claims, i, i+1)
			m.soil(r)
			return nvme.Success
		}
	}
	return nvme.AccessDenied
}

// releaseSet ends the claims of a memory range set.
func (m *memory) releaseSet(owner *Controller, set uint16) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	ofSet := func(c claim) bool { return c.owner == owner && c.set == set }
	for l := range m.leases {
		if l.owner == owner && l.set == set {
			return nvme.MemoryRangeSetInUse
		}
	}
	if m.needed(owner, ofSet) {
		return nvme.MemoryRangeSetInUse
	}
	m.drop(ofSet)
	return nvme.Success
}

// releaseAll ends every claim of an association that has no command running.
func (m *memory) releaseAll(owner *Controller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(func(c claim) bool { return c.owner == owner })
}

func (m *memory) drop(which func(claim) bool) {
	for _, c := range m.claims {
		if which(c) {
			m.soil(cs.Range{Addr: c.off, Len: c.end - c.off})
		}
	}
	m.claims = slices.DeleteFunc(m.claims, which)
}

// reserved is the number of bytes that some association holds.
func (m *memory) reserved() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum, at uint64
	for _, c := range m.claims {
		if from := max(at, c.off); from < c.end {
			sum += c.end - from
			at = c.end
		}
	}
	return sum
}

// holders names the hosts whose associations hold memory, each once, sorted.
func (m *memory) holders() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, c := range m.claims {
		name := c.owner.host.NQN
		if name == "" {
			name = "a host without a name"
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// holds tells whether the association holds every byte of the range, which lies inside the memory. m.mu is held.
func (m *memory) holds(owner *Controller, r cs.Range) bool {
	return m.holdsWithout(owner, r, func(claim) bool { return false })
}

// holdsWithout tells whether it would if some of its claims ended. m.mu is held.
func (m *memory) holdsWithout(owner *Controller, r cs.Range, ended func(claim) bool) bool {
	at, end := r.Addr, r.Addr+r.Len
	for _, c := range m.claims {
		if at >= end || c.off > at {
			break
		}
		if c.owner == owner && c.end > at && !ended(c) {
			at = c.end
		}
	}
	return at >= end
}

// view returns the bytes of a range that the association holds.
func (m *memory) view(owner *Controller, r cs.Range) ([]byte, bool) {
	if !m.inside(r) {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.holds(owner, r) {
		return nil, false
	}
	return m.bytes[r.Addr : r.Addr+r.Len : r.Addr+r.Len], true
}

// lend checks that the ranges, which lie inside the memory, are the association's, and leases them until l is returned.
func (m *memory) lend(l *lease) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range l.ranges {
		if r.Len > 0 && !m.holds(l.owner, r) {
			return nvme.AccessDenied
		}
	}
	m.leases[l] = struct{}{}
	return nvme.Success
}

func (m *memory) giveBack(l *lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, l)
}

// needed tells whether a running command of the association uses bytes that only these claims of it hold. m.mu is held.
func (m *memory) needed(owner *Controller, claims func(claim) bool) bool {
	for l := range m.leases {
		if l.owner == owner && slices.ContainsFunc(l.ranges, func(r cs.Range) bool { return r.Len > 0 && !m.holdsWithout(owner, r, claims) }) {
			return true
		}
	}
	return false
}

// soil notes that a range was given back with somebody's bytes in it. m.mu is held.
func (m *memory) soil(r cs.Range) {
	if r.Len == 0 {
		return
	}
	// What the range touches or overlaps melts into it, so the list stays sorted and apart, and no longer than the
	// gaps that claims could have left.
	keep := m.dirty[:0:0]
	lo, hi := r.Addr, r.Addr+r.Len
	for _, d := range m.dirty {
		if d.Addr <= hi && lo <= d.Addr+d.Len {
			lo, hi = min(lo, d.Addr), max(hi, d.Addr+d.Len)
		} else {
			keep = append(keep, d)
		}
	}
	at, _ := slices.BinarySearchFunc(keep, lo, func(d cs.Range, a uint64) int {
		if d.Addr < a {
			return -1
		}
		return 1
	})
	m.dirty = slices.Insert(keep, at, cs.Range{Addr: lo, Len: hi - lo})
}

// wash zeroes the soiled parts of a range that is about to be claimed, so that nobody reads what an earlier holder left. Bytes
// that another claim of the same owner covers are in use and stay; they are soiled again when that claim ends. m.mu is held.
func (m *memory) wash(r cs.Range) {
	var keep []cs.Range
	for _, d := range m.dirty {
		lo, hi := max(d.Addr, r.Addr), min(d.Addr+d.Len, r.Addr+r.Len)
		if lo >= hi {
			keep = append(keep, d)
			continue
		}
		if d.Addr < lo {
			keep = append(keep, cs.Range{Addr: d.Addr, Len: lo - d.Addr})
		}
		if hi < d.Addr+d.Len {
			keep = append(keep, cs.Range{Addr: hi, Len: d.Addr + d.Len - hi})
		}
		m.clearUnheld(lo, hi)
	}
	m.dirty = keep
}

// clearUnheld zeroes [lo, hi) but for what is claimed now: those bytes are their holder's.
func (m *memory) clearUnheld(lo, hi uint64) {
	for _, c := range m.claims {
		if c.off >= hi {
			break
		}
		if c.end <= lo {
			continue
		}
		if c.off > lo {
			clear(m.bytes[lo:c.off])
		}
		lo = max(lo, c.end)
		if lo >= hi {
			return
		}
	}
	if lo < hi {
		clear(m.bytes[lo:hi])
	}
}
