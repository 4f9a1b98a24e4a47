package parquettest

import (
	"encoding/binary"
	"math"
	"math/rand"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// hybrid writes values in runs of random kinds and lengths.
func (c *Column) hybrid(r *rand.Rand, values []uint32, width int) []byte {
	var b []byte
	if c.PlainRuns {
		return PlainRuns(values, width)
	}
	for len(values) > 0 {
		same := 1
		for same < len(values) && values[same] == values[0] {
			same++
		}
		if same >= 8 && r.Intn(8) > 0 || r.Intn(3) == 0 {
			n := 1 + r.Intn(same)
			b = binary.AppendUvarint(b, uint64(n)<<1)
			for i := range (width + 7) / 8 {
				b = append(b, byte(values[0]>>(8*i)))
			}
			values = values[n:]
			continue
		}
		groups := 1 + r.Intn(min(70, (len(values)+7)/8))
		b = binary.AppendUvarint(b, uint64(groups)<<1|1)
		b = append(b, packBits(values[:min(len(values), 8*groups)], width, 8*groups)...)
		values = values[min(len(values), 8*groups):]
		if r.Intn(20) == 0 {
			b = append(b, 0) // a run of nothing
			b = append(b, make([]byte, (width+7)/8)...)
		}
	}
	return b
}

// PlainRuns writes a run of one value where at least 8 are the same, and packed runs of up to 504 values between, as
// parquet-mr and parquet-cpp do.
func PlainRuns(values []uint32, width int) []byte {
	var b []byte
	same := func(v []uint32) int {
		n := 1
		for n < len(v) && v[n] == v[0] {
			n++
		}
		return n
	}
	for len(values) > 0 {
		if n := same(values); n >= 8 {
			b = binary.AppendUvarint(b, uint64(n)<<1)
			for i := range (width + 7) / 8 {
				b = append(b, byte(values[0]>>(8*i)))
			}
			values = values[n:]
			continue
		}
		n := 8
		for n < len(values) && n < 504 && same(values[n:]) < 8 {
			n += 8
		}
		b = binary.AppendUvarint(b, uint64(n/8)<<1|1)
		b = append(b, packBits(values[:min(n, len(values))], width, n)...)
		values = values[min(n, len(values)):]
	}
	return b
}

// packBits packs values of width bits, n with those behind the last.
func packBits(values []uint32, width, n int) []byte {
	b := make([]byte, (n*width+7)/8)
	for i, v := range values {
		for k := range width {
			if v>>k&1 != 0 {
				b[(i*width+k)/8] |= 1 << ((i*width + k) % 8)
			}
		}
	}
	return b
}

// packBitsMSB packs values most significant bit first, as BIT_PACKED does.
func packBitsMSB(values []uint32, width int) []byte {
	b := make([]byte, (len(values)*width+7)/8)
	for i, v := range values {
		for k := range width {
			if v>>(width-1-k)&1 != 0 {
				b[(i*width+k)/8] |= 0x80 >> ((i*width + k) % 8)
			}
		}
	}
	return b
}

// plainValue appends a value in PLAIN.
func (c *Column) plainValue(b []byte, v any) []byte {
	switch c.Physical {
	case format.Int32:
		return binary.LittleEndian.AppendUint32(b, uint32(v.(int64)))
	case format.Int64:
		return binary.LittleEndian.AppendUint64(b, uint64(v.(int64)))
	case format.Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v.(float32)))
	case format.Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.(float64)))
	case format.ByteArray:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v.([]byte))))
	}
	return append(b, v.([]byte)...)
}

// Plain writes values in PLAIN.
func (c *Column) Plain(values []any) []byte {
	var b []byte
	if c.Physical == format.Boolean {
		var bits []uint32
		for _, v := range values {
			bits = append(bits, uint32(v.(int64)))
		}
		return packBits(bits, 1, len(bits))
	}
	for _, v := range values {
		b = c.plainValue(b, v)
	}
	return b
}

// plainKey is a value in PLAIN, as a key of the dictionary.
func (c *Column) plainKey(v any) []byte {
	if c.Physical == format.Boolean {
		return []byte{byte(v.(int64))}
	}
	return c.plainValue(nil, v)
}

// body writes a page's values.
func (c *Column) body(r *rand.Rand, values []any, indices []uint32, entries int) []byte {
	switch {
	case c.Encoding.IsDictionary():
		width := 0
		for 1<<width < entries {
			width++
		}
		width = min(32, width+r.Intn(3)*r.Intn(10)) // wider than needed now and then
		return append([]byte{byte(width)}, c.hybrid(r, indices, width)...)
	case c.Encoding == format.RLE:
		var bits []uint32
		for _, v := range values {
			bits = append(bits, uint32(v.(int64)))
		}
		b := c.hybrid(r, bits, 1)
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	if c.Encoding >= format.DeltaBinaryPacked && c.Encoding <= format.DeltaByteArray ||
		c.Encoding == format.ByteStreamSplit {
		return c.deltaBody(r, values)
	}
	return c.Plain(values)
}
