package decoder

import (
	"encoding/binary"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// levelBatchSize is how many levels of a list are looked at a time, levelWords the words that hold a bit of each.
const (
	levelBatchSize = 4096
	levelWords     = levelBatchSize / 64
)

// bitmap has a bit for each level of a batch: bit i%64 of word i/64.
type bitmap [levelWords]uint64

// question asks of every level of a batch whether it is at least a threshold.
type question struct {
	threshold uint32
	answer    *bitmap
}

// ask reads n <= levelBatchSize levels and answers questions about them. A run of one level is a range of bits; only packed runs
// are looked at level by level, 64 at a time. Bits past the levels are 0 up to the end of their word.
func (r *runs) ask(n int, questions []question) error {
	words := (n + 63) / 64
	for i := range questions {
		clear(questions[i].answer[:words])
	}
	for at := 0; at < n; {
		if err := r.run(); err != nil {
			return err
		}
		k := min(n-at, r.left)
		if r.isPacked {
			if err := r.askPacked(at, k, questions); err != nil {
				return err
			}
		} else {
			for i := range questions {
				if q := &questions[i]; r.value >= q.threshold {
					q.answer.set(at, at+k)
				}
			}
		}
		r.take(k)
		at += k
	}
	return nil
}

// askPacked answers for n levels of a packed run, as levels at, at+1, ... of the batch.
func (r *runs) askPacked(at, n int, questions []question) error {
	checked := r.limit+1 != 1<<r.width
	for bit := r.bit; n > 0; {
		var p planes
		k := min(n, 64)
		r.planes(&p, bit, k)
		if checked && p.atLeast(r.width, r.limit+1)&lowBits(k) != 0 {
			return format.Corrupt("a level above %d", r.limit)
		}
		for i := range questions {
			q := &questions[i]
			q.answer.or(at, p.atLeast(r.width, q.threshold)&lowBits(k))
		}
		at, n, bit = at+k, n-k, bit+k*int(r.width)
	}
	return nil
}

// planes holds up to 64 levels bit by bit: bit i of plane k is bit k of level i. Questions about levels become a few
// operations for all of them.
type planes [8]uint64

// planes reads n <= 64 levels of a packed run from bit on.
func (r *runs) planes(p *planes, bit, n int) {
	switch {
	case r.width == 1 && !r.msb:
		p[0] = loadBits(r.packed, bit, n)
	case r.width == 2 && !r.msb:
		lo := loadBits(r.packed, bit, min(2*n, 64))
		hi := uint64(0)
		if n > 32 {
			hi = loadBits(r.packed, bit+64, 2*n-64)
		}
		p[0] = evenBits(lo) | evenBits(hi)<<32
		p[1] = evenBits(lo>>1) | evenBits(hi>>1)<<32
	default:
		r.bytePlanes(p, bit, n)
	}
}

// bytePlanes reads n <= 64 levels of any width by way of bytes.
func (r *runs) bytePlanes(p *planes, bit, n int) {
	var buf [64]byte
	if r.msb {
		r.bitPackedLevels(buf[:n], bit)
	} else {
		unpack8(buf[:n], r.packed, bit, r.width)
	}
	for k := range p[:r.width] {
		for i := 0; i < n; i += 8 {
			// Byte i's lowest bit comes to bit 56+i of the product, and none beside it.
			x := binary.LittleEndian.Uint64(buf[i:]) >> k & 0x0101010101010101
			p[k] |= x * 0x0102040810204080 >> 56 << i
		}
	}
}

// atLeast returns the bits of levels that are at least threshold. Bits past the levels that were read are those of level 0.
func (p *planes) atLeast(width uint, threshold uint32) uint64 {
	switch {
	case threshold == 0:
		return ^uint64(0)
	case threshold>>width != 0:
		return 0
	}
	above, equal := uint64(0), ^uint64(0)
	for k := int(width) - 1; k >= 0; k-- {
		x := p[k]
		if threshold>>k&1 == 1 {
			equal &= x
		} else {
			above |= equal & x
			equal &^= x
		}
	}
	return above | equal
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

// set sets bits [from, to), of which there is one at least.
func (b *bitmap) set(from, to int) {
	w, last := from>>6, (to-1)>>6
	first, end := ^uint64(0)<<(from&63), ^uint64(0)>>(63-(to-1)&63)
	if w == last {
		b[w] |= first & end
		return
	}
	b[w] |= first
	fill(b[w+1:last], ^uint64(0))
	b[last] |= end
}

// rangeOf has those bits of word w set that lie in [from, to); some do.
func rangeOf(w, from, to int) uint64 {
	m := ^uint64(0)
	if w == from>>6 {
		m <<= from & 63
	}
	if w == (to-1)>>6 {
		m &= ^uint64(0) >> (63 - (to-1)&63)
	}
	return m
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

// placesSlack is how many elements behind its answer places may write to.
const placesSlack = 3

// places writes the positions of the bits set in [from, to), ascending. How many a word has is hard to foretell, so four at a time
// are written, some of them for nothing.
func places(dst []int32, b *bitmap, from, to int) {
	n := 0
	for w := from >> 6; w<<6 < to; w++ {
		x, base := b[w]&rangeOf(w, from, to), int32(w<<6)
		end := n + bits.OnesCount64(x)
		for ; n < end; n += 4 {
			four := dst[n : n+4 : n+4]
			four[0] = base + int32(bits.TrailingZeros64(x))
			x &= x - 1
			four[1] = base + int32(bits.TrailingZeros64(x))
			x &= x - 1
			four[2] = base + int32(bits.TrailingZeros64(x))
			x &= x - 1
			four[3] = base + int32(bits.TrailingZeros64(x))
			x &= x - 1
		}
		n = end
	}
}
