package texttoint

import (
	"fmt"
	"math/big"
	"strings"
)

// Reference returns the integer that a text is. The error wraps ErrInteger or ErrRange; an empty text is not an
// integer.
func Reference(text []byte) (int64, error) {
	digits := string(text)
	if strings.HasPrefix(digits, "+") || strings.HasPrefix(digits, "-") {
		digits = digits[1:]
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%q: %w", text, ErrInteger)
	}
	n, _ := new(big.Int).SetString(digits, 10)
	if text[0] == '-' {
		n.Neg(n)
	}
	if !n.IsInt64() {
		return 0, fmt.Errorf("%q: %w", text, ErrRange)
	}
	return n.Int64(), nil
}
