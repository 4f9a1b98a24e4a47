package selection

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// chunkRows is how many rows a chunk has, but for the last of a partition: as many as 16 bits number.
const chunkRows = 1 << 16

// form says how a chunk lists its passing rows.
type form uint8

const (
	formNone form = iota
	formAll
	formList
	formBitmap
)

// chunk is the passing rows among chunkRows rows, or among those that the partition has left.
type chunk struct {
	form form
	data []byte // 2 bytes a passing row in formList, a bit a row in formBitmap.
}

// bitmapBytes returns the bytes of the bitmap of some rows.
func bitmapBytes(rows int) int { return (rows + 7) / 8 }

// makeChunk returns the chunk of a bitmap, in the form that its rows demand. The chunk keeps no part of the bitmap.
func makeChunk(bitmap []byte, rows int) (c chunk, passing int) {
	for _, b := range bitmap {
		passing += bits.OnesCount8(b)
	}
	switch {
	case passing == 0:
		return chunk{form: formNone}, passing
	case passing == rows:
		return chunk{form: formAll}, passing
	case 2*passing >= bitmapBytes(rows):
		return chunk{form: formBitmap, data: slices.Clone(bitmap)}, passing
	}
	c = chunk{form: formList, data: make([]byte, 0, 2*passing)}
	for i, b := range bitmap {
		for ; b != 0; b &= b - 1 {
			c.data = binary.LittleEndian.AppendUint16(c.data, uint16(8*i+bits.TrailingZeros8(b)))
		}
	}
	return c, passing
}

// row returns the passing row of a rank in the chunk, which must have more passing rows than that.
func (c *chunk) row(rank int) int {
	switch c.form {
	case formList:
		return int(binary.LittleEndian.Uint16(c.data[2*rank:]))
	case formBitmap:
		for i, b := range c.data {
			if n := bits.OnesCount8(b); rank >= n {
				rank -= n
				continue
			}
			for ; rank > 0; rank-- {
				b &= b - 1
			}
			return 8*i + bits.TrailingZeros8(b)
		}
	}
	return rank
}

// appendRows appends the passing rows in [from, to) of the chunk, each less base.
func (c *chunk) appendRows(list []uint32, from, to int, base int64) []uint32 {
	switch c.form {
	case formAll:
		for row := from; row < to; row++ {
			list = append(list, uint32(int64(row)-base))
		}
	case formList:
		for at := 0; at < len(c.data); at += 2 {
			if row := int(binary.LittleEndian.Uint16(c.data[at:])); row >= from && row < to {
				list = append(list, uint32(int64(row)-base))
			}
		}
	case formBitmap:
		for i := from / 8; i < bitmapBytes(to); i++ {
			for b := c.data[i]; b != 0; b &= b - 1 {
				if row := 8*i + bits.TrailingZeros8(b); row >= from && row < to {
					list = append(list, uint32(int64(row)-base))
				}
			}
		}
	}
	return list
}
