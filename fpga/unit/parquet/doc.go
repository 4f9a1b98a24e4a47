// Package parquet has no code. Its documentation describes how the three packages below it divide the reading of
// Parquet.
//
//   - format is what a host reads: footer, schema, page headers, page indexes, with the types that the other two share.
//   - decoder is the drive's unit: it turns pages into blocks of values, fast, in memory that its caller owns.
//   - reference decodes the same chunks value by value. It is the definition that the decoder is tested against.
//
// Decoder and reference import format, and neither imports the other: they share types, page headers and limits, and
// no code that turns bytes into values. internal/house checks that.
//
// # The way of a value
//
// A host reads the footer (format.ReadFooter) and learns, for every leaf column, its type (Leaf, ColumnType) and where
// each row group keeps its chunk (Chunk). The engine holds windows of chunks in the drive's memory and walks them one
// page at a time:
//
//	h, n, err := format.ParsePageHeader(window)          // ErrMoreInput: move more of the chunk, try again
//	page, err := decoder.Unpack(scratch, &h, window[n:n+int(h.Compressed)], &ct)
//	// h.Type == DictionaryPage: DecodeDictionary once, OpenDictionary for every slice
//	err = d.Reset(&ct, &h, page, dictionary)
//	for d.Rows() > 0 { n, err := d.Next(&block, 1024) ... }
//
// reference.ReadColumn gives the rows of a whole chunk, by the specification's text.
//
// The format is apache/parquet-format (Thrift definitions, Encodings.md, Compression.md); the packages follow version
// 2.11 of that specification. They assume a little-endian machine, as every target of this project is.
package parquet
