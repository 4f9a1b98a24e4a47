package controller

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func TestReservationsOfTwoAssociationsAreApart(t *testing.T) {
	d := newDrive(t)
	a, b := d.connect(), d.connect()
	atA, atB := reserve(t, a, 64<<10), reserve(t, b, 64<<10)
	require.NotEqual(t, atA, atB)
	secret := pattern(64<<10, 1)
	io(t, a, cs.Store(atA, 64<<10), secret, nvme.Success)
	buf := make([]byte, 512)
	for _, test := range []struct {
		name   string
		caller nvme.Conn
		cmd    nvme.Command
	}{
		{"fetch", b, cs.Fetch(atA, 512)},
		{"store", b, cs.Store(atA, 512)},
		{"read", b, cs.MemoryRead(atA, 512)},
		{"write", b, cs.MemoryWrite(atA, 512)},
		{"the second half is the other's", a, cs.Store(atA+64<<10-256, 512)},
	} {
		t.Run(test.name, func(t *testing.T) { io(t, test.caller, test.cmd, buf, nvme.AccessDenied) })
	}
	io(t, b, cs.MemoryFill(atA, 512, 0), nil, nvme.AccessDenied)
	src := cs.MemorySource{NSID: 2, Addr: atA, Len: 512}.AppendTo(nil)
	io(t, b, cs.MemoryCopy{Len: 512, Dest: atB, Sources: 1, Format: cs.CopyFormatMemory}.Command(), src, nvme.AccessDenied)
	blk := cs.BlockSource{NSID: 1, Blocks: 1}.AppendTo(nil)
	io(t, b, cs.MemoryCopy{Len: 512, Dest: atA, Sources: 1, Format: cs.CopyFormatBlocks}.Command(), blk, nvme.AccessDenied)
	preprocess(t, b, cs.Preprocess{Ranges: []cs.Range{{Addr: atA, Len: 1}}}, nvme.AccessDenied)
	preprocess(t, b, cs.Preprocess{Copies: []cs.Copy{{NSID: 1, NLB: 1, Dest: atA}}}, nvme.AccessDenied)
	execute(t, b, 0, []cs.Range{{Addr: atA, Len: 1}}, nil, nvme.AccessDenied)
	admin(t, b, cs.SLMRelease(atA, 64<<10), nil, nvme.AccessDenied)
	_, ok := b.(nvme.Mapper).MapSLM(atA, 1)
	assert.False(t, ok)
	_, ok = a.(nvme.Mapper).MapSLM(atA, 64<<10)
	assert.True(t, ok)
	assert.Equal(t, secret, d.compute.slm[atA:atA+64<<10], "nobody touched a byte of it")

	require.NoError(t, a.Close())
	admin(t, b, cs.SLMReserve(atA, 64<<10), nil, nvme.Success)
	got := make([]byte, 64<<10)
	io(t, b, cs.Fetch(atA, 64<<10), got, nvme.Success)
	assert.Equal(t, make([]byte, 64<<10), got, "what the other association left is cleared")
}

func TestReserveAtItsLimits(t *testing.T) {
	c := newDrive(t).connect()
	const page = cs.ReserveGranularity
	for _, test := range []struct {
		name            string
		address, length uint64
		want            nvme.Status
	}{
		{"nothing", 0, 0, nvme.InvalidField},
		{"odd length", 0, page + 1, nvme.InvalidField},
		{"odd address", 1, page, nvme.InvalidField},
		{"past the end", testSLM - page, 2 * page, nvme.LBAOutOfRange},
		{"wraps", ^uint64(page - 1), page, nvme.LBAOutOfRange},
		{"more than there is, anywhere", cs.AnyAddress, testSLM + page, nvme.InsufficientResources},
		{"last page", testSLM - page, page, nvme.Success},
		{"the same again", testSLM - page, page, nvme.OverlappingMemoryRanges},
		{"around it", testSLM - 2*page, 2 * page, nvme.OverlappingMemoryRanges},
		{"one page more than is left, anywhere", cs.AnyAddress, testSLM, nvme.InsufficientResources},
		{"all that is left, anywhere", cs.AnyAddress, testSLM - page, nvme.Success},
		{"nothing is left", cs.AnyAddress, page, nvme.InsufficientResources},
	} {
		t.Run(test.name, func(t *testing.T) { admin(t, c, cs.SLMReserve(test.address, test.length), nil, test.want) })
	}
	admin(t, c, cs.SLMRelease(0, page), nil, nvme.AccessDenied) // not as it was reserved
	admin(t, c, cs.SLMRelease(0, testSLM-page), nil, nvme.Success)
	admin(t, c, cs.SLMRelease(0, testSLM-page), nil, nvme.AccessDenied)
}

func TestTheNumberOfClaimsIsBounded(t *testing.T) {
	m := newMemory(make([]byte, (maxClaims+1)*cs.ReserveGranularity), []int{1}, zero)
	owner := &Controller{}
	r := cs.Range{Addr: cs.AnyAddress, Len: cs.ReserveGranularity}
	for range maxClaims {
		_, st := m.reserveRange(owner, 0, r)
		require.True(t, st.OK())
	}
	_, st := m.reserveRange(owner, 0, r)
	assert.ErrorIs(t, st, nvme.InsufficientResources)
}

// zero clears bytes.
func zero(b []byte) { clear(b) }

// holdClearing makes the memory of a drive wait before it clears the bytes of earlier holders. started has an element
// when it waits; goOn lets it clear.
func holdClearing(t *testing.T, m *memory) (started <-chan struct{}, goOn func()) {
	t.Helper()
	waits, held := make(chan struct{}, 16), make(chan struct{})
	m.zero = func(b []byte) {
		waits <- struct{}{}
		<-held
		clear(b)
	}
	goOn = sync.OnceFunc(func() { close(held) })
	t.Cleanup(goOn)
	return waits, goOn
}

// soon fails the test if a call does not return.
func soon(t *testing.T, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s waits for memory that is being cleared", what)
	}
}

// TestMemoryIsClearedWithoutALock checks that, while memory is cleared for a new holder, only commands that need this
// memory wait, and that no command reads it.
func TestMemoryIsClearedWithoutALock(t *testing.T) {
	const page = cs.ReserveGranularity
	m := newMemory(bytes.Repeat([]byte{7}, 4*page), []int{1}, zero)
	before, holder, other := &Controller{}, &Controller{}, &Controller{}
	_, st := m.reserveRange(before, 0, cs.Range{Addr: 0, Len: 2 * page})
	require.True(t, st.OK())
	m.releaseAll(before)
	started, goOn := holdClearing(t, m)
	whole, second := cs.Range{Addr: 0, Len: 2 * page}, cs.Range{Addr: page, Len: page}
	reserved, claimed := make(chan nvme.Status, 1), make(chan nvme.Status, 1)
	go func() {
		_, st := m.reserveRange(holder, 0, whole)
		reserved <- st
	}()
	<-started
	soon(t, "another association", func() {
		at, st := m.reserveRange(other, 0, cs.Range{Addr: cs.AnyAddress, Len: page})
		assert.True(t, st.OK())
		assert.EqualValues(t, 2*page, at, "the memory that is cleared is taken")
		assert.True(t, m.beginAccess(&access{owner: other, ranges: []cs.Range{{Addr: at, Len: page}}}).OK())
		assert.EqualValues(t, 3*page, m.reservedBytes())
	})
	soon(t, "the new holder", func() {
		assert.ErrorIs(t, m.beginAccess(&access{owner: holder, ranges: []cs.Range{second}}), nvme.AccessDenied)
		_, ok := m.viewOfRange(holder, second)
		assert.False(t, ok)
		assert.ErrorIs(t, m.releaseRange(holder, whole), nvme.AccessDenied, "it has not been told of it")
	})
	go func() { claimed <- m.claimSet(holder, 0, 1, []cs.Range{second}) }()
	select {
	case <-claimed:
		t.Fatal("a range set holds memory before it is cleared")
	case <-time.After(20 * time.Millisecond):
	}
	goOn()
	require.True(t, (<-reserved).OK())
	require.True(t, (<-claimed).OK())
	view, ok := m.viewOfRange(holder, whole)
	require.True(t, ok)
	assert.Equal(t, make([]byte, 2*page), view)
	require.True(t, m.releaseRange(holder, whole).OK())
	assert.True(t, m.releaseSet(holder, 1).OK())
}

// TestAnAssociationIsUsedWhileItsRangeSetIsMade checks that other commands of the association, and what its transport
// asks, do not wait for the memory of a range set to be cleared.
func TestAnAssociationIsUsedWhileItsRangeSetIsMade(t *testing.T) {
	d := newDrive(t)
	before := d.connect()
	at := reserve(t, before, 64<<10)
	io(t, before, cs.Store(at, 64<<10), pattern(64<<10, 1), nvme.Success)
	require.NoError(t, before.Close())
	c := d.connect()
	started, goOn := holdClearing(t, d.slm)
	ranges := []cs.Range{{Addr: at, Len: 4096}}
	create, err := cs.CreateRangeSet(ranges)
	require.NoError(t, err)
	created := make(chan nvme.Completion, 1)
	go func() { created <- admin(t, c, create.Command, create.Data, nvme.Success) }()
	<-started
	soon(t, "the association", func() {
		admin(t, c, nvme.KeepAlive(), nil, nvme.Success)
		x := cs.Execution{Set: 1, DataLen: 4}
		io(t, c, x.Command(), make([]byte, 4), nvme.InvalidMemoryRangeSetID)
		admin(t, c, cs.DeleteRangeSet(1), nil, nvme.InvalidMemoryRangeSetID)
		page := make([]byte, 4096)
		admin(t, c, nvme.GetLog(nvme.LogMemoryRangeSets, nvme.AllNamespaces, 0, 4096), page, nvme.Success)
		assert.Zero(t, binary.LittleEndian.Uint32(page), "memory range sets")
	})
	goOn()
	set := <-created
	require.EqualValues(t, 1, set.DW0())
	admin(t, c, cs.DeleteRangeSet(1), nil, nvme.Success)
	other, err := cs.CreateRangeSet([]cs.Range{{Addr: testSLM, Len: 4096}})
	require.NoError(t, err)
	admin(t, c, other.Command, other.Data, nvme.InvalidMemoryRangeSet)
	admin(t, c, create.Command, create.Data, nvme.Success)
}

// A model keeps the holders of every page; reservations, releases and ends of associations come in any order.
func TestMemoryAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const pages, g = 24, cs.ReserveGranularity
		m := newMemory(make([]byte, pages*g), []int{1}, zero)
		owners := []*Controller{{}, {}, {}}
		type holding struct{ owner, page, count, set int }
		var held []holding
		holder := func(page int) int { // -1: no owner
			for _, h := range held {
				if page >= h.page && page < h.page+h.count {
					return h.owner
				}
			}
			return -1
		}
		free := func(page, n, but int) bool {
			for p := page; p < page+n; p++ {
				if h := holder(p); h != -1 && h != but {
					return false
				}
			}
			return true
		}
		type leasing struct {
			owner, page, count int
			l                  *access
		}
		var leases []leasing
		covered := func(held []holding) bool { // what is leased is held
			for _, l := range leases {
				for p := l.page; p < l.page+l.count; p++ {
					if !slices.ContainsFunc(held, func(h holding) bool {
						return h.owner == l.owner && p >= h.page &&
							p < h.page+h.count
					}) {
						return false
					}
				}
			}
			return true
		}
		for step := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			o := rapid.IntRange(0, 2).Draw(rt, "owner")
			page := rapid.IntRange(0, pages-1).Draw(rt, "page")
			n := rapid.IntRange(1, pages-page).Draw(rt, "pages")
			r := cs.Range{Addr: uint64(page) * g, Len: uint64(n) * g}
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0:
				_, st := m.reserveRange(owners[o], 0, r)
				require.Equal(rt, free(page, n, -1), st.OK())
				if st.OK() {
					require.False(rt, bytes.ContainsAny(m.bytes[r.Addr:r.Addr+r.Len], "\x01\x02\x03"), "an earlier holder's byte")
					held = append(held, holding{o, page, n, 0})
				}
			case 1:
				set := step + 1
				st := m.claimSet(owners[o], 0, uint16(set), []cs.Range{r})
				require.Equal(rt, free(page, n, o), st.OK())
				if st.OK() {
					held = append(held, holding{o, page, n, set})
				}
			case 2:
				if len(held) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
				h := held[i]
				var st nvme.Status
				if h.set != 0 {
					st = m.releaseSet(owners[h.owner], uint16(h.set))
				} else {
					st = m.releaseRange(owners[h.owner], cs.Range{Addr: uint64(h.page) * g, Len: uint64(h.count) * g})
				}
				left := slices.Delete(slices.Clone(held), i, i+1)
				require.Equal(rt, covered(left), st.OK(), "as far as nothing that is used is lost")
				if st.OK() {
					held = left
				}
			case 3:
				if slices.ContainsFunc(leases, func(l leasing) bool { return l.owner == o }) {
					continue // commands are over before
				}
				m.releaseAll(owners[o])
				keep := held[:0]
				for _, h := range held {
					if h.owner != o {
						keep = append(keep, h)
					}
				}
				held = keep
			case 4:
				view, ok := m.viewOfRange(owners[o], r)
				want := true
				for p := page; p < page+n; p++ {
					want = want && holder(p) == o
				}
				require.Equal(rt, want, ok)
				for i := 0; i < len(view); i += g / 4 {
					view[i] = byte(o + 1) // no other owner may read it later
				}
			case 5:
				l := &access{owner: owners[o], ranges: []cs.Range{r}}
				leases = append(leases, leasing{o, page, n, l})
				want := covered(held)
				require.Equal(rt, want, m.beginAccess(l).OK())
				if !want {
					leases = leases[:len(leases)-1]
				}
			case 6:
				if len(leases) > 0 {
					i := rapid.IntRange(0, len(leases)-1).Draw(rt, "lease")
					m.endAccess(leases[i].l)
					leases = slices.Delete(leases, i, i+1)
				}
			}
			var sum uint64
			for p := range pages {
				if holder(p) != -1 {
					sum += g
				}
			}
			require.Equal(rt, sum, m.reservedBytes())
			for p := range pages {
				if h := holder(p); h != -1 {
					b := m.bytes[p*g]
					if b != 0 && b != byte(h+1) {
						rt.Fatalf("page %d of owner %d holds %d", p, h, b)
					}
				}
			}
		}
	})
}
