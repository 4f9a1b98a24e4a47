// Package snappy is the drive's decompression of pages that Snappy packed.
//
// # Overview
//
// A Snappy block is a sequence of elements: a literal of some bytes, or a copy of bytes that were written before.
// An element of a page of numbers is 3 to 13 bytes long, and a processor guesses the kind of nearly every third
// copy wrong if a decoder branches by it. Decode branches at none of the usual ones. It computes for every byte of
// the next 2 KiB, a vector at a time, how much an element would take that began there, and with AVX-512 also how
// much that element and the next one would take. Then it walks along these sizes, two elements a turn: the only
// value that a turn waits for is one byte of the turn before. A table by tag turns both kinds of elements into a
// copy of 16 bytes. With AVX2, and on processors whose AVX-512 cannot permute bytes, a turn takes one element.
//
// Copies that overlap themselves, literals of more than 60 bytes, and the last bytes of a block are decoded in Go.
// A block with an error in it is decoded again by github.com/klauspost/compress, whose verdict Decode returns; it
// decodes all blocks on processors without AVX2. So Decode accepts and refuses what the library does.
//
// # Concurrency
//
// Everything may be called by any goroutine.
//
// # Errors
//
// Decode returns the library's errors.
//
// # Debugging
//
// MILLRACE_CPU=generic takes the library for every block.
package snappy
