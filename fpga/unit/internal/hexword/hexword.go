// Package hexword reads eight hexadecimal digits at a time, in one 64-bit word.
//
// Its functions keep no state and do not fail.
package hexword

// every repeats a byte in all eight of a word.
const every = 0x0101010101010101

// Digits reports whether the eight bytes of x are hexadecimal digits of either case. Each test adds a number to every
// byte that carries the byte's top bit over at one bound. Bytes from 0x80 on pass neither test, even with a carry
// from a neighbour, so that their own carry into a neighbour does not matter.
func Digits(x uint64) bool {
	lower := x | 0x20*every
	decimal := (x + (0x80-'0')*every) &^ (x + (0x7f-'9')*every)
	letter := (lower + (0x80-'a')*every) &^ (lower + (0x7f-'f')*every)
	return (decimal|letter)&(0x80*every) == 0x80*every
}

// Value returns the number that eight hexadecimal digits write, the first of them in the lowest byte: a little-endian
// load of the text. It means nothing for other bytes.
func Value(x uint64) uint32 {
	x = x&(0x0f*every) + (x>>6&every)*9
	x = (x<<4 | x>>8) & 0x00ff00ff00ff00ff
	x = (x<<8 | x>>16) & 0x0000ffff0000ffff
	return uint32(x<<16 | x>>32)
}
