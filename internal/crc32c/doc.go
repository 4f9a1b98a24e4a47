// Package crc32c computes CRC32C, Castagnoli's checksum, at the speed of memory.
//
// # Overview
//
// The standard library's hash/crc32 takes 8 bytes an instruction. A frame of a mini-batch is summed twice, by the
// node and by the trainer, and the two sums were a quarter of the cost of bringing the frame from the node to the
// trainer. Where the processor multiplies without carries in registers of 512 bits (AVX-512 F and VPCLMULQDQ: Intel
// since 2019, AMD since Zen 4), [Update] takes 256 bytes in eight such products. Elsewhere, for short slices, and for
// the rest at the end of a slice, Update is hash/crc32.
//
// How: a message is a polynomial, its checksum the remainder of a division. 128 bits that lie d bits before others may
// be multiplied by x^d mod P and added to those, and the remainder stays (V. Gopal et al., "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009). When 64 bytes are left the processor's own CRC32
// instruction ends it. The factors are computed in _gen.
//
// The environment variable MILLRACE_CPU, read once, turns the kernel off when it is anything but empty, avx512,
// avx512-products or avx512-shifts, as it does those of the drive's units.
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
// MILLRACE_CPU=generic shows whether a wrong checksum is the kernel's.
package crc32c
