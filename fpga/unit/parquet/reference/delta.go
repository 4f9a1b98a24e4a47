package reference

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"

	"github.com/andybalholm/brotli"
	"github.com/pierrec/lz4/v4"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// decodeDeltaSection decodes up to n values of a DELTA_BINARY_PACKED section (Encodings.md), which has at most most
// values. It returns the bytes behind the last block that these values touch.
func decodeDeltaSection(b []byte, n uint64, most int32) (values []int64, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	number := func() (v uint64) {
		n := 0
		if v, n = binary.Uvarint(b); n <= 0 {
			err = format.Corrupt("delta section ends inside a number")
			return 0
		}
		b = b[n:]
		return v
	}
	signed := func() int64 {
		u := number()
		if u%2 == 1 {
			return -1 - int64(u/2)
		}
		return int64(u / 2)
	}
	block, minis, total, value := number(), number(), number(), signed()
	if err != nil {
		return nil, nil, err
	}
	if total == 0 {
		return nil, b, nil // Without values there are no blocks, and their size does not matter.
	}
	if block == 0 || block%128 != 0 || minis == 0 || block%minis != 0 || block/minis%32 != 0 ||
		block > format.MaxDeltaBlock || total > uint64(most) {
		return nil, nil, format.Corrupt("delta header")
	}
	total = min(total, n)
	if total > 0 {
		values = append(values, value)
	}
	for uint64(len(values)) < total {
		least := signed()
		if err != nil || uint64(len(b)) < minis {
			return nil, nil, format.Corrupt("delta block ends early")
		}
		widths := b[:minis]
		b = b[minis:]
		for _, width := range widths {
			if uint64(len(values)) == total {
				break // miniblocks behind the last value are left out
			}
			size := int(block/minis) / 8 * int(width)
			if width > 64 || size > len(b) {
				return nil, nil, format.Corrupt("miniblock ends early")
			}
			for i := 0; i < int(block/minis) && uint64(len(values)) < total; i++ {
				var d uint64
				for k := range int(width) {
					bit := i*int(width) + k
					d |= uint64(b[bit/8]>>(bit%8)&1) << k
				}
				value += least + int64(d)
				values = append(values, value)
			}
			b = b[size:]
		}
	}
	return values, b, nil
}

// decodeDeltas decodes n DELTA_BINARY_PACKED integers.
func (c *Chunk) decodeDeltas(b []byte, n int, most int32) ([]any, error) {
	values, _, err := decodeDeltaSection(b, uint64(n), most)
	if err != nil {
		return nil, err
	}
	if n > len(values) {
		return nil, format.Corrupt("%d deltas, want %d", len(values), n)
	}
	var out []any
	for _, v := range values[:n] {
		if c.Type.Physical == format.Int32 && c.Type.Unsigned {
			v = int64(uint32(v))
		} else if c.Type.Physical == format.Int32 {
			v = int64(int32(v))
		}
		out = append(out, v)
	}
	return out, nil
}

// decodeByteArrays decodes n byte arrays whose lengths come first. With shared, the numbers of bytes shared with the
// array before come first of all.
func (c *Chunk) decodeByteArrays(b []byte, n int, most int32, shared bool) ([]any, error) {
	var prefixes []int64
	var err error
	if shared {
		if prefixes, b, err = decodeDeltaSection(b, math.MaxUint64, most); err != nil {
			return nil, err
		}
	}
	lengths, b, err := decodeDeltaSection(b, math.MaxUint64, most)
	if err != nil {
		return nil, err
	}
	if n > len(lengths) || (shared && n > len(prefixes)) {
		return nil, format.Corrupt("%d lengths, want %d", len(lengths), n)
	}
	var out []any
	var last []byte
	total := 0
	for i := range n {
		if lengths[i] < 0 || lengths[i] > int64(len(b)) {
			return nil, format.Corrupt("value %d of %d bytes, %d are left", i, lengths[i], len(b))
		}
		var v []byte
		if shared {
			if prefixes[i] < 0 || prefixes[i] > int64(len(last)) {
				return nil, format.Corrupt("value %d has %d bytes in common with %d", i, prefixes[i], len(last))
			}
			v = append(v, last[:prefixes[i]]...)
		}
		v = append(v, b[:lengths[i]]...)
		b = b[lengths[i]:]
		if c.Type.Physical == format.FixedLenByteArray && len(v) != int(c.Type.TypeLength) {
			return nil, format.Corrupt("value %d of %d bytes in a column of %d", i, len(v), c.Type.TypeLength)
		}
		if total += len(v); total > maxPageBytes {
			return nil, &format.SizeError{What: "values of a page", Need: int64(total), Have: maxPageBytes}
		}
		out = append(out, v)
		last = v
	}
	return out, nil
}

// joinStreams decodes BYTE_STREAM_SPLIT: byte k of value i is byte i of stream k. Put back in order the bytes are
// PLAIN.
func (c *Chunk) joinStreams(b []byte, n int) ([]any, error) {
	size := map[format.Type]int{format.Int32: 4, format.Int64: 8, format.Float: 4, format.Double: 8,
		format.FixedLenByteArray: int(c.Type.TypeLength)}[c.Type.Physical]
	if size == 0 || len(b)%size != 0 {
		return nil, format.Corrupt("%d bytes of split values", len(b))
	}
	plain := make([]byte, len(b))
	streams := len(b) / size
	for i := range plain {
		plain[i] = b[i%size*streams+i/size]
	}
	return c.decodePlain(plain, n)
}

// unpackLZ4 reads Hadoop's frames, or a bare block where there are none.
func unpackLZ4(b []byte, want int) ([]byte, error) {
	if out, err := joinFrames(b, want); err == nil {
		return out, nil
	}
	return unpackLZ4Block(b, want)
}

// joinFrames reads Hadoop's frames: a length, and blocks, each behind its own length, that together unpack to that many
// bytes.
func joinFrames(b []byte, want int) (out []byte, err error) {
	length := func() (n int) {
		if len(b) < 4 {
			err = format.Corrupt("frame ends inside a length")
			return 0
		}
		n, b = int(binary.BigEndian.Uint32(b)), b[4:]
		return n
	}
	for len(b) > 0 && err == nil {
		frame := length()
		if frame > want-len(out) {
			return nil, format.Corrupt("frame of %d bytes", frame)
		}
		end := len(out) + frame
		if frame == 0 && len(b) == 0 {
			break // The stream ends.
		}
		for again := true; again && err == nil; again = len(out) < end {
			packed := length()
			if packed > len(b) {
				return nil, format.Corrupt("block of %d bytes, %d are left", packed, len(b))
			}
			block, blockErr := unpackLZ4Block(b[:packed], end-len(out))
			if blockErr != nil || len(block) == 0 && frame > 0 {
				return nil, format.Corrupt("block of a frame: %v", blockErr)
			}
			out, b = append(out, block...), b[packed:]
		}
	}
	if err == nil && len(out) != want {
		err = format.Corrupt("frames of %d bytes", len(out))
	}
	return out, err
}

// unpackLZ4Block unpacks a block of LZ4 to at most most bytes. A block without bytes is empty or a zero. A byte of a
// block unpacks to at most 255 bytes.
func unpackLZ4Block(b []byte, most int) ([]byte, error) {
	if most == 0 && (len(b) == 0 || len(b) == 1 && b[0] == 0) {
		return nil, nil
	}
	if most == 0 {
		return nil, lz4.ErrInvalidSourceShortBuffer
	}
	out := make([]byte, min(most, 256*(len(b)+1)))
	n, err := lz4.UncompressBlock(b, out)
	return out[:max(0, n)], err
}

// unpackGzip reads the members of b, and one byte more than want, so that a longer page is found. A member with a flag
// that RFC 1952 reserves is refused.
func unpackGzip(b []byte, want int) (out []byte, err error) {
	src := bytes.NewReader(b)
	for first := true; first || src.Len() > 0; first = false {
		const flags, known = 3, 0x1f
		if at := len(b) - src.Len() + flags; at < len(b) && b[at]&^known != 0 {
			return nil, gzip.ErrHeader
		}
		gz, err := gzip.NewReader(src)
		if err != nil {
			return nil, err
		}
		gz.Multistream(false)
		member, err := io.ReadAll(io.LimitReader(gz, int64(want-len(out))+1))
		if out = append(out, member...); err != nil || len(out) > want {
			return out, err
		}
	}
	return out, nil
}

// unpackBrotli reads one byte more than want, so that a longer page is found.
func unpackBrotli(b []byte, want int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(b)), int64(want)+1))
}
