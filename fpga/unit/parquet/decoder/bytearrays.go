package decoder

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// appendBytes decodes n byte arrays to the end of b.
func (v *valueReader) appendBytes(b *Block, n int) error {
	if len(b.Offsets) == 0 {
		b.Offsets = append(b.Offsets, 0)
	}
	limit := b.maxData()
	switch v.source {
	case fromDict:
		return v.appendDictionaryBytes(b, n, limit)
	case fromBytes:
		return v.appendPlainBytes(b, n, limit)
	case fromArrays:
		return v.appendDeltaBytes(b, n, limit)
	}
	size := int(v.columnType.TypeLength)
	if v.source == fromFixed && n*size > len(v.src) {
		return valuesEndError()
	}
	if n*size > limit-len(b.Data) {
		return blockDataError(limit)
	}
	at := len(b.Offsets)
	end := uint32(len(b.Data))
	b.Offsets = growSlice(b.Offsets, n)
	for i := range b.Offsets[at:] {
		end += uint32(size)
		b.Offsets[at+i] = end
	}
	if v.source == fromSplit {
		from := len(b.Data)
		b.Data = growSlice(b.Data, n*size)
		return v.split.readBytes(b.Data[from:], n, size)
	}
	b.Data = append(b.Data, v.src[:n*size]...)
	v.src = v.src[n*size:]
	return nil
}

// appendPlainBytes decodes n PLAIN byte arrays to the end of b.
func (v *valueReader) appendPlainBytes(b *Block, n, limit int) error {
	if 4*n > len(v.src) {
		return valuesEndError()
	}
	at := len(b.Offsets)
	b.Offsets = growSlice(b.Offsets, n)
	offsets, data, src := b.Offsets[at:], b.Data, v.src
	for i := range offsets {
		if len(src) < 4 {
			return valuesEndError()
		}
		size := int(binary.LittleEndian.Uint32(src))
		if size > len(src)-4 {
			return format.Corrupt("byte array of %d bytes, the page has %d left", size, len(src)-4)
		}
		if size > limit-len(data) {
			return blockDataError(limit)
		}
		data = append(data, src[4:4+size]...)
		src = src[4+size:]
		offsets[i] = uint32(len(data))
	}
	b.Data, v.src = data, src
	return nil
}

// appendDictionaryBytes decodes n byte arrays of the dictionary to the end of b.
func (v *valueReader) appendDictionaryBytes(b *Block, n, limit int) error {
	for n > 0 {
		idx, repeat, err := v.nextIndices(n)
		if err != nil {
			return err
		}
		for range repeat {
			if err := b.appendEntry(v.dict, v.runs.value, limit); err != nil {
				return err
			}
		}
		for _, x := range idx {
			if err := b.appendEntry(v.dict, x, limit); err != nil {
				return err
			}
		}
		n -= repeat + len(idx)
	}
	return nil
}

// appendEntry appends value x of a dictionary. It checks the dictionary's offsets again, because the dictionary's
// memory may be shared.
func (b *Block) appendEntry(d *Dictionary, x uint32, limit int) error {
	if int64(x) >= int64(d.count) {
		return indexError(x, d.count)
	}
	from, to := d.offsets[x], d.offsets[x+1]
	if from > to || int64(to) > int64(len(d.data)) {
		return format.Corrupt("dictionary's offsets changed under the decoder")
	}
	return b.appendBytes(d.data[from:to], limit)
}

func (b *Block) appendBytes(p []byte, limit int) error {
	if len(p) > limit-len(b.Data) {
		return blockDataError(limit)
	}
	b.Data = append(b.Data, p...)
	b.Offsets = append(b.Offsets, uint32(len(b.Data)))
	return nil
}

func blockDataError(limit int) error {
	return fmt.Errorf("%w: bytes of a block would pass %d", format.ErrLimit, limit)
}
