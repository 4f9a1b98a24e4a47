package parquet

import (
	"encoding/binary"
	"math/bits"
)

// levelBatchSize is how many levels of a list are looked at a time, levelWords the words that hold a bit of each.
const (
	levelBatchSize = 1024
	levelWords     = levelBatchSize / 64
)

// bitmap has a bit for each level of a batch: bit i%64 of word i/64.
type bitmap [levelWords]uint64

// planes holds levels bit by bit: bit i of plane k is bit k of level i. Questions about levels become a few
// operations for 64 of them.
type planes struct {
	width uint // planes in use, at most 8
	bits  [8]bitmap
}

// planes reads n <= levelBatchSize levels.
func (r *runs) planes(dst *planes, n int) error {
	dst.width = r.width
	if r.width == 1 {
		return r.oneBit(dst.bits[0][:], n)
	}
	words := (n + 63) / 64
	for k := range dst.bits[:r.width] {
		clear(dst.bits[k][:words])
	}
	for at := 0; at < n; {
		if err := r.run(); err != nil {
			return err
		}
		k := min(n-at, r.left)
		if r.isPacked {
			r.packedPlanes(dst, at, k)
		} else {
			for b := range dst.bits[:r.width] {
				if r.value>>b&1 == 1 {
					dst.bits[b].set(at, at+k)
				}
			}
		}
		r.take(k)
		at += k
	}
	if r.limit+1 != 1<<r.width {
		var above bitmap
		dst.atLeast(&above, r.limit+1, words)
		if above.any(0, n) {
			return corrupt("a level above %d", r.limit)
		}
	}
	return nil
}

// packedPlanes reads n levels of a packed run, as levels at, at+1, ... of the batch.
func (r *runs) packedPlanes(dst *planes, at, n int) {
	bit := r.bit
	for n > 0 {
		k := min(n, 64)
		switch {
		case r.width == 2 && !r.msb:
			lo := loadBits(r.packed, bit, min(2*k, 64))
			hi := uint64(0)
			if k > 32 {
				hi = loadBits(r.packed, bit+64, 2*k-64)
			}
			dst.bits[0].or(at, evenBits(lo)|evenBits(hi)<<32)
			dst.bits[1].or(at, evenBits(lo>>1)|evenBits(hi>>1)<<32)
		default:
			r.bytePlanes(dst, at, bit, k)
		}
		at, n, bit = at+k, n-k, bit+k*int(r.width)
	}
}

// bytePlanes reads n <= 64 levels of any width by way of bytes.
func (r *runs) bytePlanes(dst *planes, at, bit, n int) {
	var buf [64]byte
	if r.msb {
		r.bitPackedLevels(buf[:n], bit)
	} else {
		unpack8(buf[:n], r.packed, bit, r.width)
	}
	for k := range dst.bits[:r.width] {
		var word uint64
		for i := 0; i < n; i += 8 {
			// Byte i's lowest bit comes to bit 56+i of the product, and none beside it.
			x := binary.LittleEndian.Uint64(buf[i:]) >> k & 0x0101010101010101
			word |= x * 0x0102040810204080 >> 56 << i
		}
		dst.bits[k].or(at, word)
	}
}

// atLeast sets, in the first words of dst, the bits of levels that are at least threshold. Bits past the levels that were read are
// those of level 0.
func (p *planes) atLeast(dst *bitmap, threshold uint32, words int) {
	switch {
	case threshold == 0:
		for w := range dst[:words] {
			dst[w] = ^uint64(0)
		}
		return
	case threshold>>p.width != 0:
		clear(dst[:words])
		return
	}
	for w := range dst[:words] {
		above, equal := uint64(0), ^uint64(0)
		for k := int(p.width) - 1; k >= 0; k-- {
			x := p.bits[k][w]
			if threshold>>k&1 == 1 {
				equal &= x
			} else {
				above |= equal & x
				equal &^= x
			}
		}
		dst[w] = above | equal
	}
}

// evenBits moves bits 0, 2, 4, ... together.
func evenBits(x uint64) uint64 {
	x &= 0x5555555555555555
	x = (x | x>>1) & 0x3333333333333333
	x = (x | x>>2) & 0x0f0f0f0f0f0f0f0f
	x = (x | x>>4) & 0x00ff00ff00ff00ff
	x = (x | x>>8) & 0x0000ffff0000ffff
	return (x | x>>16) & 0x00000000ffffffff
}

// loadBits returns the n <= 64 bits of src from bit on, which are there, in the low bits of a word.
func loadBits(src []byte, bit, n int) uint64 {
	p := bit >> 3
	shift := uint(bit & 7)
	var x uint64
	if p+9 <= len(src) {
		x = binary.LittleEndian.Uint64(src[p:])>>shift | uint64(src[p+8])<<(64-shift)
	} else {
		for i, c := range src[min(p, len(src)):] {
			if i == 8 {
				x = x>>shift | uint64(c)<<(64-shift)
				return x & lowBits(n)
			}
			x |= uint64(c) << (8 * i)
		}
		x >>= shift
	}
	return x & lowBits(n)
}

// lowBits has the n <= 64 lowest bits set.
func lowBits(n int) uint64 { return 1<<n - 1 }

// or puts a word's bits at position at and behind; those past the batch must be 0.
func (b *bitmap) or(at int, word uint64) {
	w, shift := at>>6, at&63
	b[w] |= word << shift
	if shift > 0 && w+1 < len(b) {
		b[w+1] |= word >> (64 - shift)
	}
}

// set sets bits [from, to).
func (b *bitmap) set(from, to int) {
	for w := from >> 6; w<<6 < to; w++ {
		b[w] |= rangeOf(w, from, to)
	}
}

// rangeOf has those bits of word w set that lie in [from, to).
func rangeOf(w, from, to int) uint64 {
	m := ^uint64(0)
	if d := from - w<<6; d > 0 {
		m <<= d
	}
	if d := to - w<<6; d < 64 {
		m &= lowBits(d)
	}
	return m
}

// any tells whether a bit of [from, to) is set.
func (b *bitmap) any(from, to int) bool {
	for w := from >> 6; w<<6 < to; w++ {
		if b[w]&rangeOf(w, from, to) != 0 {
			return true
		}
	}
	return false
}

// count counts the bits set in [from, to).
func (b *bitmap) count(from, to int) int {
	n := 0
	for w := from >> 6; w<<6 < to; w++ {
		n += bits.OnesCount64(b[w] & rangeOf(w, from, to))
	}
	return n
}

// nth returns the position of the n-th bit set in [from, to), counted from 0, or to.
func (b *bitmap) nth(n, from, to int) int {
	for w := from >> 6; w<<6 < to; w++ {
		x := b[w] & rangeOf(w, from, to)
		if ones := bits.OnesCount64(x); n >= ones {
			n -= ones
			continue
		}
		for ; n > 0; n-- {
			x &= x - 1
		}
		return w<<6 + bits.TrailingZeros64(x)
	}
	return to
}

// without calls fn, in ascending order, for each position in [from, to) that is set in among and not in b, with its
// rank among those set in among.
func (b *bitmap) without(among *bitmap, from, to int, fn func(rank int)) {
	rank := 0
	for w := from >> 6; w<<6 < to; w++ {
		a := among[w] & rangeOf(w, from, to)
		for x := a &^ b[w]; x != 0; x &= x - 1 {
			fn(rank + bits.OnesCount64(a&(x&-x-1)))
		}
		rank += bits.OnesCount64(a)
	}
}
