package decoder

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// runs reads the RLE / bit-packed hybrid that holds levels, booleans and dictionary indices, run by run. The current
// run has left values: either all value, or packed.
type runs struct {
	rest     []byte // the bytes after the current run
	width    uint   // bits of a value, 0..32
	limit    uint32 // the greatest value that a run of one value may have
	left     int    // values of the current run
	isPacked bool
	value    uint32
	packed   []byte // from the packed run's beginning to the section's end, so that wide loads fit
	bit      int    // The next value in packed begins there.
	msbFirst bool   // the deprecated BIT_PACKED: most significant bit first
}

// newRuns begins at b's first run.
func newRuns(b []byte, width uint, limit uint32) runs {
	return runs{rest: b, width: width, limit: limit}
}

// newBitPacked makes one run of n values in the deprecated BIT_PACKED encoding. b has been checked to hold them.
func newBitPacked(b []byte, n int, width uint, limit uint32) runs {
	return runs{width: width, limit: limit, left: n, isPacked: true, packed: b, msbFirst: true}
}

// ReadRuns decodes len(dst) values from a section of the RLE / bit-packed hybrid. Each has width bits, 0 to 32, and is
// at most limit. On an error dst is undefined.
func ReadRuns(dst []uint32, section []byte, width uint, limit uint32) error {
	r := newRuns(section, width, limit)
	for len(dst) > 0 {
		if err := r.openRun(); err != nil {
			return err
		}
		values := dst[:min(len(dst), r.left)]
		if r.isPacked {
			encoding.Unpack32(values, r.packed, r.bit, r.width)
			if top := slices.Max(values); top > limit {
				return format.Corrupt("value %d in a run, at most %d is allowed", top, limit)
			}
		} else {
			fillSlice(values, r.value)
		}
		r.advance(len(values))
		dst = dst[len(values):]
	}
	return nil
}

// levelWidth returns the bits that levels up to greatest take.
func levelWidth(greatest uint8) uint { return uint(bits.Len8(greatest)) }

// openRun reads run headers until the current run has values.
func (r *runs) openRun() error {
	for r.left == 0 {
		if err := r.readHeader(); err != nil {
			return err
		}
	}
	return nil
}

// readHeader reads a run's header.
func (r *runs) readHeader() error {
	if len(r.rest) == 0 {
		return format.Corrupt("runs end before their values")
	}
	h := uint64(r.rest[0])
	r.rest = r.rest[1:]
	if h >= 0x80 {
		h &= 0x7f
		for shift := uint(7); ; shift += 7 {
			if len(r.rest) == 0 {
				return format.Corrupt("runs end before their values")
			}
			c := r.rest[0]
			r.rest = r.rest[1:]
			h |= uint64(c&0x7f) << shift
			if c < 0x80 {
				break
			}
			if shift == 28 {
				return format.Corrupt("run longer than 32 bits can say")
			}
		}
		if h >= 1<<32 {
			return format.Corrupt("run longer than 32 bits can say")
		}
	}
	if h&1 == 0 {
		return r.readRepeated(int(h >> 1))
	}
	n := int(h>>1) * 8
	size := int(h>>1) * int(r.width)
	if size > len(r.rest) {
		// The last run may be cut after the bytes that hold values.
		size = len(r.rest)
		n = size * 8 / int(r.width)
	}
	r.left, r.isPacked, r.packed, r.bit = n, true, r.rest, 0
	r.rest = r.rest[size:]
	return nil
}

// readRepeated reads the value of a run of n equal values.
func (r *runs) readRepeated(n int) error {
	size := int(r.width+7) / 8
	if size > len(r.rest) {
		return format.Corrupt("runs end inside a run's value")
	}
	var v uint32
	if size == 1 {
		v = uint32(r.rest[0])
	} else {
		for i := range size {
			v |= uint32(r.rest[i]) << (8 * i)
		}
	}
	r.rest = r.rest[size:]
	if v > r.limit && n > 0 {
		return format.Corrupt("value %d in a run, at most %d is allowed", v, r.limit)
	}
	r.left, r.isPacked, r.value = n, false, v
	return nil
}

// advance moves past n values of the current run.
func (r *runs) advance(n int) {
	r.left -= n
	if r.isPacked {
		r.bit += n * int(r.width)
	}
}

// skip moves past n values.
func (r *runs) skip(n int) error {
	for n > 0 {
		if err := r.openRun(); err != nil {
			return err
		}
		k := min(n, r.left)
		r.advance(k)
		n -= k
	}
	return nil
}

// packedLevels reads len(dst) <= left levels of a packed run and checks them.
func (r *runs) packedLevels(dst []byte) error {
	if r.msbFirst {
		r.bitPackedLevels(dst, r.bit)
	} else {
		unpackLevels(dst, r.packed, r.bit, r.width)
	}
	r.advance(len(dst))
	if r.limit+1 != 1<<r.width {
		var top byte
		for _, v := range dst {
			top = max(top, v)
		}
		if uint32(top) > r.limit {
			return format.Corrupt("level %d, at most %d is allowed", top, r.limit)
		}
	}
	return nil
}

// bitPackedLevels reads levels in the deprecated encoding, from bit on.
func (r *runs) bitPackedLevels(dst []byte, bit int) {
	for i := range dst {
		var v byte
		for range r.width {
			v = v<<1 | r.packed[bit>>3]>>(7-bit&7)&1
			bit++
		}
		dst[i] = v
	}
}

// readBits reads n values of one bit into the words of dst.
func (r *runs) readBits(dst []uint64, n int) error {
	words := (n + 63) / 64
	dst = dst[:words]
	clear(dst)
	for at := 0; at < n; {
		if r.left == 0 {
			if at = r.readShortRuns(dst, at, n); at == n {
				return nil
			}
			if err := r.openRun(); err != nil {
				return err
			}
		}
		k := min(n-at, r.left)
		switch {
		case !r.isPacked && r.value == 0:
		case !r.isPacked:
			for i := at; i < at+k; i += 64 {
				orWord(dst, i, lowBits(min(64, at+k-i)))
			}
		case r.msbFirst:
			for i := range k {
				bit := r.bit + i
				dst[(at+i)>>6] |= uint64(r.packed[bit>>3]>>(7-bit&7)&1) << ((at + i) & 63)
			}
		default:
			for i := 0; i < k; i += 64 {
				orWord(dst, at+i, loadWord(r.packed, r.bit+i, min(64, k-i)))
			}
		}
		r.advance(k)
		at += k
	}
	return nil
}

// readShortRuns reads whole runs of at most 63 values of one bit to position at of dst and behind. It returns where it
// stopped: at a run that is longer, faulty, or near the end of the section or of the n values. Lists of some twenty
// elements have a packed run and a run of ones by turns. Where a run lies follows from the run before it, so as little
// as possible is done between them, and no branch depends on whether a word is full.
func (r *runs) readShortRuns(dst []uint64, at, n int) int {
	b, i := r.rest, 0
	w, shift := at>>6, uint(at&63)
	if n-at < 64 {
		return at
	}
	word := dst[w]
	for n-at >= 64 && len(b)-i >= 9 {
		h := uint(b[i])
		var bits uint64
		var k uint
		if h&1 == 1 {
			groups := h >> 1
			if groups-1 >= 7 {
				break
			}
			k = 8 * groups
			bits = binary.LittleEndian.Uint64(b[i+1:]) & (1<<k - 1)
			i += 1 + int(groups)
		} else {
			v := uint64(b[i+1])
			if h >= 0x80 || v > 1 {
				break
			}
			k = h >> 1
			bits = -v & (1<<k - 1)
			i += 2
		}
		word |= bits << (shift & 63)
		dst[w] = word
		over := bits >> 1 >> (63 - shift&63)
		at += int(k)
		shift += k
		if shift >= 64 {
			word = over
		}
		w += int(shift >> 6)
		shift &= 63
	}
	if shift > 0 {
		dst[w] = word
	}
	r.rest = b[i:]
	return at
}

// orWord puts a word's bits at position at of dst and behind; those past its end must be 0.
func orWord(dst []uint64, at int, word uint64) {
	w, shift := at>>6, at&63
	dst[w] |= word << shift
	if high := word >> (64 - shift); shift > 0 && high != 0 {
		dst[w+1] |= high
	}
}

// countOnes moves past n values of one bit and counts the ones.
func (r *runs) countOnes(n int) (int, error) {
	ones := 0
	for n > 0 {
		if err := r.openRun(); err != nil {
			return 0, err
		}
		k := min(n, r.left)
		switch {
		case !r.isPacked:
			ones += k * int(r.value)
		case r.msbFirst:
			for i := r.bit; i < r.bit+k; i++ {
				ones += int(r.packed[i>>3] >> (7 - i&7) & 1)
			}
		default:
			ones += countOnesFrom(r.packed, r.bit, k)
		}
		r.advance(k)
		n -= k
	}
	return ones, nil
}
