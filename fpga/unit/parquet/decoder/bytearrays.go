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

const (
	alikeBytes = 8  // byte arrays whose lengths are compared at once
	unlikeRun  = 16 // byte arrays that are read one by one after a comparison that failed
)

// byteArraySize returns the length of the PLAIN byte array at the beginning of src.
func byteArraySize(src []byte) (int, error) {
	if len(src) < 4 {
		return 0, valuesEndError()
	}
	size := binary.LittleEndian.Uint32(src)
	if int64(size) > int64(len(src)-4) {
		return 0, format.Corrupt("byte array of %d bytes, the page has %d left", size, len(src)-4)
	}
	return int(size), nil
}

// alike returns how many of the next n byte arrays have size bytes, as a multiple of alikeBytes. While lengths are
// equal, they lie apart by a known distance and need not be read one after the other.
func alike(src []byte, size, n int) (count int) {
	step := 4 + size
	n = min(n, len(src)/step)
	if size == 8 { // such as Criteo's categories, of eight hexadecimal digits
		for src = src[:12*n]; len(src) >= 96; src = src[96:] {
			group := (*[96]byte)(src)
			differ := uint32(0)
			differ |= binary.LittleEndian.Uint32(group[0:]) ^ 8
			differ |= binary.LittleEndian.Uint32(group[12:]) ^ 8
			differ |= binary.LittleEndian.Uint32(group[24:]) ^ 8
			differ |= binary.LittleEndian.Uint32(group[36:]) ^ 8
			differ |= binary.LittleEndian.Uint32(group[48:]) ^ 8
			differ |= binary.LittleEndian.Uint32(group[60:]) ^ 8
			differ |= binary.LittleEndian.Uint32(group[72:]) ^ 8
			differ |= binary.LittleEndian.Uint32(group[84:]) ^ 8
			if differ != 0 {
				break
			}
			count += alikeBytes
		}
		return count
	}
	for ; count+alikeBytes <= n; count += alikeBytes {
		group := src[count*step:][:alikeBytes*step]
		differ := uint32(0)
		for at := 0; at < alikeBytes*step; at += step {
			differ |= binary.LittleEndian.Uint32(group[at:]) ^ uint32(size)
		}
		if differ != 0 {
			break
		}
	}
	return count
}

// skipByteArrays returns src after n PLAIN byte arrays.
func skipByteArrays(src []byte, n int) ([]byte, error) {
	alone := 0 // byte arrays to read one by one before the next comparison
	for n > 0 {
		size, err := byteArraySize(src)
		if err != nil {
			return nil, err
		}
		count := 1
		if alone--; alone < 0 {
			count, alone = max(alike(src, size, n), 1), unlikeRun
		}
		src = src[count*(4+size):]
		n -= count
	}
	return src, nil
}

// appendPlainBytes decodes n PLAIN byte arrays to the end of b.
func (v *valueReader) appendPlainBytes(b *Block, n, limit int) error {
	if 4*n > len(v.src) {
		return valuesEndError()
	}
	at := len(b.Offsets)
	b.Offsets = growSlice(b.Offsets, n)
	offsets, data, src := b.Offsets[at:], b.Data, v.src
	alone := 0 // byte arrays to read one by one before the next comparison
	for len(offsets) > 0 {
		size, err := byteArraySize(src)
		if err != nil {
			return err
		}
		if size > limit-len(data) {
			return blockDataError(limit)
		}
		if alone--; alone < 0 {
			alone = unlikeRun
			room := len(offsets)
			if size > 0 {
				room = min(room, (limit-len(data))/size)
			}
			if count := alike(src, size, room); count > 0 {
				data = appendAlike(data, offsets[:count], src, size)
				src, offsets = src[count*(4+size):], offsets[count:]
				continue
			}
		}
		data = append(data, src[4:4+size]...)
		src = src[4+size:]
		offsets[0] = uint32(len(data))
		offsets = offsets[1:]
	}
	b.Data, v.src = data, src
	return nil
}

// appendAlike appends byte arrays of size bytes each, and where each of them ends. Their number is a multiple of
// alikeBytes.
func appendAlike(data []byte, offsets []uint32, src []byte, size int) []byte {
	from := len(data)
	data = growSlice(data, len(offsets)*size)
	to := data[from:]
	if size == 8 {
		for end := uint32(from); len(to) > 0; to, src, offsets = to[64:], src[96:], offsets[alikeBytes:] {
			into, group, ends := (*[64]byte)(to), (*[96]byte)(src), (*[alikeBytes]uint32)(offsets)
			for i := range alikeBytes {
				binary.LittleEndian.PutUint64(into[8*i:], binary.LittleEndian.Uint64(group[12*i+4:]))
				end += 8
				ends[i] = end
			}
		}
		return data
	}
	for i := range offsets {
		copy(to[i*size:(i+1)*size], src[i*(4+size)+4:])
		offsets[i] = uint32(from + (i+1)*size)
	}
	return data
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
