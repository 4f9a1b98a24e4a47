package text

import (
	"encoding/binary"

	"github.com/millrace/millrace/fpga/unit/internal/hexword"
)

// parseFastLine parses a well-formed line that ends within b. For every other line, an empty one too, it returns 0 and
// leaves cells that mean nothing: parseLine decides what such a line is.
func parseFastLine(b *[fastRow]byte, first int, row *[fields]uint32) (used int, valid uint64) {
	p := 0
	for f := first; f <= Dense; f++ {
		c := b[p]
		if c == '\t' {
			if f == 0 {
				return 0, 0
			}
			row[f] = 0
			p++
			continue
		}
		limit := uint64(1<<31 - 1)
		neg := c == '-'
		if neg {
			limit = 1 << 31
			p++
			c = b[p]
		}
		v := uint64(c - '0')
		if v > 9 {
			return 0, 0
		}
		p++
		for end := p + 9; p < end; p++ {
			digit := uint64(b[p] - '0')
			if digit > 9 {
				break
			}
			v = v*10 + digit
		}
		if v > limit || b[p] != '\t' {
			return 0, 0
		}
		p++
		if neg {
			v = -v
		}
		row[f] = uint32(v)
		valid |= 1 << f
	}
	for f := 1 + Dense; f < fields-1; f++ {
		if x := binary.LittleEndian.Uint64(b[p:]); b[p+8] == '\t' && hexword.Digits(x) {
			row[f] = hexword.Value(x)
			valid |= 1 << f
			p += 9
			continue
		}
		v, n := parseShortHex(b, p)
		p += n
		if b[p] != '\t' {
			return 0, 0
		}
		p++
		row[f] = v
		if n > 0 {
			valid |= 1 << f
		}
	}
	const last = fields - 1
	if x := binary.LittleEndian.Uint64(b[p:]); hexword.Digits(x) {
		row[last] = hexword.Value(x)
		valid |= 1 << last
		p += 8
	} else {
		v, n := parseShortHex(b, p)
		p += n
		row[last] = v
		if n > 0 {
			valid |= 1 << last
		}
	}
	if b[p] == '\r' {
		p++
	}
	if b[p] != '\n' {
		return 0, 0
	}
	return p + 1, valid
}

// parseShortHex parses the hexadecimal digits at p, seven at most, and returns how many there are.
func parseShortHex(b *[fastRow]byte, p int) (v uint32, n int) {
	for n < 7 {
		c := b[p+n]
		d := c - '0'
		if d > 9 {
			d = (c | 0x20) - 'a'
			if d > 5 {
				break
			}
			d += 10
		}
		v = v<<4 | uint32(d)
		n++
	}
	return v, n
}
