package slm

import (
	"maps"
	"slices"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// maxClaims bounds the claims of all associations together: every access walks the list.
const maxClaims = 4096

// Owner is an association that can hold memory, or the name of its host. Two associations of a host are two owners.
type Owner struct{ Name string }

// claim is a range of subsystem local memory that an association holds: by a reservation of the vendor set (set 0), or
// by a memory range set. Claims of different associations never overlap. Claims of one association may, so that a range
// set can name memory that is reserved already.
type claim struct {
	off, end uint64
	owner    *Owner
	set      uint16
	clearing bool // the bytes of earlier holders are being cleared: the owner does not hold the range yet
}

// Access is a running command's use of ranges that its association holds. The ranges stay claimed, by one claim or
// another, until the access ends.
type Access struct {
	Owner  *Owner
	Ranges []cs.Range
	Set    uint16 // the memory range set that the command named; 0: none
}

// Memory decides which association may touch which byte of subsystem local memory.
type Memory struct {
	bytes []byte // not guarded: claims and leases keep commands apart
	// Lent are the blocks that the memory holds and that lie on the flash.
	Lent *Lender
	// windows are the shares of the regions. A byte of a window is memory of its region only, and of several regions each
	// has one owner: the association that holds memory in the window.
	windows []cs.Range
	zero    func([]byte) // clears bytes of earlier holders; constant

	mu       sync.Mutex
	cleared  *sync.Cond         // a claim's bytes have been cleared; its lock is mu
	claims   []claim            // sorted by off
	accesses map[*Access]*Owner // The owner stands here, too: a command that is over may have been used again.
	dirty    []cs.Range         // holds the bytes of an earlier holder; sorted, apart
}

// New makes the memory of regions with weights, in which zero clears bytes.
func New(bytes []byte, weights []int, zero func([]byte)) *Memory {
	m := &Memory{bytes: bytes, Lent: newLender(bytes), accesses: map[*Access]*Owner{}, zero: zero}
	m.cleared = sync.NewCond(&m.mu)
	for region := range weights {
		m.windows = append(m.windows, cs.RegionWindow(uint64(len(bytes)), weights, region))
	}
	return m
}

// Size returns the number of bytes.
func (m *Memory) Size() uint64 { return uint64(len(m.bytes)) }

// Bytes returns the bytes of a range inside the memory. The caller has access to them.
func (m *Memory) Bytes(r cs.Range) []byte { return m.bytes[r.Addr : r.Addr+r.Len] }

// InRegion reports whether a range lies in the window of a region.
func (m *Memory) InRegion(region int, r cs.Range) bool { return m.windows[region].Contains(r) }

// RegionOf returns the region whose window a range lies in, if it lies in one.
func (m *Memory) RegionOf(r cs.Range) (region int, ok bool) {
	region = slices.IndexFunc(m.windows, func(w cs.Range) bool { return w.Contains(r) })
	return region, region >= 0
}

// Contains reports whether the range lies in the memory.
func (m *Memory) Contains(r cs.Range) bool {
	end, ok := r.Ends()
	return ok && end <= m.Size()
}

// Reserve claims a range of a region for the vendor set, or with cs.AnyAddress the first that is free, and returns
// its address.
func (m *Memory) Reserve(owner *Owner, region int, r cs.Range) (uint64, nvme.Status) {
	if r.Len == 0 || r.Len%cs.ReserveGranularity != 0 {
		return 0, nvme.InvalidField
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isOwnedByAnother(owner, region) {
		return 0, nvme.AccessDenied
	}
	if r.Addr == cs.AnyAddress {
		addr, ok := m.firstFree(m.windows[region], r.Len)
		if !ok {
			return 0, nvme.InsufficientResources
		}
		r.Addr = addr
	}
	if r.Addr%cs.ReserveGranularity != 0 {
		return 0, nvme.InvalidField
	}
	if !m.Contains(r) || !m.windows[region].Contains(r) {
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
	return r.Addr, m.addClaims(owner, 0, []cs.Range{r})
}

// isOwnedByAnother reports whether a region of several is owned by another association: it holds memory of the region.
// m.mu is held.
func (m *Memory) isOwnedByAnother(owner *Owner, region int) bool {
	return len(m.windows) > 1 && slices.ContainsFunc(m.claims, func(c claim) bool {
		return c.owner != owner && c.overlapsRange(m.windows[region])
	})
}

// OwnedByAnother reports whether another association owns a region of several.
func (m *Memory) OwnedByAnother(asks *Owner, region int) bool {
	if len(m.windows) == 1 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isOwnedByAnother(asks, region)
}

// overlapsRange reports whether the claim has a byte in a range.
func (c claim) overlapsRange(r cs.Range) bool {
	return r.Overlaps(cs.Range{Addr: c.off, Len: c.end - c.off})
}

// firstFree returns the address of the first n bytes of a window that nobody holds. m.mu is held.
func (m *Memory) firstFree(window cs.Range, n uint64) (uint64, bool) {
	const g = cs.ReserveGranularity
	at, end := window.Addr, window.Addr+window.Len
	for _, c := range m.claims {
		if c.off >= end || c.off >= at && c.off-at >= n {
			break
		}
		at = max(at, (c.end+g-1)/g*g)
	}
	return at, at <= end && end-at >= n
}

// ClaimSet claims the ranges of a memory range set of a region, which lie inside its window. It waits until claims of
// the association that overlap them are cleared.
func (m *Memory) ClaimSet(owner *Owner, region int, set uint16, ranges []cs.Range) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for slices.ContainsFunc(m.claims, func(c claim) bool {
		return c.clearing && c.owner == owner && slices.ContainsFunc(ranges, c.overlapsRange)
	}) {
		m.cleared.Wait()
	}
	if m.isOwnedByAnother(owner, region) {
		return nvme.AccessDenied
	}
	for _, c := range m.claims {
		for _, r := range ranges {
			if c.owner != owner && r.Overlaps(cs.Range{Addr: c.off, Len: c.end - c.off}) {
				return nvme.InsufficientResources
			}
		}
	}
	return m.addClaims(owner, set, ranges)
}

// addClaims puts claims into the list and clears the bytes of earlier holders in them. m.mu is held. Clearing much
// memory takes long, so addClaims unlocks m.mu meanwhile: other commands go on, and the owner holds the claims from the
// end on.
func (m *Memory) addClaims(owner *Owner, set uint16, ranges []cs.Range) nvme.Status {
	if len(m.claims)+len(ranges) > maxClaims {
		return nvme.InsufficientResources
	}
	var dirty []cs.Range
	for _, r := range ranges {
		dirty = append(dirty, m.takeDirty(r)...)
	}
	for _, r := range ranges {
		if r.Len == 0 {
			continue
		}
		c := claim{r.Addr, r.Addr + r.Len, owner, set, len(dirty) > 0}
		at, _ := slices.BinarySearchFunc(m.claims, c, func(a, b claim) int {
			if a.off < b.off {
				return -1
			}
			return 1
		})
		m.claims = slices.Insert(m.claims, at, c)
	}
	if len(dirty) == 0 {
		return nvme.Success
	}
	m.mu.Unlock()
	for _, r := range dirty {
		m.Lent.Overwrite(r)
		m.zero(m.bytes[r.Addr : r.Addr+r.Len])
	}
	m.mu.Lock()
	for i := range m.claims {
		if c := &m.claims[i]; c.owner == owner && c.set == set && slices.ContainsFunc(ranges, c.overlapsRange) {
			c.clearing = false
		}
	}
	m.cleared.Broadcast()
	return nvme.Success
}

// Release ends the reservation that is exactly r.
func (m *Memory) Release(owner *Owner, r cs.Range) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.claims {
		if c.owner == owner && c.set == 0 && c.off == r.Addr && c.end-c.off == r.Len && !c.clearing {
			if m.isNeededByAccess(owner, func(o claim) bool { return o == c }) {
				return nvme.MemoryRangeSetInUse
			}
			m.claims = slices.Delete(m.claims, i, i+1)
			m.giveBack(r)
			return nvme.Success
		}
	}
	return nvme.AccessDenied
}

// ReleaseSet ends the claims of a memory range set.
func (m *Memory) ReleaseSet(owner *Owner, set uint16) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	ofSet := func(c claim) bool { return c.owner == owner && c.set == set }
	for l := range m.accesses {
		if l.Owner == owner && l.Set == set {
			return nvme.MemoryRangeSetInUse
		}
	}
	if m.isNeededByAccess(owner, ofSet) {
		return nvme.MemoryRangeSetInUse
	}
	m.dropClaims(ofSet)
	return nvme.Success
}

// ReleaseAll ends every claim of an association. No command of it runs: if one has not ended its access, ReleaseAll
// ends it, and reports that the caller is at fault.
func (m *Memory) ReleaseAll(owner *Owner) (ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.accesses)
	maps.DeleteFunc(m.accesses, func(_ *Access, of *Owner) bool { return of == owner })
	m.dropClaims(func(c claim) bool { return c.owner == owner })
	return len(m.accesses) < before
}

func (m *Memory) dropClaims(which func(claim) bool) {
	var ended []cs.Range
	for _, c := range m.claims {
		if which(c) {
			ended = append(ended, cs.Range{Addr: c.off, Len: c.end - c.off})
		}
	}
	m.claims = slices.DeleteFunc(m.claims, which)
	for _, r := range ended {
		m.giveBack(r)
	}
}

// giveBack notes that a claim of a range has ended. m.mu is held.
func (m *Memory) giveBack(r cs.Range) {
	m.Lent.forgetRange(r, func(r cs.Range) bool {
		return slices.ContainsFunc(m.claims, func(c claim) bool { return c.off < r.Addr+r.Len && r.Addr < c.end })
	})
	m.markDirty(r)
}

// Reserved returns the number of bytes that associations hold.
func (m *Memory) Reserved() uint64 {
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

// Holders returns the names of the hosts whose associations hold memory of a region, each once, sorted. On a
// drive of several regions the association that asks is left out: a region is its owner's to change.
func (m *Memory) Holders(asks *Owner, region int) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, c := range m.claims {
		if !c.overlapsRange(m.windows[region]) || c.owner == asks && len(m.windows) > 1 {
			continue
		}
		name := c.owner.Name
		if name == "" {
			name = "a host without a name"
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// holdsRange reports whether the association holds every byte of the range, which lies inside the memory. m.mu is held.
func (m *Memory) holdsRange(owner *Owner, r cs.Range) bool {
	return m.holdsWithout(owner, r, func(claim) bool { return false })
}

// holdsWithout reports whether the association would hold the range if the claims that ended chooses were gone. m.mu is
// held.
func (m *Memory) holdsWithout(owner *Owner, r cs.Range, ended func(claim) bool) bool {
	at, end := r.Addr, r.Addr+r.Len
	for _, c := range m.claims {
		if at >= end || c.off > at {
			break
		}
		if c.owner == owner && c.end > at && !c.clearing && !ended(c) {
			at = c.end
		}
	}
	return at >= end
}

// View returns the bytes of a range that the association holds.
func (m *Memory) View(owner *Owner, r cs.Range) ([]byte, bool) {
	if !m.Contains(r) {
		return nil, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.holdsRange(owner, r) || !m.Lent.allowView(r) {
		return nil, false
	}
	return m.bytes[r.Addr : r.Addr+r.Len : r.Addr+r.Len], true
}

// BeginAccess checks that the association holds the ranges, which lie inside the memory, and keeps them claimed until
// EndAccess.
func (m *Memory) BeginAccess(a *Access) nvme.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range a.Ranges {
		if r.Len > 0 && !m.holdsRange(a.Owner, r) {
			return nvme.AccessDenied
		}
	}
	m.accesses[a] = a.Owner
	return nvme.Success
}

// EndAccess ends an access.
func (m *Memory) EndAccess(a *Access) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.accesses, a)
}

// isNeededByAccess reports whether a running command of the association accesses bytes that it holds only by the given
// claims. m.mu is held.
func (m *Memory) isNeededByAccess(owner *Owner, claims func(claim) bool) bool {
	only := func(r cs.Range) bool { return r.Len > 0 && !m.holdsWithout(owner, r, claims) }
	for a := range m.accesses {
		if a.Owner == owner && slices.ContainsFunc(a.Ranges, only) {
			return true
		}
	}
	return false
}

// markDirty notes that a range was given back with the bytes of its holder in it. m.mu is held.
func (m *Memory) markDirty(r cs.Range) {
	if r.Len == 0 {
		return
	}
	m.dirty = insertMerged(m.dirty, r)
}

// insertMerged returns ranges, which are sorted and apart, with another. Ranges that touch or overlap are merged, so
// the list stays sorted and disjoint, and has no more elements than there could be gaps between claims.
func insertMerged(ranges []cs.Range, r cs.Range) []cs.Range {
	keep := ranges[:0:0]
	lo, hi := r.Addr, r.Addr+r.Len
	for _, d := range ranges {
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
	return slices.Insert(keep, at, cs.Range{Addr: lo, Len: hi - lo})
}

// cutRanges returns what is left of ranges without another.
func cutRanges(ranges []cs.Range, r cs.Range) (keep []cs.Range) {
	for _, d := range ranges {
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
	}
	return keep
}

// takeDirty returns the dirty parts of a range that is about to be claimed, and counts them as cleared: the caller
// clears them, so that the new holder reads nothing of an earlier one. Bytes that another claim of the same owner
// covers are in use and are left out; they become dirty again when that claim ends. m.mu is held.
func (m *Memory) takeDirty(r cs.Range) (unheld []cs.Range) {
	for _, d := range m.dirty {
		lo, hi := max(d.Addr, r.Addr), min(d.Addr+d.Len, r.Addr+r.Len)
		if lo < hi {
			unheld = append(unheld, cs.Range{Addr: lo, Len: hi - lo})
		}
	}
	if len(unheld) == 0 {
		return nil
	}
	m.dirty = cutRanges(m.dirty, r)
	for _, c := range m.claims {
		unheld = cutRanges(unheld, cs.Range{Addr: c.off, Len: c.end - c.off})
	}
	return unheld
}
