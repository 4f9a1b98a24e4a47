package decoder

import (
	"encoding/binary"

	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// deltaReader reads DELTA_BINARY_PACKED: a header, then blocks of miniblocks, each with its own bit width. The reader
// stands in the current miniblock. The zero value, and a reader over no bytes, have no values.
type deltaReader struct {
	src             []byte // after the current miniblock
	left            int    // values not yet read, the first included
	begun           bool   // the first value has been taken
	last            int64  // the value before
	leastDelta      int64  // the block's least delta
	widths          []byte // The block's miniblocks that are not open yet have them.
	miniblockValues int    // values of a miniblock
	blockMiniblocks int    // miniblocks of a block
	miniblockLeft   int    // values left of the current miniblock
	packed          []byte // from the current miniblock's beginning on
	bit             int    // The current miniblock's next value begins there.
	width           uint
}

// newDeltaReader reads the header of a section of at most most values. src may be longer than the section.
func newDeltaReader(src []byte, most int) (deltaReader, error) {
	d := deltaReader{src: src}
	if len(src) == 0 {
		return d, nil // a page of nulls may leave out even the header
	}
	block, err := d.readUvarint()
	if err != nil {
		return d, err
	}
	minis, err := d.readUvarint()
	if err != nil {
		return d, err
	}
	left, err := d.readUvarint()
	if err != nil {
		return d, err
	}
	first, err := d.readUvarint()
	if err != nil {
		return d, err
	}
	if left == 0 {
		d.last = decodeZigzag(first)
		return d, nil // Some writers of no values give blocks a size of 0.
	}
	if block == 0 || block%128 != 0 || block > format.MaxDeltaBlock || minis == 0 || block%minis != 0 ||
		block/minis%32 != 0 || left > uint64(most) {
		return d, format.Corrupt("delta header: blocks of %d values in %d miniblocks, %d values in a page of %d", block,
			minis, left, most)
	}
	d.miniblockValues, d.blockMiniblocks, d.left = int(block/minis), int(minis), int(left)
	d.last = decodeZigzag(first)
	return d, nil
}

// readUvarint takes a ULEB128 number of at most 64 bits.
func (d *deltaReader) readUvarint() (uint64, error) {
	v, n := binary.Uvarint(d.src)
	if n <= 0 {
		return 0, format.Corrupt("delta section ends inside a number")
	}
	d.src = d.src[n:]
	return v, nil
}

func decodeZigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// checkCount checks that n values are left.
func (d *deltaReader) checkCount(n int) error {
	if n > d.left {
		return format.Corrupt("%d values are wanted, the page has %d", n, d.left)
	}
	return nil
}

// openMiniblock opens the next miniblock.
func (d *deltaReader) openMiniblock() error {
	if len(d.widths) == 0 {
		m, err := d.readUvarint()
		if err != nil {
			return err
		}
		if len(d.src) < d.blockMiniblocks {
			return format.Corrupt("delta section ends inside a block's widths")
		}
		d.leastDelta, d.widths, d.src = decodeZigzag(m), d.src[:d.blockMiniblocks], d.src[d.blockMiniblocks:]
	}
	d.width, d.widths = uint(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return format.Corrupt("deltas of %d bits", d.width)
	}
	size := d.miniblockValues / 8 * int(d.width)
	if size > len(d.src) {
		return format.Corrupt("delta section ends inside a miniblock")
	}
	d.packed, d.bit, d.miniblockLeft = d.src, 0, d.miniblockValues
	d.src = d.src[size:]
	return nil
}

// read decodes len(dst) values.
func (d *deltaReader) read(dst []int64) error {
	if len(dst) > d.left {
		return valuesEndError()
	}
	if len(dst) == 0 {
		return nil
	}
	d.left -= len(dst)
	if !d.begun {
		d.begun = true
		dst[0] = d.last
		dst = dst[1:]
	}
	for len(dst) > 0 {
		if d.miniblockLeft == 0 {
			if err := d.openMiniblock(); err != nil {
				return err
			}
		}
		k := min(len(dst), d.miniblockLeft)
		encoding.Unpack64(dst[:k], d.packed, d.bit, d.width)
		encoding.Sum(dst[:k], d.leastDelta, d.last)
		d.last = dst[k-1]
		d.bit += k * int(d.width)
		d.miniblockLeft -= k
		dst = dst[k:]
	}
	return nil
}

// sectionEnd walks over all blocks and returns the bytes behind the section. The values stay to be read.
func (d *deltaReader) sectionEnd() ([]byte, error) {
	c := *d
	if c.left > 0 {
		c.left-- // the first value is in the header
	}
	for c.left > 0 {
		if err := c.openMiniblock(); err != nil {
			return nil, err
		}
		c.left -= min(c.left, c.miniblockValues)
	}
	return c.src, nil
}
