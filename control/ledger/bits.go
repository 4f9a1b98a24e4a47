package ledger

import "math/bits"

// bitset is a sequence of bits. It does not store its length.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) get(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitset) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) clear(i int)    { b[i>>6] &^= 1 << (i & 63) }

// next returns the first i in [from, n) whose bit is want, or n.
func (b bitset) next(from, n int, want bool) int {
	var flip uint64
	if !want {
		flip = ^uint64(0)
	}
	for i := from; i < n; {
		w := (b[i>>6] ^ flip) >> (i & 63)
		if w != 0 {
			return min(i+bits.TrailingZeros64(w), n)
		}
		i = (i | 63) + 1
	}
	return n
}

// fill sets bits [from, to).
func (b bitset) fill(from, to int) {
	for i := from; i < to; {
		if i&63 == 0 && to-i >= 64 {
			b[i>>6] = ^uint64(0)
			i += 64
			continue
		}
		b.set(i)
		i++
	}
}
