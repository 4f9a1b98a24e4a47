package decoder

import (
	"fmt"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// deltaBatch is how many lengths are decoded at a time.
const deltaBatch = 256

// maxDeltaBytes bounds the values of a page together: a few bytes can promise that each begins like the megabyte before
// it.
const maxDeltaBytes = DefaultMaxData

// deltaByteReader reads DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY: byte arrays whose lengths come first, and which
// may begin with bytes of the array before them.
type deltaByteReader struct {
	prefixes deltaReader // DELTA_BYTE_ARRAY: how many bytes a value shares with the value before
	lengths  deltaReader // how many bytes follow these
	data     []byte
	shared   bool   // values share bytes: DELTA_BYTE_ARRAY
	previous []byte // the value before, if shared
	total    int    // bytes of values so far
	prefix   [deltaBatch]int64
	length   [deltaBatch]int64
}

// reset begins a section of at most n values. previous keeps its memory.
func (d *deltaByteReader) reset(src []byte, n int, shared bool) (err error) {
	d.shared, d.previous, d.total, d.prefixes = shared, d.previous[:0], 0, deltaReader{}
	if shared {
		if d.prefixes, err = newDeltaReader(src, n); err != nil {
			return err
		}
		if src, err = d.prefixes.sectionEnd(); err != nil {
			return err
		}
	}
	if d.lengths, err = newDeltaReader(src, n); err != nil {
		return err
	}
	d.data, err = d.lengths.sectionEnd()
	return err
}

// eachValue calls fn for n values, one after another. head is what a value shares with the value before, tail is the
// rest. size is the length that every value must have, or negative.
func (d *deltaByteReader) eachValue(n, size int, fn func(head, tail []byte) error) error {
	for n > 0 {
		k := min(n, deltaBatch)
		if err := d.lengths.read(d.length[:k]); err != nil {
			return err
		}
		if d.shared {
			if err := d.prefixes.read(d.prefix[:k]); err != nil {
				return err
			}
		}
		for i, length := range d.length[:k] {
			if length < 0 || length > int64(len(d.data)) {
				return format.Corrupt("byte array of %d bytes, the page has %d left", length, len(d.data))
			}
			tail := d.data[:length]
			d.data = d.data[length:]
			var head []byte
			if d.shared {
				p := d.prefix[i]
				if p < 0 || p > int64(len(d.previous)) {
					return format.Corrupt("byte array that has %d bytes in common with one of %d", p, len(d.previous))
				}
				head = d.previous[:p]
			}
			if size >= 0 && len(head)+len(tail) != size {
				return format.Corrupt("byte array of %d bytes in a column of %d", len(head)+len(tail), size)
			}
			if d.total += len(head) + len(tail); d.total > maxDeltaBytes {
				return fmt.Errorf("%w: byte arrays of one page that pass %d bytes together", format.ErrLimit,
					maxDeltaBytes)
			}
			if err := fn(head, tail); err != nil {
				return err
			}
			if d.shared {
				d.previous = append(head, tail...)
			}
		}
		n -= k
	}
	return nil
}

// arrayLength returns the length that every byte array of the column has, or -1.
func arrayLength(ct *format.ColumnType) int {
	if ct.Physical == format.FixedLenByteArray {
		return int(ct.TypeLength)
	}
	return -1
}

// appendDeltaBytes decodes n byte arrays to the end of b.
func (v *valueReader) appendDeltaBytes(b *Block, n, limit int) error {
	return v.arrays.eachValue(n, arrayLength(&v.columnType), func(head, tail []byte) error {
		if len(head)+len(tail) > limit-len(b.Data) {
			return blockDataError(limit)
		}
		b.Data = append(append(b.Data, head...), tail...)
		b.Offsets = append(b.Offsets, uint32(len(b.Data)))
		return nil
	})
}
