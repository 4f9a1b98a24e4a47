// Package quantity reads the numbers that people type: sizes such as 500TB and 1.5GiB, and counts and rates such as 3M
// and 2.5e6. [Of] writes a count with its noun: "1 column", "2 columns".
//
// # Overview
//
// [Bytes] wants a unit, since 500 typed for a drive seldom means bytes: B, kB, MB, GB, TB, PB (powers of 1000) or KiB,
// MiB, GiB, TiB, PiB (powers of 1024). [Count] and [Rate] take a plain number or one that ends with k, M, G or T
// (powers of 1000). Numbers may have a fraction and an exponent; a count or a number of bytes must come out whole.
//
// # Errors
//
// [ErrSyntax] is for text that is not a number or lacks its unit, [ErrRange] for a number that is not above 0, not
// whole, or too large. The message shows what to write.
package quantity
