package split

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

const (
	// MaxSeparator is the greatest length of a separator in bytes.
	MaxSeparator = 16
	// MaxParts is the greatest number of texts that are made of one.
	MaxParts = 1 << 20
)

var (
	// ErrSeparator says that a separator has no bytes or more than MaxSeparator.
	ErrSeparator = errors.New("split: separator of a wrong length")
	// ErrParts says that a text has more than MaxParts parts.
	ErrParts = errors.New("too many parts of one text")
)

// Rule says where texts are cut and which parts are left.
type Rule struct {
	Separator string
	KeepEmpty bool
}

// Texts are texts one behind the other: text i is Data[Offsets[i]:Offsets[i+1]].
type Texts struct {
	Offsets []uint32
	Data    []byte
}

// Lists is a list of texts for each row, one behind the other.
type Lists struct {
	Lengths []int32
	Texts
}

// Split makes l the lists that a rule makes of the texts, in the memory that l has as far as it suffices. valid, when
// not nil, has a byte a text, and a text of 0 is a null, whose list is empty. After an error l has no lists.
func (l *Lists) Split(texts Texts, valid []byte, rule Rule) error {
	l.Lengths, l.Offsets, l.Data = l.Lengths[:0], append(l.Offsets[:0], 0), l.Data[:0]
	if n := len(rule.Separator); n < 1 || n > MaxSeparator {
		return fmt.Errorf("%d bytes, want 1 to %d: %w", n, MaxSeparator, ErrSeparator)
	}
	if err := bytecolumn.Check(max(len(texts.Offsets), 1)-1, texts.Offsets, len(texts.Data), valid); err != nil {
		return fmt.Errorf("split: %w", err)
	}
	from, last := texts.Offsets[0], texts.Offsets[len(texts.Offsets)-1]
	l.Lengths = slices.Grow(l.Lengths, len(texts.Offsets)-1)
	c := cutter{dst: slices.Grow(l.Data, int(last-from)+wordBytes)[:int(last-from)+wordBytes], offsets: l.Offsets,
		src: texts.Data, rule: rule, first: uint64(rule.Separator[0]) * lowestBits}
	for row, to := range texts.Offsets[1:] {
		parts := len(c.offsets)
		if valid == nil || valid[row] != 0 {
			c.cut(int(from), int(to))
		}
		if parts = len(c.offsets) - parts; parts > MaxParts {
			l.Lengths, l.Data = l.Lengths[:0], l.Data[:0]
			return fmt.Errorf("row %d has %d: %w, which are at most %d", row, parts, ErrParts, MaxParts)
		}
		l.Lengths, from = append(l.Lengths, int32(parts)), to
	}
	l.Offsets, l.Data = c.offsets, c.dst[:c.end]
	return nil
}

// cutter copies parts. It reads and writes words of eight bytes.
type cutter struct {
	dst     []byte // Dst is wordBytes longer than all texts.
	end     int    // The parts so far end here in dst.
	offsets []uint32
	src     []byte
	rule    Rule
	first   uint64 // Each byte of first is the separator's first byte.
}

const (
	wordBytes   = 8
	lowestBits  = 0x0101010101010101 // the lowest bit of each byte of a word
	highestBits = 0x8080808080808080 // the highest bit of each byte of a word
)

// cut appends the parts of the text in bytes from to to of src.
func (c *cutter) cut(from, to int) {
	begin := c.end // of the part
	for from < to {
		word := c.word(from)
		binary.LittleEndian.PutUint64(c.dst[c.end:], word)
		// The lowest byte of found that is not 0 is at the first byte of word that may begin a separator.
		found := word ^ c.first
		found = (found - lowestBits) &^ found & highestBits
		n := min(bits.TrailingZeros64(found)/8, to-from)
		c.end, from = c.end+n, from+n
		switch {
		case n == wordBytes || from == to:
		case len(c.rule.Separator) == 1 || c.separatorAt(from, to):
			from += len(c.rule.Separator)
			c.endPart(begin)
			begin = c.end
		default: // the byte, which the word has put into dst, only looked like a separator
			c.end, from = c.end+1, from+1
		}
	}
	c.endPart(begin)
}

// word returns the bytes of src from an index on, with zeros behind the end of src.
func (c *cutter) word(from int) uint64 {
	if len(c.src)-from >= wordBytes {
		return binary.LittleEndian.Uint64(c.src[from:])
	}
	var word [wordBytes]byte
	copy(word[:], c.src[from:])
	return binary.LittleEndian.Uint64(word[:])
}

// separatorAt reports whether bytes from to to of src begin with the separator.
func (c *cutter) separatorAt(from, to int) bool {
	n := len(c.rule.Separator)
	return to-from >= n && string(c.src[from:from+n]) == c.rule.Separator
}

// endPart ends the part that begins at an index of dst.
func (c *cutter) endPart(begin int) {
	if c.end > begin || c.rule.KeepEmpty {
		c.offsets = append(c.offsets, uint32(c.end))
	}
}
