package parquet

// PageHeader is what stands before a page. All numbers are checked on parsing: none is negative, and a v2 page's
// levels lie inside the page.
type PageHeader struct {
	Type         PageType
	Uncompressed int32 // bytes of the page unpacked, levels included
	Compressed   int32 // bytes of the page as it lies after the header
	NumValues    int32 // data pages: levels; dictionary page: values
	Encoding     Encoding
	HasCRC       bool
	CRC          uint32 // of the page as it lies

	// DefEncoding and RepEncoding are of a v1 data page: RLE or BIT_PACKED.
	DefEncoding, RepEncoding Encoding

	// The rest is of a v2 data page.
	NumNulls, NumRows  int32
	DefBytes, RepBytes int32 // of the levels, which are never compressed
	IsCompressed       bool  // the values are in the chunk's codec
}
