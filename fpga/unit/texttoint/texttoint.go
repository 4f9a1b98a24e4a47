package texttoint

import (
	"errors"
	"math"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

var (
	// ErrInteger says that a text is not a sign and decimal digits.
	ErrInteger = errors.New("not a decimal integer (an optional sign, and digits)")
	// ErrRange says that a text is an integer that is not an int64.
	ErrRange = errors.New("not within int64, which is -9223372036854775808 to 9223372036854775807")
)

// Integers reads a column of len(dst) texts, text i being data[offsets[i]:offsets[i+1]]. An empty text becomes a null.
// valid is nil, or has a byte a text, 0 for a null, whose dst is 0. On an error dst and valid are undefined.
func Integers(dst []int64, offsets []uint32, data, valid []byte) error {
	return bytecolumn.Integers("text_to_int", dst, offsets, data, valid, parse)
}

// sureDigits is a number of decimal digits that fit int64 whatever they are.
const sureDigits = 18

// parse returns the value of a text that is not empty.
func parse(text []byte) (int64, error) {
	digits := text
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		digits = text[1:]
	}
	if len(digits) == 0 {
		return 0, ErrInteger
	}
	n, most := uint64(0), uint64(math.MaxInt64)
	if negative {
		most = 1 << 63
	}
	tooLarge := false
	for i, c := range digits {
		digit := uint64(c - '0')
		if digit > 9 {
			return 0, ErrInteger
		}
		if i >= sureDigits && !tooLarge {
			tooLarge = n > (most-digit)/10
		}
		n = n*10 + digit // of no use once it is too large
	}
	if tooLarge {
		return 0, ErrRange
	}
	if negative {
		return int64(-n), nil
	}
	return int64(n), nil
}
