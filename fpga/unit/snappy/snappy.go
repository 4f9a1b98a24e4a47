package snappy

import (
	"encoding/binary"

	library "github.com/klauspost/compress/snappy"
)

// Decode fills dst from block, whose decoded length must be that of dst, and returns the bytes written. Blocks that
// no kernel takes, and those with an error in them, are the library's.
func Decode(dst, block []byte) (int, error) {
	n, err := library.DecodedLen(block)
	if err != nil || n != len(dst) {
		return n, err
	}
	if k := kernelsOfLevel(); k != noKernels && decode(dst, block, k) {
		return n, nil
	}
	out, err := library.Decode(dst, block)
	return len(out), err
}

// Literal returns the bytes that block holds unpacked, if block is nothing but one literal: what encoders make of
// bytes that they cannot pack. The result is a part of block.
func Literal(block []byte) (page []byte, ok bool) {
	size, n := binary.Uvarint(block)
	if n <= 0 || size == 0 || size > uint64(len(block)) {
		return nil, false
	}
	tag := block[n:]
	if len(tag) == 0 || tag[0]&3 != literal {
		return nil, false
	}
	extra := max(0, int(tag[0]>>2)+1-60)
	if uint64(len(tag)) != 1+uint64(extra)+size {
		return nil, false
	}
	length := uint64(tag[0]>>2) + 1
	if extra > 0 {
		length = 1
		for i, b := range tag[1 : 1+extra] {
			length += uint64(b) << (8 * i)
		}
	}
	return tag[1+extra:], length == size
}

const (
	// The bytes of a block whose elements' sizes are computed at once, at most and at first.
	span, leastSpan = 2048, 256
	// margin is how many bytes the walk reads and writes behind its bounds: those of two elements.
	margin = 128
)

// kernels says which kernels the processor has.
type kernels int

const (
	noKernels kernels = iota
	oneByOne          // AVX2: the sizes of elements, and a walk of an element a turn
	twoByTwo          // AVX-512 with VBMI: also the sizes of two elements, and a walk of two a turn
)

// decode fills dst from block. It reports whether the block is whole and no element is wrong.
func decode(dst, block []byte, k kernels) bool {
	_, begin := binary.Uvarint(block)
	src := block[begin:]
	var sizes [2][span]byte
	s, d, ahead := 0, 0, leastSpan
	for s < len(src) {
		n := min(ahead, (len(src)-s-margin)&^63)
		var ok bool
		if n <= 0 || d > len(dst)-margin || isLongLiteral(src[s]) {
			if d, s, ok = decodeElement(dst, d, src, s); !ok {
				return false
			}
			continue
		}
		k.elementSizes(&sizes, &src[s], n)
		p := 0
		for p < n {
			if d <= len(dst)-margin {
				if d, p = k.walk(dst, d, src[s:], p, n, &sizes); p >= n {
					break
				}
			}
			if d, p, ok = decodeElement(dst, d, src[s:], p); !ok {
				return false
			}
		}
		s += p
		// Sizes inside a long literal are computed in vain: fewer are computed where such literals are frequent.
		if ahead = min(2*ahead, span); p > n+margin {
			ahead = leastSpan
		}
	}
	return d == len(dst)
}

// The kinds of elements, the two lowest bits of a tag.
const (
	literal = iota
	copy1   // 11 bits of offset, 3 of them in the tag, and 4 to 11 bytes
	copy2   // 16 bits of offset
	copy4   // 32 bits of offset
)

func isLongLiteral(tag byte) bool { return tag&3 == literal && tag >= 60<<2 }

// decodeElement decodes the element at src[s] to dst[d:] and returns what follows. ok is false if the element is wrong.
func decodeElement(dst []byte, d int, src []byte, s int) (nextD, nextS int, ok bool) {
	tag, rest := src[s], src[s+1:]
	length, offset, extra := int(tag>>2)+1, 0, 0 // extra bytes behind the tag are a number
	switch tag & 3 {
	case literal:
		extra = max(0, length-60)
	case copy1:
		extra = 1
	case copy2:
		extra = 2
	case copy4:
		extra = 4
	}
	if extra > len(rest) {
		return d, s, false
	}
	number := 0
	for i, b := range rest[:extra] {
		number |= int(b) << (8 * i)
	}
	rest = rest[extra:]
	switch tag & 3 {
	case literal:
		if extra > 0 {
			length = number + 1
		}
		if length > len(rest) || length > len(dst)-d {
			return d, s, false
		}
		copy(dst[d:], rest[:length])
		return d + length, s + 1 + extra + length, true
	case copy1:
		length, offset = 4+int(tag>>2&7), int(tag>>5)<<8|number
	default:
		offset = number
	}
	if offset == 0 || offset > d || length > len(dst)-d {
		return d, s, false
	}
	for from, end := d-offset, d+length; d < end; {
		d += copy(dst[d:end], dst[from:d])
	}
	return d, s + 1 + extra, true
}

// tagTable says by tag how an element's offset and length follow from it and from the four bytes behind it. The walk's
// kernel knows its layout.
type tagTable struct {
	masks   [256]uint32 // bits of the bytes behind the tag that belong to the offset
	highs   [256]uint32 // bits of the offset that the tag holds
	lengths [256]byte
}

// literalOffset stands for the offset of a literal: not below its length, so that it passes for a copy that does not
// overlap itself.
const literalOffset = 64

var tags = makeTags()

func makeTags() (t tagTable) {
	for i := range 256 {
		t.lengths[i] = byte(i>>2 + 1)
		switch i & 3 {
		case literal:
			t.highs[i] = literalOffset
		case copy1:
			t.masks[i], t.highs[i], t.lengths[i] = 0xff, uint32(i>>5)<<8, byte(4+i>>2&7)
		case copy2:
			t.masks[i] = 0xffff
		case copy4:
			t.masks[i] = 0xffffffff
		}
	}
	return t
}
