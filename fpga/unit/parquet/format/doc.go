// Package format reads the descriptions of the values of a Parquet file: the footer with its schema and column
// chunks, page headers, and offset indexes. It has no reason to trust the file. The types are shared with the
// packages decoder and reference, which read the values.
//
// # What is read
//
// Data pages v1 and v2 and dictionary pages; PLAIN, RLE (levels and booleans), RLE_DICTIONARY, PLAIN_DICTIONARY,
// BIT_PACKED (levels of v1 pages), DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and
// BYTE_STREAM_SPLIT; boolean, int32, int64, float, double, byte array and fixed-length byte array; required and
// optional columns, also inside plain groups, lists, and maps of numbers or text to values, to lists or to scored lists
// (Map), of which each leaf is read by itself; lists in lists, and maps in lists, as one list of all their values;
// UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD, LZ4_RAW and LZ4, with and without Hadoop's frames of one block or more.
// Every other feature of a column is refused by name (UnsupportedError) and for that column alone: Leaf.Unsupported and
// Chunk.Unsupported say so before a byte of it is read.
//
// Pages that hold no values are skipped unread: data pages of 0 values, index pages, and pages of types that later
// versions of the specification may add.
//
// # Bounds
//
// No allocation follows an unchecked number: counts in Thrift never exceed the bytes left, nesting is bounded, and
// every chunk lies inside its file. Pages can still contradict the footer: the packages that read them compare.
//
// A footer has at most 256 MiB, and its schema at most 1,048,576 elements. To read it allocates at most about 1 KB an
// element, and 16 times the bytes of the column chunks (TestMemoryOfFooters).
//
// # Concurrency
//
// Functions may be called at once from any number of goroutines. A File is read-only once ReadFooter has returned it.
//
// # Errors
//
// ErrCorrupt, ErrCRC, ErrUnsupported, ErrMoreInput, ErrTooSmall and ErrLimit are matched by errors.Is, here and in the
// packages decoder and reference. PageError names the row group, column and page; callers that walk pages themselves
// fill one in.
//
// # Debugging
//
// Types, encodings, codecs and page types print by their names in the Parquet specification. ParsePageHeader on the
// first bytes of a page shows the sizes and the encoding that the page promises.
package format
