// Package decoder is the drive's Parquet unit: it turns the pages of one leaf column into plain slices of values. Page
// headers and column types come from package format.
//
// Unpack decompresses a page into memory of the caller. DecodeDictionary turns a dictionary page into memory that
// OpenDictionary reads for every later slice. A Decoder hands out the rows of a data page, as many as its caller asks
// for, by appending them to a Block.
//
// Values come out as int64 (integers, booleans as 0 and 1; INT(w, unsigned) zero-extended, others sign-extended),
// float32, float64 or bytes. Decimals, float16, timestamps and the like are their physical values.
//
// # Bounds
//
// Decompression ends at the size that the page header promised and at the destination's end. A Block grows only as
// values are decoded, and only up to its MaxValues and MaxData. Page and dictionary bytes are checked where they are
// used, so bytes that change under the decoder give wrong values or errors, never a fault.
//
// # Concurrency
//
// Functions may be called at once from any number of goroutines. A Decoder or a Block belongs to one goroutine
// at a time. A Dictionary is read-only and may be shared.
//
// # Errors
//
// Errors match those of package format with errors.Is. A caller that knows a page's place wraps them in a
// format.PageError.
//
// # Debugging
//
// reference.ReadColumn on a column that fails shows whether the decoder or the file is at fault: the two must agree on
// the rows, and on whether there are any.
package decoder
