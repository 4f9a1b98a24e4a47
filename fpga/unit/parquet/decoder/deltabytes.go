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

// deltaBytes reads DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY: byte arrays whose lengths come first, and which may
// begin as the one before them does.
type deltaBytes struct {
	prefixes delta // DELTA_BYTE_ARRAY: bytes that a value has in common with the one before
	lengths  delta // of what follows them
	data     []byte
	shared   bool   // DELTA_BYTE_ARRAY
	last     []byte // the value before; of DELTA_BYTE_ARRAY
	total    int    // bytes of values so far
	prefix   [deltaBatch]int64
	length   [deltaBatch]int64
}

// reset begins a section of at most n values. last keeps its memory.
func (d *deltaBytes) reset(src []byte, n int, shared bool) (err error) {
	d.shared, d.last, d.total, d.prefixes = shared, d.last[:0], 0, delta{}
	if shared {
		if d.prefixes, err = newDelta(src, n); err != nil {
			return err
		}
		if src, err = d.prefixes.rest(); err != nil {
			return err
		}
	}
	if d.lengths, err = newDelta(src, n); err != nil {
		return err
	}
	d.data, err = d.lengths.rest()
	return err
}

// next hands n values, one after another, to fn: what is shared with the value before, as far as fn is concerned whole, and the
// rest. size is the length that every value must have, or negative.
func (d *deltaBytes) next(n, size int, fn func(head, tail []byte) error) error {
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
				if p < 0 || p > int64(len(d.last)) {
					return format.Corrupt("byte array that has %d bytes in common with one of %d", p, len(d.last))
				}
				head = d.last[:p]
			}
			if size >= 0 && len(head)+len(tail) != size {
				return format.Corrupt("byte array of %d bytes in a column of %d", len(head)+len(tail), size)
			}
			if d.total += len(head) + len(tail); d.total > maxDeltaBytes {
				return fmt.Errorf("%w: byte arrays of one page that pass %d bytes together", format.ErrLimit, maxDeltaBytes)
			}
			if err := fn(head, tail); err != nil {
				return err
			}
			if d.shared {
				d.last = append(head, tail...)
			}
		}
		n -= k
	}
	return nil
}

// fixedSize is the length that every byte array of the column has, or -1.
func fixedSize(ct *format.ColumnType) int {
	if ct.Physical == format.FixedLenByteArray {
		return int(ct.TypeLength)
	}
	return -1
}

// deltaArrays decodes n byte arrays onto the end of b.
func (v *values) deltaArrays(b *Block, n, limit int) error {
	return v.arrays.next(n, fixedSize(&v.ct), func(head, tail []byte) error {
		if len(head)+len(tail) > limit-len(b.Data) {
			return errData(limit)
		}
		b.Data = append(append(b.Data, head...), tail...)
		b.Offsets = append(b.Offsets, uint32(len(b.Data)))
		return nil
	})
}
