package parquettest

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// gzipWriter and zstdEncoder are made once: to make one costs more than a test's pages. Tests that use them do not run
// in parallel.
var gzipWriter = sync.OnceValue(func() *gzip.Writer { return gzip.NewWriter(nil) })

// zstdEncoder is made once, as gzipWriter is.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	return w
})

// Compress compresses b.
func Compress(b []byte, c format.Codec) []byte {
	switch c {
	case format.Snappy:
		return snappy.Encode(nil, b)
	case format.Gzip:
		var out bytes.Buffer
		for _, part := range [][]byte{b[:len(b)/2], b[len(b)/2:]} { // two members
			w := gzipWriter()
			w.Reset(&out)
			_, _ = w.Write(part)
			_ = w.Close()
		}
		return out.Bytes()
	case format.Zstd:
		return zstdEncoder().EncodeAll(b, nil)
	case format.LZ4Raw:
		out := make([]byte, lz4.CompressBlockBound(len(b))+16)
		var z lz4.Compressor
		n, err := z.CompressBlock(b, out)
		if err != nil || n == 0 {
			return lz4Literals(b)
		}
		return out[:n]
	case format.LZ4:
		return packLZ4(b)
	case format.Brotli:
		return packBrotli(b)
	}
	return b
}

// lz4Literals is the LZ4 block of bytes that do not compress.
func lz4Literals(b []byte) []byte {
	if len(b) < 15 {
		return append([]byte{byte(len(b)) << 4}, b...)
	}
	out := []byte{0xf0}
	n := len(b) - 15
	for ; n >= 255; n -= 255 {
		out = append(out, 255)
	}
	return append(append(out, byte(n)), b...)
}

// packLZ4 writes two of Hadoop's frames, one of one block and one of two blocks, as far as there are bytes for them.
func packLZ4(b []byte) []byte {
	half, quarter := len(b)/2, len(b)*3/4
	return HadoopFrames([][]byte{b[:half]}, [][]byte{b[half:quarter], b[quarter:]})
}

// HadoopFrames writes frames of Hadoop's LZ4, each of the given blocks. Blocks without bytes, and frames without
// blocks, are left out.
func HadoopFrames(frames ...[][]byte) (out []byte) {
	for _, blocks := range frames {
		size := 0
		var packed []byte
		for _, b := range blocks {
			if len(b) == 0 {
				continue
			}
			block := Compress(b, format.LZ4Raw)
			size += len(b)
			packed = append(binary.BigEndian.AppendUint32(packed, uint32(len(block))), block...)
		}
		if size > 0 {
			out = append(binary.BigEndian.AppendUint32(out, uint32(size)), packed...)
		}
	}
	return out
}

func packBrotli(b []byte) []byte {
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, 1)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}
