package slm

import (
	"bytes"
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

func TestTheNumberOfClaimsIsBounded(t *testing.T) {
	m := New(make([]byte, (maxClaims+1)*cs.ReserveGranularity), []int{1}, zero)
	owner := &Owner{}
	r := cs.Range{Addr: cs.AnyAddress, Len: cs.ReserveGranularity}
	for range maxClaims {
		_, st := m.Reserve(owner, 0, r)
		require.True(t, st.OK())
	}
	_, st := m.Reserve(owner, 0, r)
	assert.ErrorIs(t, st, nvme.InsufficientResources)
}

// zero clears bytes.
func zero(b []byte) { clear(b) }

// holdClearing makes the memory of a drive wait before it clears the bytes of earlier holders. started has an element
// when it waits; goOn lets it clear.
func holdClearing(t *testing.T, m *Memory) (started <-chan struct{}, goOn func()) {
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
	m := New(bytes.Repeat([]byte{7}, 4*page), []int{1}, zero)
	before, holder, other := &Owner{}, &Owner{}, &Owner{}
	_, st := m.Reserve(before, 0, cs.Range{Addr: 0, Len: 2 * page})
	require.True(t, st.OK())
	m.ReleaseAll(before)
	started, goOn := holdClearing(t, m)
	whole, second := cs.Range{Addr: 0, Len: 2 * page}, cs.Range{Addr: page, Len: page}
	reserved, claimed := make(chan nvme.Status, 1), make(chan nvme.Status, 1)
	go func() {
		_, st := m.Reserve(holder, 0, whole)
		reserved <- st
	}()
	<-started
	soon(t, "another association", func() {
		at, st := m.Reserve(other, 0, cs.Range{Addr: cs.AnyAddress, Len: page})
		assert.True(t, st.OK())
		assert.EqualValues(t, 2*page, at, "the memory that is cleared is taken")
		assert.True(t, m.BeginAccess(&Access{Owner: other, Ranges: []cs.Range{{Addr: at, Len: page}}}).OK())
		assert.EqualValues(t, 3*page, m.Reserved())
	})
	soon(t, "the new holder", func() {
		assert.ErrorIs(t, m.BeginAccess(&Access{Owner: holder, Ranges: []cs.Range{second}}), nvme.AccessDenied)
		_, ok := m.View(holder, second)
		assert.False(t, ok)
		assert.ErrorIs(t, m.Release(holder, whole), nvme.AccessDenied, "it has not been told of it")
	})
	go func() { claimed <- m.ClaimSet(holder, 0, 1, []cs.Range{second}) }()
	select {
	case <-claimed:
		t.Fatal("a range set holds memory before it is cleared")
	case <-time.After(20 * time.Millisecond):
	}
	goOn()
	require.True(t, (<-reserved).OK())
	require.True(t, (<-claimed).OK())
	view, ok := m.View(holder, whole)
	require.True(t, ok)
	assert.Equal(t, make([]byte, 2*page), view)
	require.True(t, m.Release(holder, whole).OK())
	assert.True(t, m.ReleaseSet(holder, 1).OK())
}

// A model keeps the holders of every page; reservations, releases and ends of associations come in any order.
func TestMemoryAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const pages, g = 24, cs.ReserveGranularity
		m := New(make([]byte, pages*g), []int{1}, zero)
		owners := []*Owner{{}, {}, {}}
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
			l                  *Access
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
				_, st := m.Reserve(owners[o], 0, r)
				require.Equal(rt, free(page, n, -1), st.OK())
				if st.OK() {
					require.False(rt, bytes.ContainsAny(m.bytes[r.Addr:r.Addr+r.Len], "\x01\x02\x03"), "an earlier holder's byte")
					held = append(held, holding{o, page, n, 0})
				}
			case 1:
				set := step + 1
				st := m.ClaimSet(owners[o], 0, uint16(set), []cs.Range{r})
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
					st = m.ReleaseSet(owners[h.owner], uint16(h.set))
				} else {
					st = m.Release(owners[h.owner], cs.Range{Addr: uint64(h.page) * g, Len: uint64(h.count) * g})
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
				m.ReleaseAll(owners[o])
				keep := held[:0]
				for _, h := range held {
					if h.owner != o {
						keep = append(keep, h)
					}
				}
				held = keep
			case 4:
				view, ok := m.View(owners[o], r)
				want := true
				for p := page; p < page+n; p++ {
					want = want && holder(p) == o
				}
				require.Equal(rt, want, ok)
				for i := 0; i < len(view); i += g / 4 {
					view[i] = byte(o + 1) // no other owner may read it later
				}
			case 5:
				l := &Access{Owner: owners[o], Ranges: []cs.Range{r}}
				leases = append(leases, leasing{o, page, n, l})
				want := covered(held)
				require.Equal(rt, want, m.BeginAccess(l).OK())
				if !want {
					leases = leases[:len(leases)-1]
				}
			case 6:
				if len(leases) > 0 {
					i := rapid.IntRange(0, len(leases)-1).Draw(rt, "lease")
					m.EndAccess(leases[i].l)
					leases = slices.Delete(leases, i, i+1)
				}
			}
			var sum uint64
			for p := range pages {
				if holder(p) != -1 {
					sum += g
				}
			}
			require.Equal(rt, sum, m.Reserved())
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
