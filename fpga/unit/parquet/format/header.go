package format

import (
	"errors"
	"fmt"
)

// PageHeader is the header before a page. All numbers are checked on parsing: none is negative, and a v2 page's
// levels lie inside the page.
type PageHeader struct {
	Type         PageType
	Uncompressed int32 // bytes of the page unpacked, levels included
	Compressed   int32 // bytes of the page as it lies after the header
	NumValues    int32 // data pages: levels; dictionary page: values
	Encoding     Encoding
	HasCRC       bool
	CRC          uint32 // CRC is that of the page as it lies.

	// DefEncoding and RepEncoding are of a v1 data page: RLE or BIT_PACKED.
	DefEncoding, RepEncoding Encoding

	// The rest is of a v2 data page.
	NumNulls, NumRows  int32
	DefBytes, RepBytes int32 // Levels are never compressed.
	IsCompressed       bool  // the values are in the chunk's codec
}

// MaxPageHeader bounds a page header, whose statistics may repeat the page's least and greatest values. 16 MiB is
// what parquet-cpp allows.
const MaxPageHeader = 16 << 20

// These bits name the fields that a header must have.
const (
	hasType = 1 << iota
	hasUncompressed
	hasCompressed
	hasBody
	hasValues
	hasEncoding
	hasDefEncoding
	hasRepEncoding
	hasNulls
	hasRows
	hasDefBytes
	hasRepBytes
)

// ParsePageHeader reads the page header at the start of b and returns it with its length in bytes. ErrMoreInput: b
// ends inside the header, which is at most MaxPageHeader long.
func ParsePageHeader(b []byte) (PageHeader, int, error) {
	whole := len(b) >= MaxPageHeader
	if whole {
		b = b[:MaxPageHeader]
	}
	r := compactReader{src: b}
	var h PageHeader
	seen, body := r.readPageHeader(&h)
	if r.err != nil {
		if whole && errors.Is(r.err, ErrMoreInput) {
			r.err = corrupt("longer than %d bytes", MaxPageHeader)
		}
		return PageHeader{}, 0, fmt.Errorf("page header: %w", r.err)
	}
	if err := h.checkFields(seen, body); err != nil {
		return PageHeader{}, 0, fmt.Errorf("page header: %w", err)
	}
	return h, r.position, nil
}

// readPageHeader reads the structure PageHeader. It returns which required fields it has and which of the bodies.
func (r *compactReader) readPageHeader(h *PageHeader) (seen int, body int32) {
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			h.Type = PageType(enumByte(r.int32Field(t)))
			seen |= hasType
		case 2:
			h.Uncompressed = r.int32Field(t)
			seen |= hasUncompressed
		case 3:
			h.Compressed = r.int32Field(t)
			seen |= hasCompressed
		case 4:
			h.CRC, h.HasCRC = uint32(r.int32Field(t)), true
		case 5, 7, 8:
			if body != 0 {
				r.failCorrupt("page of two types")
				return seen, body
			}
			body = last
			if r.expectType(t, thriftStruct) {
				seen |= hasBody | r.readPageBody(h, last)
			}
		default:
			r.skipField(t)
		}
	}
	return seen, body
}

// readPageBody reads DataPageHeader (field 5), DictionaryPageHeader (7) or DataPageHeaderV2 (8).
func (r *compactReader) readPageBody(h *PageHeader, which int32) (seen int) {
	h.IsCompressed = true
	var last int32
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch {
		case last == 1:
			h.NumValues = r.int32Field(t)
			seen |= hasValues
		case which != 8 && last == 2, which == 8 && last == 4:
			h.Encoding = Encoding(enumByte(r.int32Field(t)))
			seen |= hasEncoding
		case which == 5 && last == 3:
			h.DefEncoding = Encoding(enumByte(r.int32Field(t)))
			seen |= hasDefEncoding
		case which == 5 && last == 4:
			h.RepEncoding = Encoding(enumByte(r.int32Field(t)))
			seen |= hasRepEncoding
		case which == 8 && last == 2:
			h.NumNulls = r.int32Field(t)
			seen |= hasNulls
		case which == 8 && last == 3:
			h.NumRows = r.int32Field(t)
			seen |= hasRows
		case which == 8 && last == 5:
			h.DefBytes = r.int32Field(t)
			seen |= hasDefBytes
		case which == 8 && last == 6:
			h.RepBytes = r.int32Field(t)
			seen |= hasRepBytes
		case which == 8 && last == 7:
			h.IsCompressed = r.boolField(t)
		default:
			r.skipField(t)
		}
	}
	return seen
}

// checkFields checks that the header has the fields of its page type, and that its numbers do not contradict each
// other.
func (h *PageHeader) checkFields(seen int, body int32) error {
	need, wantBody := hasType|hasUncompressed|hasCompressed, int32(0)
	switch h.Type {
	case DataPage:
		need, wantBody = need|hasBody|hasValues|hasEncoding|hasDefEncoding|hasRepEncoding, 5
	case DictionaryPage:
		need, wantBody = need|hasBody|hasValues|hasEncoding, 7
	case DataPageV2:
		need, wantBody = need|hasBody|hasValues|hasEncoding|hasNulls|hasRows|hasDefBytes|hasRepBytes, 8
	}
	if seen&need != need {
		return corrupt("a required field is missing")
	}
	if h.Uncompressed < 0 || h.Compressed < 0 {
		return corrupt("negative page size (%d unpacked, %d packed)", h.Uncompressed, h.Compressed)
	}
	if wantBody != 0 && body != wantBody {
		return corrupt("%v with the header of another page type", h.Type)
	}
	if h.NumValues < 0 || h.NumNulls < 0 || h.NumRows < 0 || h.DefBytes < 0 || h.RepBytes < 0 {
		return corrupt("negative count")
	}
	if h.Type == DataPageV2 {
		levels := int64(h.DefBytes) + int64(h.RepBytes)
		if levels > int64(h.Uncompressed) || levels > int64(h.Compressed) {
			return corrupt("%d bytes of levels in a page of %d (%d packed)", levels, h.Uncompressed, h.Compressed)
		}
		if h.NumNulls > h.NumValues || h.NumRows > h.NumValues {
			return corrupt("%d nulls and %d rows in %d values", h.NumNulls, h.NumRows, h.NumValues)
		}
	}
	return nil
}

// HoldsRows reports whether the page is a data page.
func (h *PageHeader) HoldsRows() bool { return h.Type == DataPage || h.Type == DataPageV2 }

// CheckCRC returns an error that wraps ErrCRC unless sum, the checksum of the page's bytes, is the header's.
func (h *PageHeader) CheckCRC(sum uint32) error {
	if h.HasCRC && sum != h.CRC {
		return fmt.Errorf("%w: header says %08x, page has %08x: %s", ErrCRC, h.CRC, sum, ErrCorrupt.Error())
	}
	return nil
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

// CheckSizes guards against headers that did not come from ParsePageHeader.
func (h *PageHeader) CheckSizes() error {
	if h.Compressed < 0 || h.Uncompressed < 0 || h.NumValues < 0 || h.DefBytes < 0 || h.RepBytes < 0 {
		return corrupt("page header with a negative number")
	}
	if h.Type == DataPageV2 && int64(h.DefBytes)+int64(h.RepBytes) > min(int64(h.Compressed), int64(h.Uncompressed)) {
		return corrupt("levels longer than their page")
	}
	return nil
}
