// Package hextoint is the unit hex_to_int: tokens of hexadecimal digits become ids.
//
// # Overview
//
// A token is one to eight digits, [0-9a-fA-F]{1,8}, and its value is an unsigned 32-bit number held in an int64: any
// signed step would change the ids above 2^31, which are half of Criteo's. The empty token is a null. Nothing else is a
// token: Python's int(s, 16) also takes "0x1a", "1_0", "+1a", blanks and more than eight digits; this does not.
//
// Parse reads one token; Hex a column of byte strings held as offsets into their bytes. Tokens of eight digits, one
// behind the other, go eight (AVX-512) or four (AVX2) at a time; with permutations of bytes (VBMI) so do tokens of any
// length, and nulls.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// A *TokenError names the token and its place; ErrOffsets says that the column itself is not well formed.
//
// # Debugging
//
// Reference is the definition, a token at a time.
package hextoint
