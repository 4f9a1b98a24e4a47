// Package text is the unit that decodes Criteo's rows: tab-separated text, and packed binary.
//
// # Overview
//
// A line of text is 40 fields parted by tabs: a label, 13 dense features in decimal, 26 sparse features in hexadecimal;
// with Options.LabelAbsent the 39 fields of Kaggle's test.txt. The grammar is strict:
//
//	label    -?[0-9]{1,10}, in int32; not empty
//	dense    -?[0-9]{1,10}, in int32; empty is null
//	sparse   [0-9a-fA-F]{1,8}, an unsigned 32-bit id; empty is null
//	line     fields, then LF or CR LF; the last line may go without
//
// One CR before LF is dropped; any other CR, blank, sign or control character makes the cell malformed. A byte order
// mark at offset 0 of the partition is skipped. An empty line is skipped and counted. A line longer than MaxLine is an
// error under every policy.
//
// A binary row is 40 int32, little endian: label, 13 dense, 26 sparse read as unsigned; 160 bytes, no nulls.
//
// A Decoder takes windows of a partition, each from a row boundary, and fills Columns; what a window's end cuts off is
// left for the next window. NewIndex reads a partition once and counts its rows as the Decoder would.
//
// Lines are taken by one of three paths. Vector kernels (AVX2; AVX-512 with permutations of bytes) index and parse
// blocks of lines and stop before any that is odd: a decimal of more than eight characters, an error. A path of plain
// Go takes well-formed lines of any kind, a field after the other, and all of them where there are no kernels. The
// careful path takes the remaining lines, and is the only path that reports errors. Near a window's end, where
// kernels would look past it, lines take the second path, then the third.
//
// # Concurrency
//
// A Decoder belongs to one goroutine at a time. Functions keep no state.
//
// # Errors
//
// A *RowError names line, byte offset and field and wraps ErrFieldCount, ErrDecimal, ErrHex, ErrLabel, ErrLineTooLong
// or ErrPartialRow. Options.Policy is the treatment of malformed rows: Fail, Drop or Null.
//
// # Debugging
//
// Reference decodes a whole partition by the definition, with regular expressions.
package text
