package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text safe for a terminal, since names come from foreign files, drives and hosts: bytes that are not
// text, or would control the terminal, are written as Go writes them in quotes. Lines stay lines.
func Escape(s string) string {
	odd := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, odd) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || odd(r) {
			quoted := strconv.QuoteToASCII(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Cell returns a foreign name for a table's cell. A name with bytes that are not text is quoted: tabs and line ends
// would begin cells and rows, and text/tabwriter gives the byte 0xff a meaning.
func Cell(name string) string {
	if Escape(name) != name || strings.ContainsAny(name, "\n\t") {
		return strconv.Quote(name)
	}
	return name
}
