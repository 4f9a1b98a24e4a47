// Package checksum is the CRC-32 of Parquet's pages (GZIP's, IEEE 802.3's), at the speed of memory.
//
// # Overview
//
// Page computes the checksum of a page, Update that of a page that comes in pieces. The standard library multiplies
// without carries in registers of 128 bits; where the processor does so in registers of 512 (VPCLMULQDQ beside
// AVX-512: Intel since 2019, AMD since Zen 4), the kernel takes 256 bytes in eight such products. On arm64 the standard
// library takes an instruction for eight bytes, each of which waits for the one before; where the processor multiplies
// without carries (PMULL), the kernel takes 128 bytes in 16 such products. Elsewhere, for short pages, and for the rest
// at the end, it is hash/crc32.
//
// A message is a polynomial and its checksum the remainder of a division. 128 bits that lie d bits before others may be
// multiplied by x^d mod P and added to those, and the remainder stays (V. Gopal and others, "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009). So the kernel makes 16 bytes of many, whose remainder
// a table gives, and hash/crc32 goes on from there.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// There are none.
//
// # Debugging
//
// Reference is the definition, a bit at a time. MILLRACE_CPU=generic, or avx2 on amd64, turns the kernel
// off.
package checksum
