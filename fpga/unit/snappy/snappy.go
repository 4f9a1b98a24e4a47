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
	if canWalk() && decode(dst, block) {
		return n, nil
	}
	out, err := library.Decode(dst, block)
	return len(out), err
}

const (
	span   = 2048 // bytes of a block whose elements' sizes are computed at once
	margin = 128  // bytes that the walk reads and writes behind its bounds: those of two elements
)

// decode fills dst from block. It reports whether the block is whole and no element is wrong.
func decode(dst, block []byte) bool {
	_, begin := binary.Uvarint(block)
	src := block[begin:]
	var sizes [2][span]byte
	s, d := 0, 0
	for s < len(src) {
		n := min(span, (len(src)-s-margin)&^63)
		var ok bool
		if n <= 0 || d > len(dst)-margin || isLongLiteral(src[s]) {
			if d, s, ok = decodeElement(dst, d, src, s); !ok {
				return false
			}
			continue
		}
		elementSizes512(&sizes, &src[s], n)
		p := 0
		for p < n {
			if d <= len(dst)-margin {
				if d, p = walk(&dst[0], d, len(dst)-margin, &src[s], p, n, &sizes, &tags.masks[0]); p >= n {
					break
				}
			}
			if d, p, ok = decodeElement(dst, d, src[s:], p); !ok {
				return false
			}
		}
		s += p
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
	length := int(tag>>2) + 1
	if tag&3 == literal {
		if extra := length - 60; extra > 0 {
			if extra > len(rest) {
				return d, s, false
			}
			var number [8]byte
			copy(number[:], rest[:extra])
			length, rest = int(binary.LittleEndian.Uint64(number[:]))+1, rest[extra:]
		}
		if length > len(rest) || length > len(dst)-d {
			return d, s, false
		}
		copy(dst[d:], rest[:length])
		return d + length, len(src) - len(rest) + length, true
	}
	extra := [...]int{copy1: 1, copy2: 2, copy4: 4}[tag&3]
	if extra > len(rest) {
		return d, s, false
	}
	var number [8]byte
	copy(number[:], rest[:extra])
	offset := int(binary.LittleEndian.Uint64(number[:]))
	if tag&3 == copy1 {
		offset |= int(tag>>5) << 8
		length = 4 + int(tag>>2&7)
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
