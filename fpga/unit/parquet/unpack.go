package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/millrace/millrace/fpga/unit/checksum"
)

// CheckCRC returns an error that wraps ErrCRC if a page that sum is the checksum of is not the header's.
func (h *PageHeader) CheckCRC(sum uint32) error {
	if h.HasCRC && sum != h.CRC {
		return fmt.Errorf("%w: header says %08x, page has %08x: %v", ErrCRC, h.CRC, sum, ErrCorrupt)
	}
	return nil
}

// Unpack checks the page's CRC if it has one and decompresses the page into dst, which must hold h.Uncompressed bytes
// (else *SizeError). payload is the h.Compressed bytes after the header (ErrMoreInput if there are fewer; what
// follows them is not looked at). The result is dst's beginning; where nothing is compressed it is payload itself,
// and dst may be nil.
func Unpack(dst []byte, h *PageHeader, payload []byte, ct *ColumnType) ([]byte, error) {
	if err := h.checkSizes(); err != nil {
		return nil, err
	}
	if int64(len(payload)) < int64(h.Compressed) {
		return nil, ErrMoreInput
	}
	payload = payload[:h.Compressed]
	if h.HasCRC {
		if err := h.CheckCRC(checksum.Page(payload)); err != nil {
			return nil, err
		}
	}
	if !h.Packed(ct) {
		if h.Compressed != h.Uncompressed {
			return nil, corrupt("page is not compressed and has %d bytes, header says %d", h.Compressed, h.Uncompressed)
		}
		return payload, nil
	}
	if int64(h.Uncompressed) > int64(len(dst)) {
		return nil, &SizeError{What: "unpacked page", Need: int64(h.Uncompressed), Have: int64(len(dst))}
	}
	dst = dst[:h.Uncompressed:h.Uncompressed]
	levels := 0
	if h.Type == DataPageV2 {
		levels = int(h.RepBytes) + int(h.DefBytes)
		copy(dst, payload[:levels])
	}
	if err := decompress(dst[levels:], payload[levels:], ct.Codec); err != nil {
		return nil, err
	}
	return dst, nil
}

// Packed reports whether a page of a chunk is compressed, so that Unpack needs a destination of Uncompressed bytes.
func (h *PageHeader) Packed(ct *ColumnType) bool {
	return ct.Codec != Uncompressed && (h.Type != DataPageV2 || h.IsCompressed || ct.AlwaysCompressed)
}

// MayContinue reports whether a data page may begin inside a row of the page before it: rows of a list go on over v1
// pages, and over v2 pages of writers that do not count rows. The header of such a page does not say how many rows it
// has.
func (h *PageHeader) MayContinue(ct *ColumnType) bool {
	return ct.List && (h.Type == DataPage || h.Type == DataPageV2 && ct.RowsUncounted)
}

// checkSizes guards against headers that did not come from ParsePageHeader.
func (h *PageHeader) checkSizes() error {
	if h.Compressed < 0 || h.Uncompressed < 0 || h.NumValues < 0 || h.DefBytes < 0 || h.RepBytes < 0 {
		return corrupt("page header with a negative number")
	}
	if h.Type == DataPageV2 && int64(h.DefBytes)+int64(h.RepBytes) > min(int64(h.Compressed), int64(h.Uncompressed)) {
		return corrupt("levels longer than their page")
	}
	return nil
}

// decompress fills dst, no more and no less, from src.
func decompress(dst, src []byte, c Codec) error {
	if len(src) == 0 {
		if len(dst) == 0 {
			return nil // a v2 page of nulls only, as some writers leave it
		}
		return corrupt("%v: no bytes where %d were promised", c, len(dst))
	}
	var n int
	var err error
	switch c {
	case Snappy:
		n, err = unsnappy(dst, src)
	case Gzip:
		n, err = gunzip(dst, src)
	case Zstd:
		n, err = unzstd(dst, src)
	case LZ4Raw:
		n, err = lz4.UncompressBlock(src, dst)
	case LZ4:
		n, err = unlz4(dst, src)
	case Brotli:
		n, err = unbrotli(dst, src)
	default:
		return &UnsupportedError{What: "codec", Name: c.String()}
	}
	if err != nil {
		return corrupt("%v: %v", c, err)
	}
	if n != len(dst) {
		return corrupt("%v: %d bytes where %d were promised", c, n, len(dst))
	}
	return nil
}

func unsnappy(dst, src []byte) (int, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil || n != len(dst) {
		return n, err // never decoded: the block's own promise is wrong
	}
	out, err := snappy.Decode(dst, src)
	return len(out), err
}

// Decompressors are kept between pages: their tables cost more to make than a page to unpack.
var (
	gunzippers sync.Pool
	unzstders  sync.Pool
)

type gunzipper struct {
	src  bytes.Reader
	gz   gzip.Reader
	more [1]byte
}

// gunzip reads every member that src has.
func gunzip(dst, src []byte) (int, error) {
	g, _ := gunzippers.Get().(*gunzipper)
	if g == nil {
		g = new(gunzipper)
	}
	defer func() {
		g.src.Reset(nil)
		gunzippers.Put(g)
	}()
	g.src.Reset(src)
	if err := g.gz.Reset(&g.src); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(&g.gz, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	m, err := io.ReadFull(&g.gz, g.more[:]) // also checks the last member's checksum
	if err == io.EOF {
		err = nil
	}
	return n + m, err
}

// unlz4 reads the deprecated codec LZ4: Hadoop's frames, each an LZ4 block behind its two lengths, or a bare block as
// some writers left it.
func unlz4(dst, src []byte) (int, error) {
	n := 0
	for rest := src; ; {
		if len(rest) == 0 && n == len(dst) {
			return n, nil
		}
		if len(rest) < 8 {
			break
		}
		unpacked, packed := uint64(binary.BigEndian.Uint32(rest)), uint64(binary.BigEndian.Uint32(rest[4:]))
		if rest = rest[8:]; packed > uint64(len(rest)) || unpacked > uint64(len(dst)-n) {
			break
		}
		if m, err := lz4.UncompressBlock(rest[:packed], dst[n:n+int(unpacked)]); err != nil || m != int(unpacked) {
			break
		}
		n, rest = n+int(unpacked), rest[packed:]
	}
	return lz4.UncompressBlock(src, dst)
}

var unbrotliers sync.Pool

type unbrotlier struct {
	src  bytes.Reader
	br   *brotli.Reader
	more [1]byte
}

func unbrotli(dst, src []byte) (int, error) {
	u, _ := unbrotliers.Get().(*unbrotlier)
	if u == nil {
		u = &unbrotlier{br: brotli.NewReader(nil)}
	}
	defer func() {
		u.src.Reset(nil)
		unbrotliers.Put(u)
	}()
	u.src.Reset(src)
	if err := u.br.Reset(&u.src); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(u.br, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	m, err := io.ReadFull(u.br, u.more[:])
	if err == io.EOF {
		err = nil
	}
	return n + m, err
}

// maxZstdWindow bounds how far a frame may look back: what zstd's --ultra and --long=27 use at most.
const maxZstdWindow = 128 << 20

func unzstd(dst, src []byte) (int, error) {
	z, _ := unzstders.Get().(*zstd.Decoder)
	if z == nil {
		var err error
		// DecodeAll keeps its history in the destination and with the cap limit never outgrows it.
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return 0, err
		}
	}
	defer unzstders.Put(z)
	out, err := z.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return 0, err
	}
	if len(out) == len(dst) && len(dst) > 0 && &out[0] != &dst[0] {
		copy(dst, out)
	}
	return len(out), nil
}

// unpackedAtMost is the most bytes that a page of n packed bytes can become in codec c: what its densest code allows. It keeps
// a header from promising memory that its page cannot fill.
func unpackedAtMost(c Codec, n int64) int64 {
	switch c {
	case Snappy:
		return 32*n + 64 // a copy of 64 bytes takes two or three
	case LZ4Raw, LZ4:
		return 255*n + 64 // a length byte adds 255
	case Brotli:
		return (16<<20)*(n/4+1) + 64 // a meta-block of 16 MiB from a few bytes
	case Gzip:
		return 1032*n + 64 // 258 bytes from two bits
	case Zstd:
		return (128<<10)*(n/4+1) + 64 // a block of 128 KiB from four bytes
	}
	return n
}
