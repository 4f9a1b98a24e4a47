// Package parquet is the drive's Parquet unit: it reads footers, page headers and pages of files that it has no
// reason to trust, and hands out the values of one leaf column at a time in plain slices.
//
// # The way of a value
//
// A host reads the footer (ReadFooter) and learns, for every leaf column, its type (Leaf, ColumnType) and where
// each row group keeps its chunk (Chunk). The engine holds windows of chunks in the drive's memory and walks them
// a page at a time:
//
//	h, n, err := parquet.ParsePageHeader(window)          // ErrMoreInput: move more of the chunk, try again
//	page, err := parquet.Unpack(scratch, &h, window[n:n+int(h.Compressed)], &ct)
//	// h.Type == DictionaryPage: DecodeDictionary once, OpenDictionary for every slice
//	err = decoder.Reset(&ct, &h, page, dict)
//	for decoder.Rows() > 0 { n, err := decoder.Next(&block, 1024) ... }
//
// ChunkReader is that loop over a whole chunk in memory, with the checks that only a whole chunk allows (the pages'
// counts against the footer's). ReadColumnReference is an independent, value by value decoder that shares only
// types and metadata with the kernel; tests hold the two against each other and against other libraries.
//
// # What is read
//
// Data pages v1 and v2 and dictionary pages; PLAIN, RLE (levels and booleans), RLE_DICTIONARY, PLAIN_DICTIONARY,
// BIT_PACKED (levels of v1 pages), DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT;
// boolean, int32, int64, float, double, byte array and fixed-length byte array; required and optional columns, also
// inside plain groups, lists one level deep, and maps of numbers to numbers, to lists or to scored lists (Map), of which
// each leaf is read by itself; UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD, LZ4_RAW and LZ4, with and
// without Hadoop's frames. Whatever else a column uses is refused by name (UnsupportedError) and for that column alone:
// Leaf.Unsupported and Chunk.Unsupported say so before a byte of it is read.
//
// Values come out as int64 (integers, booleans as 0 and 1; INT(w, unsigned) zero-extended, others sign-extended),
// float32, float64 or bytes. Decimals, float16, timestamps and the like are their physical values.
//
// # Bounds
//
// No allocation follows an unchecked number: counts in Thrift never exceed the bytes left, nesting is bounded,
// decompression ends at the size that the page header promised and at the destination's end, and a Block grows only
// as values are decoded and only up to its MaxValues and MaxData. Page and dictionary bytes are checked where they
// are used, so bytes that change under the decoder give wrong values or errors, never a fault.
//
// # Concurrency
//
// Functions may be called at once from any number of goroutines. A Decoder, Block or ChunkReader belongs to one
// goroutine at a time. A Dictionary is read-only and may be shared.
//
// # Errors
//
// ErrCorrupt, ErrCRC, ErrUnsupported, ErrMoreInput, ErrTooSmall and ErrLimit are matched by errors.Is. PageError
// says which row group, column and page; callers that walk pages themselves fill one in.
//
// # Debugging
//
// Types, encodings, codecs and page types print by their names in the Parquet specification. A page that fails can
// be looked at alone: ParsePageHeader on its bytes tells what it promises, and ReadColumnReference on its file tells
// whether the kernel or the file is at fault.
//
// The format is apache/parquet-format (Thrift definitions, Encodings.md, Compression.md); the package follows
// version 2.11 of that specification. It assumes a little-endian machine, as every target of this project is.
package parquet
