package decoder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/millrace/millrace/fpga/unit/checksum"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/snappy"
)

// Unpack checks the page's CRC if it has one and decompresses the page into dst, which must hold h.Uncompressed bytes
// (else *SizeError). payload is the h.Compressed bytes after the header (ErrMoreInput if there are fewer; what
// follows them is not looked at). The result is dst's beginning; where nothing is compressed it is payload itself,
// and dst may be nil. A dictionary page that Snappy could not pack is a part of payload, too.
func Unpack(dst []byte, h *format.PageHeader, payload []byte, ct *format.ColumnType) ([]byte, error) {
	if err := h.CheckSizes(); err != nil {
		return nil, err
	}
	if int64(len(payload)) < int64(h.Compressed) {
		return nil, format.ErrMoreInput
	}
	payload = payload[:h.Compressed]
	if h.HasCRC {
		if err := h.CheckCRC(checksum.Page(payload)); err != nil {
			return nil, err
		}
	}
	if !h.Packed(ct) {
		if h.Compressed != h.Uncompressed {
			return nil, format.Corrupt("page is not compressed and has %d bytes, header says %d", h.Compressed,
				h.Uncompressed)
		}
		return payload, nil
	}
	if int64(h.Uncompressed) > int64(len(dst)) {
		return nil, &format.SizeError{What: "unpacked page", Need: int64(h.Uncompressed), Have: int64(len(dst))}
	}
	if ct.Codec == format.Snappy && h.Type == format.DictionaryPage {
		if page, ok := snappy.Literal(payload); ok && len(page) == int(h.Uncompressed) {
			return page, nil
		}
	}
	dst = dst[:h.Uncompressed:h.Uncompressed]
	levels := 0
	if h.Type == format.DataPageV2 {
		levels = int(h.RepBytes) + int(h.DefBytes)
		copy(dst, payload[:levels])
	}
	if err := decompress(dst[levels:], payload[levels:], ct.Codec); err != nil {
		return nil, err
	}
	return dst, nil
}

// decompress fills dst, no more and no less, from src.
func decompress(dst, src []byte, c format.Codec) error {
	if len(src) == 0 {
		if len(dst) == 0 {
			return nil // a v2 page of nulls, as some writers leave it
		}
		return format.Corrupt("%v: no bytes where %d were promised", c, len(dst))
	}
	var n int
	var err error
	switch c {
	case format.Snappy:
		n, err = snappy.Decode(dst, src)
	case format.Gzip:
		n, err = unpackGzip(dst, src)
	case format.Zstd:
		n, err = unpackZstd(dst, src)
	case format.LZ4Raw:
		n, err = unpackLZ4Block(dst, src)
	case format.LZ4:
		n, err = unpackLZ4(dst, src)
	case format.Brotli:
		n, err = unpackBrotli(dst, src)
	default:
		return &format.UnsupportedError{What: "codec", Name: c.String()}
	}
	if err != nil {
		return format.Corrupt("%v: %v", c, err)
	}
	if n != len(dst) {
		return format.Corrupt("%v: %d bytes where %d were promised", c, n, len(dst))
	}
	return nil
}

// Decompressors are kept between pages: to make their tables costs more than to unpack a page.
var (
	gzipUnpackers sync.Pool
	zstdUnpackers sync.Pool
)

type gzipUnpacker struct {
	src  bytes.Reader
	gz   gzip.Reader
	more [1]byte
}

// unpackGzip reads every member that src has.
func unpackGzip(dst, src []byte) (int, error) {
	g, _ := gzipUnpackers.Get().(*gzipUnpacker)
	if g == nil {
		g = new(gzipUnpacker)
	}
	defer func() {
		g.src.Reset(nil)
		gzipUnpackers.Put(g)
	}()
	g.src.Reset(src)
	n := 0
	for first := true; first || g.src.Len() > 0; first = false {
		if err := g.gz.Reset(&g.src); errors.Is(err, io.EOF) {
			return n, io.ErrUnexpectedEOF // A header that is cut off is not the end.
		} else if err != nil {
			return n, err
		}
		g.gz.Multistream(false)
		m, err := io.ReadFull(&g.gz, dst[n:])
		n += m
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF && n < len(dst):
			continue // A member that is cut off leaves no bytes of src, and n is too small.
		case err != nil:
			return n, err
		}
		m, err = io.ReadFull(&g.gz, g.more[:]) // The read also checks the member's checksum.
		if n += m; err != io.EOF {
			return n, err
		}
	}
	return n, nil
}

// unpackLZ4 reads the deprecated codec LZ4: Hadoop's frames, or a bare block as some writers wrote it.
func unpackLZ4(dst, src []byte) (int, error) {
	n := 0
	for rest := src; ; {
		if len(rest) == 0 && n == len(dst) {
			return n, nil
		}
		size, left, ok := unpackHadoopFrame(dst[n:], rest)
		if !ok {
			return unpackLZ4Block(dst, src)
		}
		n, rest = n+size, left
	}
}

// unpackHadoopFrame unpacks a frame of Hadoop's BlockCompressorStream from src to the beginning of dst. A frame is the
// length of its bytes unpacked, and then blocks of LZ4 that unpack to as many bytes, each behind its own length. A
// writer whose buffer is smaller than a frame writes several blocks. The stream may end with a frame of no bytes and no
// block. unpackHadoopFrame returns the number of bytes unpacked and the bytes of src behind the frame.
func unpackHadoopFrame(dst, src []byte) (size int, rest []byte, ok bool) {
	if len(src) < 4 {
		return 0, nil, false
	}
	unpacked, rest := uint64(binary.BigEndian.Uint32(src)), src[4:]
	if unpacked > uint64(len(dst)) {
		return 0, nil, false
	}
	if unpacked == 0 && len(rest) == 0 {
		return 0, nil, true
	}
	dst = dst[:unpacked]
	for {
		if len(rest) < 4 {
			return 0, nil, false
		}
		packed := uint64(binary.BigEndian.Uint32(rest))
		if rest = rest[4:]; packed > uint64(len(rest)) {
			return 0, nil, false
		}
		n, err := unpackLZ4Block(dst[size:], rest[:packed])
		if err != nil || n == 0 && unpacked > 0 {
			return 0, nil, false
		}
		size, rest = size+n, rest[packed:]
		if size == len(dst) {
			return size, rest, true
		}
	}
}

// unpackLZ4Block unpacks a bare block of LZ4. One without values is a token of no literals and no match, and is checked
// here: the library's assembly takes a destination of nil for a large one, and writes to it.
func unpackLZ4Block(dst, src []byte) (int, error) {
	if len(dst) == 0 {
		if len(src) > 1 || len(src) == 1 && src[0] != 0 {
			return 0, lz4.ErrInvalidSourceShortBuffer
		}
		return 0, nil
	}
	return lz4.UncompressBlock(src, dst)
}

var brotliUnpackers sync.Pool

type brotliUnpacker struct {
	src  bytes.Reader
	br   *brotli.Reader
	more [1]byte
}

// unpackBrotli unpacks a page. It keeps a reader only if the reader reached the end of its page: the library's Reset
// keeps unread input, and the next page would begin with it.
func unpackBrotli(dst, src []byte) (int, error) {
	u, _ := brotliUnpackers.Get().(*brotliUnpacker)
	if u == nil {
		u = &brotliUnpacker{br: brotli.NewReader(nil)}
	}
	u.src.Reset(src)
	if err := u.br.Reset(&u.src); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(u.br, dst)
	if err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = nil // The caller refuses a page of too few bytes.
		}
		return n, err
	}
	m, err := io.ReadFull(u.br, u.more[:])
	if err != io.EOF {
		return n + m, err
	}
	u.src.Reset(nil)
	brotliUnpackers.Put(u)
	return n, nil
}

func unpackZstd(dst, src []byte) (int, error) {
	z, _ := zstdUnpackers.Get().(*zstd.Decoder)
	if z == nil {
		var err error
		// DecodeAll keeps its history in the destination and with the cap limit never outgrows it.
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxWindow(format.MaxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return 0, err
		}
	}
	defer zstdUnpackers.Put(z)
	out, err := z.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return 0, err
	}
	if len(out) == len(dst) && len(dst) > 0 && &out[0] != &dst[0] {
		copy(dst, out)
	}
	return len(out), nil
}
