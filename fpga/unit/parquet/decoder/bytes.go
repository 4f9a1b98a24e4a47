package decoder

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// appendBytes decodes n byte arrays onto the end of b.
func (v *values) appendBytes(b *Block, n int) error {
	if len(b.Offsets) == 0 {
		b.Offsets = append(b.Offsets, 0)
	}
	limit := b.maxData()
	switch v.from {
	case fromDict:
		return v.gatherBytes(b, n, limit)
	case fromBytes:
		return v.plainBytes(b, n, limit)
	case fromArrays:
		return v.deltaArrays(b, n, limit)
	}
	size := int(v.ct.TypeLength)
	if v.from == fromFixed && n*size > len(v.src) {
		return errValuesEnd()
	}
	if n*size > limit-len(b.Data) {
		return errData(limit)
	}
	at := len(b.Offsets)
	end := uint32(len(b.Data))
	b.Offsets = extend(b.Offsets, n)
	for i := range b.Offsets[at:] {
		end += uint32(size)
		b.Offsets[at+i] = end
	}
	if v.from == fromSplit {
		from := len(b.Data)
		b.Data = extend(b.Data, n*size)
		return v.split.bytes(b.Data[from:], n, size)
	}
	b.Data = append(b.Data, v.src[:n*size]...)
	v.src = v.src[n*size:]
	return nil
}

// plainBytes decodes n PLAIN byte arrays onto the end of b.
func (v *values) plainBytes(b *Block, n, limit int) error {
	if 4*n > len(v.src) {
		return errValuesEnd()
	}
	at := len(b.Offsets)
	b.Offsets = extend(b.Offsets, n)
	offsets, data, src := b.Offsets[at:], b.Data, v.src
	for i := range offsets {
		if len(src) < 4 {
			return errValuesEnd()
		}
		size := int(binary.LittleEndian.Uint32(src))
		if size > len(src)-4 {
			return format.Corrupt("byte array of %d bytes, the page has %d left", size, len(src)-4)
		}
		if size > limit-len(data) {
			return errData(limit)
		}
		data = append(data, src[4:4+size]...)
		src = src[4+size:]
		offsets[i] = uint32(len(data))
	}
	b.Data, v.src = data, src
	return nil
}

func (v *values) gatherBytes(b *Block, n, limit int) error {
	for n > 0 {
		idx, repeat, err := v.indices(n)
		if err != nil {
			return err
		}
		for range repeat {
			if err := b.appendBytesOf(v.dict, v.runs.value, limit); err != nil {
				return err
			}
		}
		for _, x := range idx {
			if err := b.appendBytesOf(v.dict, x, limit); err != nil {
				return err
			}
		}
		n -= repeat + len(idx)
	}
	return nil
}

// appendBytesOf appends value x of a dictionary, whose offsets are looked at again here because its memory may be shared.
func (b *Block) appendBytesOf(d *Dictionary, x uint32, limit int) error {
	if int64(x) >= int64(d.n) {
		return errIndex(x, d.n)
	}
	from, to := d.off[x], d.off[x+1]
	if from > to || int64(to) > int64(len(d.data)) {
		return format.Corrupt("dictionary's offsets changed under the decoder")
	}
	return b.appendBytes(d.data[from:to], limit)
}

func (b *Block) appendBytes(p []byte, limit int) error {
	if len(p) > limit-len(b.Data) {
		return errData(limit)
	}
	b.Data = append(b.Data, p...)
	b.Offsets = append(b.Offsets, uint32(len(b.Data)))
	return nil
}

func errData(limit int) error {
	return fmt.Errorf("%w: bytes of a block would pass %d", format.ErrLimit, limit)
}
