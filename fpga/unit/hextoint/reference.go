package hextoint

import (
	"regexp"
	"strconv"
)

var grammar = regexp.MustCompile(`\A[0-9a-fA-F]{1,8}\z`)

// Reference returns the value of one token by the grammar.
func Reference(token []byte) (v uint32, ok bool) {
	if !grammar.Match(token) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(token), 16, 32)
	return uint32(n), err == nil
}
