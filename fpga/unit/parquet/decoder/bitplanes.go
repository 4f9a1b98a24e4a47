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

// levelQuestion asks of every level of a batch whether it is at least a threshold. The answer has a bit for each level.
type levelQuestion struct {
	threshold uint32
	answer    *bitmap
}

// answer reads n <= levelBatchSize levels and answers questions about them. A run of one level is a range of bits. Only
// packed runs are read level by level, 64 at a time. Bits behind the levels are 0 up to the end of their word.
func (r *runs) answer(n int, questions []levelQuestion) error {
	words := (n + 63) / 64
	for i := range questions {
		clear(questions[i].answer[:words])
	}
	for at := 0; at < n; {
		if err := r.openRun(); err != nil {
			return err
		}
		k := min(n-at, r.left)
		if r.isPacked {
			if err := r.answerPacked(at, k, questions); err != nil {
				return err
			}
		} else {
			for i := range questions {
				if q := &questions[i]; r.value >= q.threshold {
					q.answer.setRange(at, at+k)
				}
			}
		}
		r.advance(k)
		at += k
	}
	return nil
}

// answerPacked answers for n levels of a packed run, which are levels at, at+1, ... of the batch.
func (r *runs) answerPacked(at, n int, questions []levelQuestion) error {
	checked := r.limit+1 != 1<<r.width
	for bit := r.bit; n > 0; {
		var p bitPlanes
		k := min(n, 64)
		r.readPlanes(&p, bit, k)
		if checked && p.atLeast(r.width, r.limit+1)&lowBits(k) != 0 {
			return format.Corrupt("a level above %d", r.limit)
		}
		for i := range questions {
			q := &questions[i]
			q.answer.orWord(at, p.atLeast(r.width, q.threshold)&lowBits(k))
		}
		at, n, bit = at+k, n-k, bit+k*int(r.width)
	}
	return nil
}

// bitPlanes holds up to 64 levels bit by bit: bit i of plane k is bit k of level i. A question about levels becomes a
// few operations for all of them.
type bitPlanes [8]uint64

// readPlanes reads n <= 64 levels of a packed run from a bit on.
func (r *runs) readPlanes(p *bitPlanes, bit, n int) {
	switch {
	case r.width == 1 && !r.msbFirst:
		p[0] = loadWord(r.packed, bit, n)
	case r.width == 2 && !r.msbFirst:
		lo := loadWord(r.packed, bit, min(2*n, 64))
		hi := uint64(0)
		if n > 32 {
			hi = loadWord(r.packed, bit+64, 2*n-64)
		}
		p[0] = evenBits(lo) | evenBits(hi)<<32
		p[1] = evenBits(lo>>1) | evenBits(hi>>1)<<32
	default:
		r.readPlanesBytewise(p, bit, n)
	}
}

// readPlanesBytewise reads n <= 64 levels of any width, a byte each, and makes planes of the bytes.
func (r *runs) readPlanesBytewise(p *bitPlanes, bit, n int) {
	var buf [64]byte
	if r.msbFirst {
		r.bitPackedLevels(buf[:n], bit)
	} else {
		unpackLevels(buf[:n], r.packed, bit, r.width)
	}
	for k := range p[:r.width] {
		for i := 0; i < n; i += 8 {
			// Byte i's lowest bit comes to bit 56+i of the product, and none beside it.
			x := binary.LittleEndian.Uint64(buf[i:]) >> k & 0x0101010101010101
			p[k] |= x * 0x0102040810204080 >> 56 << i
		}
	}
}

// atLeast returns the bits of levels that are at least threshold. Bits behind the levels that were read are those of
// level 0.
func (p *bitPlanes) atLeast(width uint, threshold uint32) uint64 {
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

// loadWord returns the n <= 64 bits of src from a bit on in the low bits of a word. src has them.
func loadWord(src []byte, bit, n int) uint64 {
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

// orWord puts a word's bits at position at and behind. Those behind the batch must be 0.
func (b *bitmap) orWord(at int, word uint64) {
	w, shift := at>>6, at&63
	b[w] |= word << shift
	if shift > 0 && w+1 < len(b) {
		b[w+1] |= word >> (64 - shift)
	}
}

// isSet reports whether bit i is set.
func (b *bitmap) isSet(i int) bool { return b[i>>6]>>(i&63)&1 == 1 }

// setRange sets bits [from, to), at least one.
func (b *bitmap) setRange(from, to int) {
	w, last := from>>6, (to-1)>>6
	first, end := ^uint64(0)<<(from&63), ^uint64(0)>>(63-(to-1)&63)
	if w == last {
		b[w] |= first & end
		return
	}
	b[w] |= first
	fillSlice(b[w+1:last], ^uint64(0))
	b[last] |= end
}

// rangeMask returns the bits of word w that lie in [from, to), at least one.
func rangeMask(w, from, to int) uint64 {
	m := ^uint64(0)
	if w == from>>6 {
		m <<= from & 63
	}
	if w == (to-1)>>6 {
		m &= ^uint64(0) >> (63 - (to-1)&63)
	}
	return m
}

// countRange counts the bits set in [from, to).
func (b *bitmap) countRange(from, to int) int {
	n := 0
	for w := from >> 6; w<<6 < to; w++ {
		n += bits.OnesCount64(b[w] & rangeMask(w, from, to))
	}
	return n
}

// nthSet returns the position of the n-th bit set in [from, to), counted from 0, or to if there are fewer.
func (b *bitmap) nthSet(n, from, to int) int {
	for w := from >> 6; w<<6 < to; w++ {
		x := b[w] & rangeMask(w, from, to)
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

// positionSlack is how many elements behind its result setPositions may write to.
const positionSlack = 3

// setPositions writes the positions of the bits set in [from, to), ascending. The number of bits set in a word is hard
// to predict, so four positions at a time are written, some of them to be overwritten.
func setPositions(dst []int32, b *bitmap, from, to int) {
	n := 0
	for w := from >> 6; w<<6 < to; w++ {
		x, base := b[w]&rangeMask(w, from, to), int32(w<<6)
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
