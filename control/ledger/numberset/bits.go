package numberset

import "math/bits"

// Bits is a sequence of bits. It does not store its length.
type Bits []uint64

// NewBits returns n bits, which are 0.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Get reports whether bit i is 1.
func (b Bits) Get(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }

// Set makes bit i 1.
func (b Bits) Set(i int) { b[i>>6] |= 1 << (i & 63) }

// Clear makes bit i 0.
func (b Bits) Clear(i int) { b[i>>6] &^= 1 << (i & 63) }

// Next returns the first i in [from, n) whose bit is want, or n.
func (b Bits) Next(from, n int, want bool) int {
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

// Fill makes the bits [from, to) 1.
func (b Bits) Fill(from, to int) {
	for i := from; i < to; {
		if i&63 == 0 && to-i >= 64 {
			b[i>>6] = ^uint64(0)
			i += 64
			continue
		}
		b.Set(i)
		i++
	}
}
