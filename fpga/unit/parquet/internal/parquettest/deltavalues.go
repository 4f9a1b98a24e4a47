package parquettest

import (
	"encoding/binary"
	"math/bits"
	"math/rand"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// DeltaPacked writes DELTA_BINARY_PACKED with blocks of random sizes. Widths are sometimes larger than needed, and
// those of miniblocks that are left out are random, as the specification allows.
func DeltaPacked(r *rand.Rand, values []int64, narrow bool) []byte {
	minis := 1 << r.Intn(3)
	block := 128 * (1 + r.Intn(2))
	size := block / minis
	b := binary.AppendUvarint(nil, uint64(block))
	b = binary.AppendUvarint(b, uint64(minis))
	b = binary.AppendUvarint(b, uint64(len(values)))
	first := int64(0)
	if len(values) > 0 {
		first = values[0]
	}
	b = binary.AppendVarint(b, first)
	for at := 1; at < len(values); at += block {
		deltas := make([]int64, 0, block)
		least := int64(0)
		for i := at; i < min(at+block, len(values)); i++ {
			d := values[i] - values[i-1]
			if narrow {
				d = int64(int32(d))
			}
			if deltas = append(deltas, d); i == at || d < least {
				least = d
			}
		}
		b = binary.AppendVarint(b, least)
		widths, body := make([]byte, minis), []byte(nil)
		for m := range minis {
			if m*size >= len(deltas) {
				widths[m] = byte(r.Intn(256))
				continue
			}
			part := deltas[m*size : min((m+1)*size, len(deltas))]
			width := 0
			for _, d := range part {
				width = max(width, bits.Len64(uint64(d-least)))
			}
			width = min(64, width+r.Intn(2)*r.Intn(4))
			widths[m] = byte(width)
			packed := make([]byte, size*width/8)
			for i, d := range part {
				for k := range width {
					bit := i*width + k
					packed[bit>>3] |= byte(uint64(d-least)>>k&1) << (bit & 7)
				}
			}
			body = append(body, packed...)
		}
		b = append(append(b, widths...), body...)
	}
	return b
}

// deltaBody writes values in one of the DELTA encodings or BYTE_STREAM_SPLIT.
func (c *Column) deltaBody(r *rand.Rand, values []any) []byte {
	if len(values) == 0 && c.OmitEmptyDeltas {
		return nil
	}
	var ints, prefixes, lengths []int64
	var last, data []byte
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			ints = append(ints, v)
		case []byte:
			p := 0
			for c.Encoding == format.DeltaByteArray && p < min(len(last), len(v)) && last[p] == v[p] {
				p++
			}
			prefixes, lengths = append(prefixes, int64(p)), append(lengths, int64(len(v)-p))
			data, last = append(data, v[p:]...), v
		}
	}
	switch c.Encoding {
	case format.DeltaBinaryPacked:
		if c.Unsigned {
			for i, v := range ints {
				ints[i] = int64(int32(v))
			}
		}
		return DeltaPacked(r, ints, c.Physical == format.Int32)
	case format.DeltaLengthByteArray:
		return append(DeltaPacked(r, lengths, true), data...)
	case format.DeltaByteArray:
		return append(append(DeltaPacked(r, prefixes, true), DeltaPacked(r, lengths, true)...), data...)
	}
	plain := c.Plain(values)
	size := len(plain) / max(1, len(values))
	out := make([]byte, len(plain))
	for i, x := range plain {
		out[i%size*len(values)+i/size] = x
	}
	return out
}

// DeltaEncodings returns the encodings that a type may have beside PLAIN and dictionaries.
func (c *Column) DeltaEncodings() []format.Encoding {
	switch c.Physical {
	case format.Int32, format.Int64:
		return []format.Encoding{format.DeltaBinaryPacked, format.ByteStreamSplit}
	case format.Float, format.Double:
		return []format.Encoding{format.ByteStreamSplit}
	case format.ByteArray:
		return []format.Encoding{format.DeltaLengthByteArray, format.DeltaByteArray}
	case format.FixedLenByteArray:
		return []format.Encoding{format.DeltaByteArray, format.ByteStreamSplit}
	}
	return nil
}
