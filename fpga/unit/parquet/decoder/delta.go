package decoder

import (
	"encoding/binary"

	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// delta reads DELTA_BINARY_PACKED: a header, then blocks of so many miniblocks, each with its own bit width. What is in
// front is the current miniblock. The zero value, and one over no bytes, has no values.
type delta struct {
	src    []byte // after the current miniblock
	left   int    // values that are still to come, the first included
	begun  bool   // the first value has been taken
	last   int64  // the value before
	min    int64  // the block's least delta
	widths []byte // of the block's miniblocks that are to come
	size   int    // values of a miniblock
	minis  int    // miniblocks of a block
	mini   int    // values left of the current miniblock
	packed []byte // from the current miniblock's beginning on
	bit    int    // of its next value
	width  uint
}

// newDelta reads the header of a section of at most so many values. src may be longer than the section.
func newDelta(src []byte, most int) (delta, error) {
	d := delta{src: src}
	if len(src) == 0 {
		return d, nil // a page of nulls may leave out even the header
	}
	block, err := d.uvarint()
	if err != nil {
		return d, err
	}
	minis, err := d.uvarint()
	if err != nil {
		return d, err
	}
	left, err := d.uvarint()
	if err != nil {
		return d, err
	}
	first, err := d.uvarint()
	if err != nil {
		return d, err
	}
	if block == 0 || block%128 != 0 || block > format.MaxDeltaBlock || minis == 0 || block%minis != 0 || block/minis%32 != 0 || left > uint64(most) {
		return d, format.Corrupt("delta header: blocks of %d values in %d miniblocks, %d values in a page of %d", block, minis, left, most)
	}
	d.size, d.minis, d.left = int(block/minis), int(minis), int(left)
	d.last = unzigzag(first)
	return d, nil
}

// uvarint takes a ULEB128 number of at most 64 bits.
func (d *delta) uvarint() (uint64, error) {
	v, n := binary.Uvarint(d.src)
	if n <= 0 {
		return 0, format.Corrupt("delta section ends inside a number")
	}
	d.src = d.src[n:]
	return v, nil
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// atLeast checks that n values are to come.
func (d *delta) atLeast(n int) error {
	if n > d.left {
		return format.Corrupt("%d values are wanted, the page has %d", n, d.left)
	}
	return nil
}

// next makes mini positive by opening the next miniblock.
func (d *delta) next() error {
	if len(d.widths) == 0 {
		m, err := d.uvarint()
		if err != nil {
			return err
		}
		if len(d.src) < d.minis {
			return format.Corrupt("delta section ends inside a block's widths")
		}
		d.min, d.widths, d.src = unzigzag(m), d.src[:d.minis], d.src[d.minis:]
	}
	d.width, d.widths = uint(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return format.Corrupt("deltas of %d bits", d.width)
	}
	size := d.size / 8 * int(d.width)
	if size > len(d.src) {
		return format.Corrupt("delta section ends inside a miniblock")
	}
	d.packed, d.bit, d.mini = d.src, 0, d.size
	d.src = d.src[size:]
	return nil
}

// read decodes len(dst) values.
func (d *delta) read(dst []int64) error {
	if len(dst) > d.left {
		return errValuesEnd()
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
		if d.mini == 0 {
			if err := d.next(); err != nil {
				return err
			}
		}
		k := min(len(dst), d.mini)
		encoding.Unpack64(dst[:k], d.packed, d.bit, d.width)
		encoding.Sum(dst[:k], d.min, d.last)
		d.last = dst[k-1]
		d.bit += k * int(d.width)
		d.mini -= k
		dst = dst[k:]
	}
	return nil
}

// rest walks over all blocks and returns what follows the section. The values stay to be read.
func (d *delta) rest() ([]byte, error) {
	c := *d
	if c.left > 0 {
		c.left-- // the first value is in the header
	}
	for c.left > 0 {
		if err := c.next(); err != nil {
			return nil, err
		}
		c.left -= min(c.left, c.size)
	}
	return c.src, nil
}
